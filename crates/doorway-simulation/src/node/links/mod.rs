//! The links of a node to its peers, over connections that break.

mod handshake;

use doorway_core::NodeId;
use doorway_node::link::{Decoder, Frame, Hello, Inbox, Outbox, Verdict};
use doorway_node::messages::Message;
use doorway_node::views::{AgreedEvent, Event as ViewEvent};

use super::{Node, NodeEvent, place};
use crate::clock::MS;
use crate::context::{Context, log};
use crate::network::{Side, Wire};
use crate::register::seat;
use crate::story::Lane;

/// How often an idle link sends a heartbeat, and after how many silent beats it is closed.
const BEAT: u64 = 500 * MS;
const SILENT: u32 = 6;

/// How many bytes are gathered for one write.
const CHUNK: usize = 32 << 10;

/// The link to a peer.
#[derive(Debug, Default)]
pub(crate) struct Link {
    inbox: Inbox,
    outbox: Outbox,
    /// The number of this link among those to the peer.
    number: u64,
    /// The connection whose handshake began last.
    current: Option<LinkConnection>,
    /// How many attempts to connect have failed in a row.
    failed: u32,
    dialling: bool,
}

/// A connection of a link.
#[derive(Debug)]
struct LinkConnection {
    wire: Wire,
    side: Side,
    number: u64,
    decoder: Decoder,
    stage: Stage,
    /// Whether bytes have come since the last beat, and how many beats ago they came.
    heard: bool,
    silent: u32,
}

#[derive(Clone, Debug, PartialEq)]
enum Stage {
    /// We dialled, and wait for the hello of the peer.
    Dialled,
    /// We were dialled, have answered the hello, and wait for a sign that the caller still runs.
    Answered(Hello),
    Up,
}

impl Link {
    pub(super) fn new(number: u64) -> Self {
        Self { number, ..Self::default() }
    }

    pub(super) fn push(&mut self, message: &Message) {
        let bytes = postcard::to_allocvec(message).expect("memory takes every message");
        self.outbox.push(bytes);
    }

    fn is_up(&self) -> bool {
        self.current.as_ref().is_some_and(|connection| connection.stage == Stage::Up)
    }
}

impl Node {
    fn link(&mut self, peer: usize) -> Option<&mut Link> {
        self.process.as_mut()?.group.links[peer].as_mut()
    }

    /// Bytes have come over a connection of a link.
    pub(crate) fn link_bytes(
        &mut self,
        context: &mut Context,
        wire: Wire,
        peer: usize,
        bytes: &[u8],
    ) {
        let known =
            self.link(peer).and_then(|link| link.current.as_mut()).filter(|it| it.wire == wire);
        if let Some(connection) = known {
            connection.decoder.room().extend_from_slice(bytes);
            connection.heard = true;
        } else {
            // A caller: its hello comes first, in one piece or in several.
            let Some(process) = &mut self.process else { return };
            let decoder = process.group.callers.entry(wire).or_default();
            decoder.room().extend_from_slice(bytes);
            return self.called(context, wire, peer);
        }
        if !self.handle_received(context, peer) {
            self.link_ended(context, wire, peer);
        }
        self.settle(context);
    }

    /// Handle what has come on the current connection. False if the connection must end.
    fn handle_received(&mut self, context: &mut Context, peer: usize) -> bool {
        let stage =
            self.link(peer).and_then(|link| link.current.as_ref()).map(|it| it.stage.clone());
        match stage {
            None => false,
            Some(Stage::Dialled) => {
                let Some(connection) = self.link(peer).and_then(|it| it.current.as_mut()) else {
                    return false;
                };
                let theirs = match connection.decoder.frame() {
                    Ok(None) => return true,
                    Ok(Some(Frame::Hello(hello))) => hello,
                    _ => return false,
                };
                let ours = self.hello(peer);
                self.admit(context, peer, &ours, &theirs)
                    && self.resume(context, peer, &theirs)
                    && self.frames(context, peer)
            }
            Some(Stage::Answered(theirs)) => {
                self.resume(context, peer, &theirs) && self.frames(context, peer)
            }
            Some(Stage::Up) => self.frames(context, peer),
        }
    }

    /// Process all frames that have arrived. False if the connection must end.
    fn frames(&mut self, context: &mut Context, peer: usize) -> bool {
        let mut has = None;
        let mut fine = true;
        while fine {
            let Some(link) = self.link(peer) else { return false };
            let Some(connection) = &mut link.current else { return false };
            let number = connection.number;
            let message = match connection.decoder.frame() {
                Ok(None) => break,
                Ok(Some(Frame::Ack(received))) => {
                    has = Some(received);
                    continue;
                }
                Ok(Some(Frame::Data { number: at, received, message })) => {
                    has = Some(received);
                    match link.inbox.judge(number, at) {
                        Verdict::Deliver => postcard::from_bytes::<Message>(message).ok(),
                        Verdict::Duplicate => continue,
                        Verdict::Gap | Verdict::Stale => None,
                    }
                }
                _ => None,
            };
            let Some(message) = message else {
                context.violate(format!("n{} got from n{peer} what no link sends", self.id));
                fine = false;
                continue;
            };
            self.deliver(context, peer, message);
            if let Some(link) = self.link(peer) {
                link.inbox.delivered();
            }
        }
        let Some(link) = self.link(peer) else { return false };
        link.outbox.set_received(link.inbox.received());
        if let Some(Err(error)) = has.map(|has| link.outbox.acknowledge(has)) {
            context.violate(format!("n{} and n{peer}: {error}", self.id));
            return false;
        }
        fine
    }

    fn deliver(&mut self, context: &mut Context, peer: usize, message: Message) {
        let from = NodeId::at(peer);
        match message {
            Message::Algorithm(message) => {
                let group = self.process.as_ref().map(|process| &process.group);
                let from = group.and_then(|group| group.member(message.view, peer));
                let Some(from) = from else { return };
                context.arrow(Lane::Node(self.id), String::new, Some(&message.lock));
                let shard = place(&context.settings, &message.lock);
                self.with_shard(context, shard, |shard, now, out| {
                    shard.receive(from, &message, now, out);
                });
            }
            Message::Flush(flush) => {
                context.arrow(Lane::Node(self.id), || "flush".to_owned(), None);
                self.agreed_views(context, AgreedEvent::Flush(seat(peer), flush.clone()));
                self.views(context, ViewEvent::Flush(from, flush));
            }
            Message::Epochs(epochs) => self.views(context, ViewEvent::Epochs(from, epochs)),
            Message::Record(record) => self.told_record(context, record),
            Message::Ask(..) | Message::Tell(..) => {}
        }
    }

    /// A connection of a link has ended.
    pub(crate) fn link_ended(&mut self, context: &mut Context, wire: Wire, peer: usize) {
        let Some(process) = &mut self.process else { return };
        process.group.callers.remove(&wire);
        let Some(link) = self.link(peer) else { return };
        if link.current.as_ref().is_none_or(|connection| connection.wire != wire) {
            return;
        }
        let Some(connection) = link.current.take() else { return };
        let current = link.inbox.close(connection.number);
        context.close(wire, connection.side);
        if current {
            log!(context, "n{} link to n{peer} down", self.id);
            self.unlinked(context, peer);
        }
        self.redial(context, peer);
        self.settle(context);
    }

    /// A heartbeat is due. A peer that is silent for too long is given up.
    pub(in crate::node) fn beat(&mut self, context: &mut Context, peer: usize, number: u64) {
        let Some(link) = self.link(peer) else { return };
        let Some(connection) =
            link.current.as_mut().filter(|connection| connection.number == number)
        else {
            return;
        };
        let (wire, side) = (connection.wire, connection.side);
        connection.silent =
            if std::mem::take(&mut connection.heard) { 0 } else { connection.silent + 1 };
        if connection.silent >= SILENT {
            return self.link_ended(context, wire, peer);
        }
        let mut bytes = Vec::new();
        link.outbox.fill(number, CHUNK, &mut bytes);
        if bytes.is_empty() {
            link.outbox.heartbeat(number, &mut bytes);
        }
        context.send(wire, side, bytes);
        self.later(context, BEAT, NodeEvent::Beat(peer, number));
    }

    /// Write what links have to write.
    pub(in crate::node) fn write_links(&mut self, context: &mut Context) {
        let Some(process) = &mut self.process else { return };
        for link in process.group.links.iter_mut().flatten().filter(|link| link.is_up()) {
            let Some(connection) = &link.current else { continue };
            loop {
                let mut bytes = Vec::new();
                link.outbox.fill(connection.number, CHUNK, &mut bytes);
                if bytes.is_empty() {
                    break;
                }
                context.send(connection.wire, connection.side, bytes);
            }
        }
    }
}
