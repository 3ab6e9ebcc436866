//! The links of a node to its peers, over connections that break.

use doorway_core::NodeId;
use doorway_node::link::{Decoder, Frame, Hello, Inbox, Outbox, ReceivedCount, Verdict, Versions};
use doorway_node::messages::Message;
use doorway_node::views::Event as ViewEvent;

use super::{Node, NodeEvent, place};
use crate::clock::MS;
use crate::context::{Context, log};
use crate::network::{End, Side, Wire};

/// How often an idle link sends a heartbeat, and after how many silent beats it is closed.
const BEAT: u64 = 500 * MS;
const SILENT: u32 = 6;

/// How long a handshake may take.
const HANDSHAKE: u64 = 5000 * MS;

/// How many bytes are gathered for one write.
const CHUNK: usize = 32 << 10;

/// The link to a peer.
#[derive(Debug, Default)]
pub(crate) struct Link {
    inbox: Inbox,
    outbox: Outbox,
    /// The connection whose handshake began last.
    current: Option<Talk>,
    /// How many attempts to connect have failed in a row.
    failed: u32,
    dialling: bool,
}

/// A connection of a link.
#[derive(Debug)]
struct Talk {
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
    pub(super) fn push(&mut self, message: &Message) {
        let bytes = postcard::to_allocvec(message).expect("memory takes every message");
        self.outbox.push(bytes);
    }

    fn is_up(&self) -> bool {
        self.current.as_ref().is_some_and(|talk| talk.stage == Stage::Up)
    }
}

impl Node {
    fn link(&mut self, peer: usize) -> Option<&mut Link> {
        self.process.as_mut()?.group.links[peer].as_mut()
    }

    fn hello(&self) -> Hello {
        let process = self.process.as_ref();
        Hello {
            versions: Versions::SPOKEN,
            group: "simulated".to_owned(),
            node: format!("n{}", self.id),
            config: 1,
            incarnation: process.map_or_else(Default::default, |it| it.group.incarnation),
            epochs: process.map_or_else(Vec::new, |it| it.group.change.announced()),
            received: ReceivedCount::default(),
        }
    }

    /// Try to connect to a peer.
    pub(super) fn dial(&mut self, context: &mut Context, peer: usize) {
        let (id, now) = (self.id, context.now);
        let Some(link) = self.link(peer) else { return };
        if link.current.is_some() || std::mem::replace(&mut link.dialling, true) {
            return;
        }
        let blocked =
            context.network.blocked(now, id, peer).max(context.network.blocked(now, peer, id));
        let time = match blocked {
            Some(until) => (until - now).min(HANDSHAKE),
            None => 2 * context.network.latency(now, false, &mut context.random),
        };
        self.later(context, time, NodeEvent::Dialled(peer));
    }

    /// Dial again after a pause.
    fn redial(&mut self, context: &mut Context, peer: usize) {
        if peer < self.id {
            return;
        }
        let Some(link) = self.link(peer) else { return };
        link.failed = (link.failed + 1).min(6);
        let bound = ((50 * MS) << (link.failed - 1)).min(2000 * MS);
        let pause = context.random.between(bound / 2, bound);
        self.later(context, pause, NodeEvent::Dial(peer));
    }

    /// The connection to a peer is made: say hello.
    pub(super) fn connected_to(&mut self, context: &mut Context, peer: usize, wire: Wire) {
        let mut ours = self.hello();
        let Some((number, received)) = self.greet(context, peer) else { return };
        ours.received = received;
        let talk = Talk {
            wire,
            side: 0,
            number,
            decoder: Decoder::default(),
            stage: Stage::Dialled,
            heard: false,
            silent: 0,
        };
        if let Some(link) = self.link(peer) {
            link.current = Some(talk);
        }
        let mut bytes = Vec::new();
        Frame::Hello(ours).encode(&mut bytes);
        context.send(wire, 0, bytes);
        self.later(context, HANDSHAKE, NodeEvent::Late(wire));
    }

    /// The peer could not be reached.
    pub(crate) fn not_reached(&mut self, context: &mut Context, peer: usize) {
        if let Some(link) = self.link(peer) {
            link.dialling = false;
        }
        self.redial(context, peer);
    }

    /// The peer can be reached.
    pub(crate) fn reached(&mut self, context: &mut Context, peer: usize, other: End) {
        if let Some(link) = self.link(peer) {
            link.dialling = false;
        }
        let wire = context.network.connect([self.end(), other], [self.id, peer]);
        self.connected_to(context, peer, wire);
        self.write_links(context);
    }

    /// Begin a handshake, which retires the connection before it.
    fn greet(&mut self, context: &mut Context, peer: usize) -> Option<(u64, ReceivedCount)> {
        let link = self.link(peer)?;
        let open = link.inbox.is_open();
        let greeting = link.inbox.greet();
        if let Some(old) = link.current.take() {
            context.close(old.wire, old.side);
        }
        if open {
            self.views(context, ViewEvent::Down(NodeId::at(peer)));
        }
        Some(greeting)
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
        if let Some(talk) = known {
            talk.decoder.room().extend_from_slice(bytes);
            talk.heard = true;
        } else {
            // A caller: its hello comes first, in one piece or in several.
            let Some(process) = &mut self.process else { return };
            let decoder = process.group.callers.entry(wire).or_default();
            decoder.room().extend_from_slice(bytes);
            return self.called(context, wire, peer);
        }
        if !self.talk(context, peer) {
            self.link_ended(context, wire, peer);
        }
        self.settle(context);
    }

    /// A caller has sent something before we have answered.
    fn called(&mut self, context: &mut Context, wire: Wire, peer: usize) {
        let ours = self.hello();
        let Some(process) = &mut self.process else { return };
        let Some(mut decoder) = process.group.callers.remove(&wire) else { return };
        let theirs = match decoder.frame() {
            Ok(Some(Frame::Hello(hello))) => hello,
            Ok(None) => {
                process.group.callers.insert(wire, decoder);
                return;
            }
            _ => return context.close(wire, 1),
        };
        if !self.admit(context, peer, &ours, &theirs) {
            return context.close(wire, 1);
        }
        let mut ours = self.hello();
        let Some((number, received)) = self.greet(context, peer) else { return };
        ours.received = received;
        let talk = Talk {
            wire,
            side: 1,
            number,
            decoder,
            stage: Stage::Answered(theirs),
            heard: false,
            silent: 0,
        };
        if let Some(link) = self.link(peer) {
            link.current = Some(talk);
        }
        let mut bytes = Vec::new();
        Frame::Hello(ours).encode(&mut bytes);
        context.send(wire, 1, bytes);
        self.later(context, HANDSHAKE, NodeEvent::Late(wire));
        self.settle(context);
    }

    fn admit(&mut self, context: &mut Context, peer: usize, ours: &Hello, theirs: &Hello) -> bool {
        let Some(process) = &self.process else { return false };
        if ours.meet(theirs).is_err() || process.group.change.admits(&theirs.epochs).is_err() {
            context.violate(format!("n{} refuses n{peer}", self.id));
            return false;
        }
        let (peer, incarnation) = (NodeId::at(peer), theirs.incarnation);
        let epochs = theirs.epochs.clone();
        self.views(context, ViewEvent::Hello { peer, incarnation, epochs });
        true
    }

    /// Handle what has come on the current connection. False if the connection must end.
    fn talk(&mut self, context: &mut Context, peer: usize) -> bool {
        let stage =
            self.link(peer).and_then(|link| link.current.as_ref()).map(|it| it.stage.clone());
        match stage {
            None => false,
            Some(Stage::Dialled) => {
                let Some(talk) = self.link(peer).and_then(|it| it.current.as_mut()) else {
                    return false;
                };
                let theirs = match talk.decoder.frame() {
                    Ok(None) => return true,
                    Ok(Some(Frame::Hello(hello))) => hello,
                    _ => return false,
                };
                let ours = self.hello();
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

    /// The handshake is complete.
    fn resume(&mut self, context: &mut Context, peer: usize, theirs: &Hello) -> bool {
        let Some(process) = &mut self.process else { return false };
        let me = process.group.incarnation;
        let Some(link) = process.group.links[peer].as_mut() else { return false };
        let Some(talk) = &mut link.current else { return false };
        let number = talk.number;
        if !link.inbox.resume(number, theirs.incarnation) {
            return false;
        }
        if let Err(error) = link.outbox.resume(number, me, theirs.incarnation, theirs.received) {
            link.inbox.close(number);
            context.violate(format!("n{} and n{peer}: {error}", self.id));
            return false;
        }
        talk.stage = Stage::Up;
        link.failed = 0;
        let (wire, side) = (talk.wire, talk.side);
        let mut bytes = Vec::new();
        link.outbox.heartbeat(number, &mut bytes);
        log!(context, "n{} link to n{peer} up", self.id);
        context.send(wire, side, bytes);
        self.later(context, BEAT, NodeEvent::Beat(peer, number));
        let (incarnation, epochs) = (theirs.incarnation, theirs.epochs.clone());
        self.views(context, ViewEvent::Up { peer: NodeId::at(peer), incarnation, epochs });
        true
    }

    /// Process all frames that have arrived. False if the connection must end.
    fn frames(&mut self, context: &mut Context, peer: usize) -> bool {
        let mut has = None;
        let mut fine = true;
        while fine {
            let Some(link) = self.link(peer) else { return false };
            let Some(talk) = &mut link.current else { return false };
            let number = talk.number;
            let message = match talk.decoder.frame() {
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
                let (shard, rule) = place(&context.settings, &message.lock);
                self.with_shard(context, shard, |shard, now, out| {
                    shard.receive(from, rule, &message, now, out);
                });
            }
            Message::Flush(flush) => self.views(context, ViewEvent::Flush(from, flush)),
            Message::Epochs(epochs) => self.views(context, ViewEvent::Epochs(from, epochs)),
            Message::Ask(..) | Message::Tell(..) => {}
        }
    }

    /// A connection of a link has ended.
    pub(crate) fn link_ended(&mut self, context: &mut Context, wire: Wire, peer: usize) {
        let Some(process) = &mut self.process else { return };
        process.group.callers.remove(&wire);
        let Some(link) = self.link(peer) else { return };
        if link.current.as_ref().is_none_or(|talk| talk.wire != wire) {
            return;
        }
        let Some(talk) = link.current.take() else { return };
        let current = link.inbox.close(talk.number);
        context.close(wire, talk.side);
        if current {
            log!(context, "n{} link to n{peer} down", self.id);
            self.views(context, ViewEvent::Down(NodeId::at(peer)));
        }
        self.redial(context, peer);
        self.settle(context);
    }

    /// A handshake has had its time.
    pub(super) fn late(&mut self, context: &mut Context, wire: Wire) {
        let Some(process) = &self.process else { return };
        let peer = process.group.links.iter().position(|link| {
            let talk = link.as_ref().and_then(|link| link.current.as_ref());
            talk.is_some_and(|talk| talk.wire == wire && talk.stage != Stage::Up)
        });
        if let Some(peer) = peer {
            self.link_ended(context, wire, peer);
        }
    }

    /// A heartbeat is due. A peer that is silent for too long is given up.
    pub(super) fn beat(&mut self, context: &mut Context, peer: usize, number: u64) {
        let Some(link) = self.link(peer) else { return };
        let Some(talk) = link.current.as_mut().filter(|talk| talk.number == number) else { return };
        let (wire, side) = (talk.wire, talk.side);
        talk.silent = if std::mem::take(&mut talk.heard) { 0 } else { talk.silent + 1 };
        if talk.silent >= SILENT {
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
    pub(super) fn write_links(&mut self, context: &mut Context) {
        let Some(process) = &mut self.process else { return };
        for link in process.group.links.iter_mut().flatten().filter(|link| link.is_up()) {
            let Some(talk) = &link.current else { continue };
            loop {
                let mut bytes = Vec::new();
                link.outbox.fill(talk.number, CHUNK, &mut bytes);
                if bytes.is_empty() {
                    break;
                }
                context.send(talk.wire, talk.side, bytes);
            }
        }
    }
}
