//! Properties that need a history: a watch stands beside any algorithm, writes down what happens
//! at its node, and puts a note on every message.
//!
//! The algorithm does not know that it is watched, and what it does is not changed. The history is
//! part of the node's state, so whatever runs an algorithm runs a watched one, and a predicate over
//! one world can speak of what has happened before. Each watch comes with such a predicate, a
//! function `check` that says in a sentence what is wrong: [`fence::check`], [`order::check`] and
//! [`charge::check`].

pub mod charge;
pub mod fence;
pub mod order;

use std::fmt;
use std::hash::Hash;

use doorway_core::{Algorithm, Effects, Group, Info, Mode, NodeId, Phase, Start, Wire};
use serde::{Deserialize, Serialize};

use crate::World;

pub use charge::Charged;
pub use fence::Fenced;
pub use order::Ordered;

/// A message with a note of the watch.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Noted<N, M> {
    /// The message of the algorithm: first, so that channels sort watched messages like others.
    pub inner: M,
    /// What the watch of the sender wrote on it.
    pub note: N,
}

/// The message first, since pictures know a message by its first word.
impl<N: fmt::Debug, M: fmt::Debug> fmt::Debug for Noted<N, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} with {:?}", self.inner, self.note)
    }
}

/// What has happened to a node.
#[derive(Debug)]
pub enum Event<'a, N, M> {
    /// The group has begun.
    Start,
    /// A client has asked.
    Acquire(Mode),
    /// A message has arrived, and was not rejected.
    Receive {
        /// Its sender.
        from: NodeId,
        /// The message and its note.
        message: &'a Noted<N, M>,
    },
    /// The client has left.
    Release,
    /// Another node has crashed.
    Failed,
}

impl<N, M> Copy for Event<'_, N, M> {}

impl<N, M> Clone for Event<'_, N, M> {
    fn clone(&self) -> Self {
        *self
    }
}

/// What is written down about one node of an algorithm.
///
/// For each event the watch hears what happened, then that the client entered, if it did, and then
/// of each message that is sent.
pub trait Watch<A: Algorithm>: Clone + fmt::Debug + Eq + Hash + Send + Sync {
    /// What every message carries.
    type Note: Wire;

    /// The watch of node `me` when its group begins.
    fn new(me: NodeId, group: &Group, start: &Start) -> Self;

    /// Something has happened.
    fn happened(&mut self, event: Event<'_, Self::Note, A::Message>);

    /// The client went inside.
    fn entered(&mut self, _group: &Group) {}

    /// What to write on a message to `to` that the event made the node send.
    fn note(
        &mut self,
        event: Event<'_, Self::Note, A::Message>,
        to: NodeId,
        message: &A::Message,
    ) -> Self::Note;

    /// From where the watch could start again, were the node forgotten with this floor of the
    /// algorithm. Most histories are lost when they are forgotten.
    fn floor(&self, _algorithm: u64) -> Option<u64> {
        None
    }
}

/// An algorithm and its watch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Watched<A, W> {
    algorithm: A,
    watch: W,
}

impl<A: Algorithm, W: Watch<A>> Watched<A, W> {
    /// The state of the algorithm.
    pub fn algorithm(&self) -> &A {
        &self.algorithm
    }

    /// What is written down.
    pub fn watch(&self) -> &W {
        &self.watch
    }

    /// Write down what happened and what the algorithm did about it, and send its messages.
    fn record(
        &mut self,
        group: &Group,
        event: Event<'_, W::Note, A::Message>,
        mut did: Effects<A::Message>,
        out: &mut Effects<Noted<W::Note, A::Message>>,
    ) {
        if let Some(reason) = did.rejected() {
            return out.reject(reason);
        }
        self.watch.happened(event);
        if did.entered() {
            self.watch.entered(group);
            out.enter();
        }
        for (to, inner) in did.drain() {
            let note = self.watch.note(event, to, &inner);
            out.send(to, Noted { inner, note });
        }
    }
}

impl<A: Algorithm, W: Watch<A>> Algorithm for Watched<A, W> {
    type Message = Noted<W::Note, A::Message>;

    const INFO: Info = A::INFO;

    fn new(me: NodeId, group: &Group, start: &Start) -> Self {
        Self { algorithm: A::new(me, group, start), watch: W::new(me, group, start) }
    }

    fn start(&mut self, group: &Group, out: &mut Effects<Self::Message>) {
        let mut did = Effects::default();
        self.algorithm.start(group, &mut did);
        self.record(group, Event::Start, did, out);
    }

    fn acquire(&mut self, group: &Group, mode: Mode, out: &mut Effects<Self::Message>) {
        let mut did = Effects::default();
        self.algorithm.acquire(group, mode, &mut did);
        self.record(group, Event::Acquire(mode), did, out);
    }

    fn receive(
        &mut self,
        group: &Group,
        from: NodeId,
        message: Self::Message,
        out: &mut Effects<Self::Message>,
    ) {
        let mut did = Effects::default();
        self.algorithm.receive(group, from, message.inner.clone(), &mut did);
        self.record(group, Event::Receive { from, message: &message }, did, out);
    }

    fn release(&mut self, group: &Group, out: &mut Effects<Self::Message>) {
        let mut did = Effects::default();
        self.algorithm.release(group, &mut did);
        self.record(group, Event::Release, did, out);
    }

    fn failed(
        &mut self,
        group: &Group,
        node: NodeId,
        heir: NodeId,
        out: &mut Effects<Self::Message>,
    ) {
        let mut did = Effects::default();
        self.algorithm.failed(group, node, heir, &mut did);
        self.record(group, Event::Failed, did, out);
    }

    fn wanted(&self) -> bool {
        self.algorithm.wanted()
    }

    fn floor(&self) -> Option<u64> {
        self.algorithm.floor().and_then(|floor| self.watch.floor(floor))
    }

    fn serves(message: &Self::Message, from: NodeId, to: NodeId) -> Option<NodeId> {
        A::serves(&message.inner, from, to)
    }
}

/// The live nodes that are inside, with what their watch has written down.
fn inside<A: Algorithm, W: Watch<A>>(
    world: &World<Watched<A, W>>,
) -> impl Iterator<Item = (NodeId, &W)> {
    let mut nodes = world.live_in(Phase::Inside);
    nodes.extend(world.live_in(Phase::Waiting));
    nodes.retain(|node| world.nodes().member(*node).held() > 0);
    nodes.into_iter().map(|node| (node, watch_of(world, node)))
}

/// What the watch of every node has written down.
fn all<A: Algorithm, W: Watch<A>>(
    world: &World<Watched<A, W>>,
) -> impl Iterator<Item = (NodeId, &W)> {
    world.group().nodes().map(|node| (node, watch_of(world, node)))
}

fn watch_of<A: Algorithm, W: Watch<A>>(world: &World<Watched<A, W>>, node: NodeId) -> &W {
    world.nodes().member(node).algorithm().watch()
}
