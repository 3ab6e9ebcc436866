//! Properties that need a history. A watch beside each node records what happens there and adds a
//! note to every message.
//!
//! The algorithm does not know that it is watched, and its behaviour does not change. The history
//! is part of the node's state. So every driver can run watched nodes, and a predicate over one
//! world can refer to the past. Each watch comes with such a predicate, which says in a sentence
//! what is wrong: [`fence::check`], [`order::check`] and [`charge::check`].

pub mod charge;
pub mod fence;
pub mod order;

use std::any::Any;
use std::fmt;
use std::hash::Hash;

use doorway_core::{Breach, CLOCK_LIMIT, Effects, Group, Info, Input, Mode, NodeId, Phase, Start};

use crate::World;
use crate::erased::{AnyMember, AnyMessage, Settler, State};

pub use charge::Charges;
pub use fence::Fences;
pub use order::Order;

/// A message with a note from the sender's watch.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NotedMessage<N> {
    /// The message of the algorithm. It is the first field, so that channels sort watched messages
    /// like unwatched ones.
    pub inner: AnyMessage,
    /// The note of the sender's watch.
    pub note: N,
}

/// Prints the message first, because diagrams take the first word as the kind of the message.
impl<N: fmt::Debug> fmt::Debug for NotedMessage<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} with {:?}", self.inner, self.note)
    }
}

/// An event at a node.
#[derive(Debug)]
pub enum Event<'a, N> {
    /// The group has begun.
    Start,
    /// A client has requested the lock.
    Acquire(Mode),
    /// A message has arrived, and was not rejected.
    Receive {
        /// Its sender.
        from: NodeId,
        /// The message and its note.
        message: &'a NotedMessage<N>,
    },
    /// The client has released the lock.
    Release,
    /// The waiting client has given up.
    Withdraw,
    /// Another node has crashed.
    Failed,
}

impl<N> Copy for Event<'_, N> {}

impl<N> Clone for Event<'_, N> {
    fn clone(&self) -> Self {
        *self
    }
}

/// A message that a node is about to send.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The receiver.
    pub to: NodeId,
    /// The message.
    pub message: &'a AnyMessage,
    /// The node whose request it serves, if that is not the request that caused it.
    pub serves: Option<NodeId>,
}

/// The record of one node.
///
/// For each event the calls come in this order: [`Watch::happened`], then [`Watch::entered`] if the
/// client entered, then [`Watch::note`] for each message that is sent.
pub trait Watch: Clone + fmt::Debug + Eq + Hash + Send + Sync + 'static {
    /// The note that every message carries.
    type Note: Clone + fmt::Debug + Ord + Hash + Send + Sync + 'static;

    /// The watch of node `me` when its group begins.
    fn new(me: NodeId, group: &Group, start: &Start) -> Self;

    /// Record an event.
    fn happened(&mut self, event: Event<'_, Self::Note>);

    /// Record that the client entered.
    fn entered(&mut self, _group: &Group) {}

    /// The note for a message that the node sends because of the event.
    fn note(&mut self, event: Event<'_, Self::Note>, outgoing: Outgoing<'_>) -> Self::Note;

    /// The floor from which the watch can begin again if the node is forgotten, given the floor of
    /// the algorithm. `None` if the history must not be lost, as most must not.
    fn floor(&self, _algorithm: u64) -> Option<u64> {
        None
    }
}

/// A node and its watch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WatchedMember<W> {
    member: AnyMember,
    watch: W,
}

impl<W: Watch> WatchedMember<W> {
    /// Put a watch beside a node that has just begun, and pass on what the node did as it began.
    pub(crate) fn begin(
        member: AnyMember,
        group: &Group,
        start: &Start,
        did: Effects<AnyMessage>,
        out: &mut Effects<AnyMessage>,
    ) -> AnyMember {
        let mut watched = Self { watch: W::new(member.me(), group, start), member };
        out.clear();
        watched.record(group, Event::Start, did, out);
        AnyMember::new(watched)
    }

    /// Record an event and what the node did about it, and send its messages.
    fn record(
        &mut self,
        group: &Group,
        event: Event<'_, W::Note>,
        mut did: Effects<AnyMessage>,
        out: &mut Effects<AnyMessage>,
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
            let serves = self.member.serves(&inner, self.member.me(), to);
            let note = self.watch.note(event, Outgoing { to, message: &inner, serves });
            out.send(to, AnyMessage::new(NotedMessage { inner, note }));
        }
    }
}

impl<W: Watch> State for WatchedMember<W> {
    fn step(
        &mut self,
        group: &Group,
        input: Input<AnyMessage>,
        out: &mut Effects<AnyMessage>,
    ) -> Result<(), Breach> {
        let mut did = Effects::default();
        let input = input.map(|message| message.get::<NotedMessage<W::Note>>().clone());
        let inner = input.clone().map(|message| message.inner);
        let stepped = self.member.step(group, inner, &mut did);
        out.clear();
        let event = match &input {
            Input::Acquire(mode) => Event::Acquire(*mode),
            Input::Receive { from, message } => Event::Receive { from: *from, message },
            Input::Release => Event::Release,
            Input::Withdraw => Event::Withdraw,
            Input::Failed { .. } => Event::Failed,
        };
        self.record(group, event, did, out);
        stepped
    }

    fn begin(
        &self,
        group: &Group,
        start: &Start,
        out: &mut Effects<AnyMessage>,
    ) -> Result<AnyMember, Breach> {
        let mut did = Effects::default();
        let member = self.member.state().begin(group, start, &mut did)?;
        Ok(Self::begin(member, group, start, did, out))
    }

    fn forgotten(&self, group: &Group) -> AnyMember {
        let watch = W::new(self.me(), group, &Start::default());
        AnyMember::new(Self { member: self.member.state().forgotten(group), watch })
    }

    /// None: a history never repeats, so no two watched worlds would become equal.
    fn settler(&self) -> Option<Box<dyn Settler>> {
        None
    }

    fn serves(&self, message: &AnyMessage, from: NodeId, to: NodeId) -> Option<NodeId> {
        self.member.serves(&message.get::<NotedMessage<W::Note>>().inner, from, to)
    }

    fn floor(&self) -> Option<u64> {
        let floor = self.member.floor().and_then(|floor| self.watch.floor(floor));
        floor.filter(|floor| *floor < CLOCK_LIMIT)
    }

    fn info(&self) -> &'static Info {
        self.member.info()
    }

    fn me(&self) -> NodeId {
        self.member.me()
    }

    fn phase(&self) -> Phase {
        self.member.phase()
    }

    fn held(&self) -> u32 {
        self.member.held()
    }

    fn mode(&self) -> Mode {
        self.member.mode()
    }

    fn waiting(&self) -> Option<Mode> {
        self.member.waiting()
    }

    fn may_acquire(&self, group: &Group, mode: Mode) -> bool {
        self.member.may_acquire(group, mode)
    }

    fn may_release(&self) -> bool {
        self.member.may_release()
    }

    fn may_withdraw(&self) -> bool {
        self.member.may_withdraw()
    }

    fn wanted(&self) -> bool {
        self.member.wanted()
    }

    fn algorithm(&self) -> &dyn Any {
        self.member.state().algorithm()
    }

    fn print_algorithm(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.member.state().print_algorithm(f)
    }
}

/// The watch of a node.
///
/// # Panics
///
/// Panics if the nodes of the world have no watch of this type.
pub fn watch_of<W: Watch>(world: &World, node: NodeId) -> &W {
    let state: &dyn Any = world.nodes().member(node).state();
    let watched: &WatchedMember<W> = state.downcast_ref().expect("the nodes have this watch");
    &watched.watch
}

/// The live nodes that are inside, with their watches.
fn inside<W: Watch>(world: &World) -> impl Iterator<Item = (NodeId, &W)> {
    let mut nodes = world.live_in(Phase::Inside);
    nodes.extend(world.live_in(Phase::Waiting));
    nodes.retain(|node| world.nodes().member(*node).held() > 0);
    nodes.into_iter().map(|node| (node, watch_of(world, node)))
}

/// All nodes with their watches.
fn all<W: Watch>(world: &World) -> impl Iterator<Item = (NodeId, &W)> {
    world.group().nodes().map(|node| (node, watch_of(world, node)))
}
