//! A coordinator with different policies, some of them unfair.

use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;

use doorway_core::algorithms::central::{Central, Message};
use doorway_core::{Algorithm, Effects, Group, Info, Mode, NodeId, Start};

/// The policy of a coordinator towards waiting nodes.
pub(crate) trait Manners: Clone + Debug + Eq + Hash + Send + Sync + 'static {
    /// Is the newest request served first?
    const LAST_FIRST: bool = false;
    /// Does its own client keep the right to enter when it leaves, in case it asks again?
    const GREEDY: bool = false;
}

/// The oldest request is served first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fair {}

impl Manners for Fair {}

/// The newest request is served first: the queue is a stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LastFirst {}

impl Manners for LastFirst {
    const LAST_FIRST: bool = true;
}

/// The coordinator's own client keeps the right to enter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Greedy {}

impl Manners for Greedy {
    const GREEDY: bool = true;
}

/// Node 1 is the coordinator.
const COORDINATOR: NodeId = NodeId(0);

/// The state of one node; only that of the coordinator changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Coordinator<M> {
    me: NodeId,
    busy: bool,
    queue: Vec<NodeId>,
    manners: PhantomData<M>,
}

impl<M: Manners> Coordinator<M> {
    fn serve(&mut self, out: &mut Effects<Message>) {
        if self.busy || self.queue.is_empty() {
            return;
        }
        let at = if M::LAST_FIRST { self.queue.len() - 1 } else { 0 };
        let next = self.queue.remove(at);
        self.busy = true;
        if next == COORDINATOR { out.enter() } else { out.send(next, Message::Grant) }
    }
}

impl<M: Manners> Algorithm for Coordinator<M> {
    type Message = Message;

    const INFO: Info = Central::INFO;

    fn new(me: NodeId, _group: &Group, _start: &Start) -> Self {
        Self { me, busy: false, queue: Vec::new(), manners: PhantomData }
    }

    fn acquire(&mut self, _group: &Group, _mode: Mode, out: &mut Effects<Message>) {
        if self.me != COORDINATOR {
            return out.send(COORDINATOR, Message::Request);
        }
        if M::GREEDY && !self.busy {
            self.busy = true;
            return out.enter();
        }
        self.queue.push(COORDINATOR);
        self.serve(out);
    }

    fn receive(&mut self, _group: &Group, from: NodeId, msg: Message, out: &mut Effects<Message>) {
        match msg {
            Message::Grant => return out.enter(),
            Message::Request => self.queue.push(from),
            Message::Release => self.busy = false,
        }
        self.serve(out);
    }

    fn release(&mut self, _group: &Group, out: &mut Effects<Message>) {
        if self.me != COORDINATOR {
            return out.send(COORDINATOR, Message::Release);
        }
        self.busy = false;
        if !M::GREEDY {
            self.serve(out);
        }
    }

    fn wanted(&self) -> bool {
        true
    }

    fn floor(&self) -> Option<u64> {
        None
    }
}
