//! How a connection of a link begins.

use doorway_core::NodeId;
use doorway_node::link::{Decoder, Frame, Hello, ReceivedCount, Versions};
use doorway_node::members::{Event, Record};
use doorway_node::views::{AgreedEvent, Event as ViewEvent};

use super::{BEAT, Link, LinkConnection, Stage};
use crate::clock::MS;
use crate::context::{Context, log};
use crate::network::{End, Side, Wire};
use crate::node::group::Views;
use crate::node::{Node, NodeEvent};
use crate::register::seat;

/// How long a handshake may take.
const HANDSHAKE: u64 = 5000 * MS;

impl Node {
    /// The hello to a peer.
    pub(super) fn hello(&self, peer: usize) -> Hello {
        let process = self.process.as_ref();
        let incarnation = process.map_or_else(Default::default, |it| {
            let link = it.group.links[peer].as_ref().map_or(0, |link| link.number);
            it.group.incarnation.of_link(link)
        });
        Hello {
            versions: Versions::SPOKEN,
            group: "simulated".to_owned(),
            node: format!("n{}", self.id),
            config: 1,
            incarnation,
            epochs: match process.map(|process| &process.group.views) {
                Some(Views::Fixed(change)) => change.announced(),
                _ => Vec::new(),
            },
            received: ReceivedCount::default(),
        }
    }

    /// Make links to the seats of a record, and close those to all others.
    pub(in crate::node) fn meet_seats(&mut self, context: &mut Context, record: &Record) {
        let others = (0..context.settings.nodes).filter(|peer| *peer != self.id);
        for peer in others.collect::<Vec<_>>() {
            let Some(process) = &mut self.process else { return };
            let link = &mut process.group.links[peer];
            match (record.seat(seat(peer)).is_some(), link.is_some()) {
                (true, false) => {
                    *link = Some(Link::new(record.revision));
                    if self.id < peer {
                        let after = context.random.between(0, MS);
                        self.later(context, after, NodeEvent::Dial(peer));
                    }
                }
                (false, true) => {
                    let open = link.as_ref().is_some_and(|link| link.inbox.is_open());
                    if let Some(connection) = link.take().and_then(|link| link.current) {
                        context.close(connection.wire, connection.side);
                    }
                    if open {
                        self.unlinked(context, peer);
                    }
                }
                _ => {}
            }
        }
    }

    /// Try to connect to a peer.
    pub(in crate::node) fn dial(&mut self, context: &mut Context, peer: usize) {
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
    pub(super) fn redial(&mut self, context: &mut Context, peer: usize) {
        if peer < self.id {
            return;
        }
        let Some(link) = self.link(peer) else { return };
        link.failed = (link.failed + 1).min(6);
        let bound = ((50 * MS) << (link.failed - 1)).min(2000 * MS);
        let pause = context.random.between(bound / 2, bound);
        self.later(context, pause, NodeEvent::Dial(peer));
    }

    /// Say hello over a connection, which replaces the one before it.
    fn say_hello(
        &mut self,
        context: &mut Context,
        peer: usize,
        (wire, side): (Wire, Side),
        decoder: Decoder,
        stage: Stage,
    ) {
        let Some((number, received)) = self.greet(context, peer) else { return };
        let hello = Hello { received, ..self.hello(peer) };
        if let Some(link) = self.link(peer) {
            let (heard, silent) = (false, 0);
            link.current =
                Some(LinkConnection { wire, side, number, decoder, stage, heard, silent });
        }
        let mut bytes = Vec::new();
        Frame::Hello(hello).encode(&mut bytes);
        context.send(wire, side, bytes);
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
        self.say_hello(context, peer, (wire, 0), Decoder::default(), Stage::Dialled);
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
            self.unlinked(context, peer);
        }
        Some(greeting)
    }

    /// A caller has sent something before we have answered.
    pub(super) fn called(&mut self, context: &mut Context, wire: Wire, peer: usize) {
        let ours = self.hello(peer);
        let stranger = self.link(peer).is_none();
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
        if stranger || !self.admit(context, peer, &ours, &theirs) {
            return context.close(wire, 1);
        }
        self.say_hello(context, peer, (wire, 1), decoder, Stage::Answered(theirs));
        self.settle(context);
    }

    pub(super) fn admit(
        &mut self,
        context: &mut Context,
        peer: usize,
        ours: &Hello,
        theirs: &Hello,
    ) -> bool {
        let Some(process) = &self.process else { return false };
        let admits = match &process.group.views {
            Views::Fixed(change) => change.admits(&theirs.epochs).is_ok(),
            Views::Agreed(_) => true,
        };
        if ours.meet(theirs).is_err() || !admits {
            context.violate(format!("n{} refuses n{peer}", self.id));
            return false;
        }
        let (peer, incarnation) = (NodeId::at(peer), theirs.incarnation);
        let epochs = theirs.epochs.clone();
        self.views(context, ViewEvent::Hello { peer, incarnation, epochs });
        true
    }

    /// The handshake is complete.
    pub(super) fn resume(&mut self, context: &mut Context, peer: usize, theirs: &Hello) -> bool {
        let Some(process) = &mut self.process else { return false };
        let me = process.group.incarnation;
        let Some(link) = process.group.links[peer].as_mut() else { return false };
        let me = me.of_link(link.number);
        let Some(connection) = &mut link.current else { return false };
        let number = connection.number;
        if !link.inbox.resume(number, theirs.incarnation) {
            return false;
        }
        if let Err(error) = link.outbox.resume(number, me, theirs.incarnation, theirs.received) {
            link.inbox.close(number);
            context.violate(format!("n{} and n{peer}: {error}", self.id));
            return false;
        }
        connection.stage = Stage::Up;
        link.failed = 0;
        let (wire, side) = (connection.wire, connection.side);
        let mut bytes = Vec::new();
        link.outbox.heartbeat(number, &mut bytes);
        log!(context, "n{} link to n{peer} up", self.id);
        context.send(wire, side, bytes);
        self.later(context, BEAT, NodeEvent::Beat(peer, number));
        let (incarnation, epochs) = (theirs.incarnation, theirs.epochs.clone());
        self.views(context, ViewEvent::Up { peer: NodeId::at(peer), incarnation, epochs });
        self.agreed_views(context, AgreedEvent::Up(seat(peer)));
        self.tell_keeper(context, Event::Up(seat(peer)));
        true
    }

    /// The time for a handshake is over.
    pub(in crate::node) fn late(&mut self, context: &mut Context, wire: Wire) {
        let Some(process) = &self.process else { return };
        let peer = process.group.links.iter().position(|link| {
            let connection = link.as_ref().and_then(|link| link.current.as_ref());
            connection
                .is_some_and(|connection| connection.wire == wire && connection.stage != Stage::Up)
        });
        if let Some(peer) = peer {
            self.link_ended(context, wire, peer);
        }
    }
}
