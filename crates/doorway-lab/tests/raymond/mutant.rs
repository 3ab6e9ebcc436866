//! Algorithms bent on purpose, to see that the rules they break are needed.

use std::fmt::Debug;
use std::hash::Hash;

use doorway_core::{Algorithm, Effects, Group, Info, Mode, NodeId, Start};

/// What is done to the messages of a node before the algorithm sees them.
pub(crate) trait Bend<A: Algorithm>: Clone + Debug + Default + Eq + Hash {
    /// The node sends `message`.
    fn sent(&mut self, _message: &A::Message) {}

    /// What the node takes the message of `from` for; `None`: it overlooks it.
    fn received(&mut self, from: NodeId, message: A::Message) -> Option<A::Message>;
}

/// Changes nothing but what every mutant does: to shrug off what the algorithm would reject.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Tolerant;

impl<A: Algorithm> Bend<A> for Tolerant {
    fn received(&mut self, _from: NodeId, message: A::Message) -> Option<A::Message> {
        Some(message)
    }
}

/// An algorithm with a bend.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mutant<A, B> {
    algorithm: A,
    bend: B,
}

impl<A: Algorithm, B: Bend<A>> Algorithm for Mutant<A, B> {
    type Message = A::Message;

    const INFO: Info = A::INFO;

    fn new(me: NodeId, group: &Group, start: &Start) -> Self {
        Self { algorithm: A::new(me, group, start), bend: B::default() }
    }

    fn start(&mut self, group: &Group, out: &mut Effects<A::Message>) {
        self.algorithm.start(group, out);
        self.note(out);
    }

    fn acquire(&mut self, group: &Group, mode: Mode, out: &mut Effects<A::Message>) {
        self.algorithm.acquire(group, mode, out);
        self.note(out);
    }

    fn receive(
        &mut self,
        group: &Group,
        from: NodeId,
        message: A::Message,
        out: &mut Effects<A::Message>,
    ) {
        if let Some(message) = self.bend.received(from, message) {
            self.algorithm.receive(group, from, message, out);
            if out.rejected().is_some() {
                out.clear();
            }
            self.note(out);
        }
    }

    fn release(&mut self, group: &Group, out: &mut Effects<A::Message>) {
        self.algorithm.release(group, out);
        self.note(out);
    }

    fn wanted(&self) -> bool {
        self.algorithm.wanted()
    }

    fn floor(&self) -> Option<u64> {
        None
    }
}

impl<A: Algorithm, B: Bend<A>> Mutant<A, B> {
    fn note(&mut self, out: &Effects<A::Message>) {
        for (_, message) in out.sends() {
            self.bend.sent(message);
        }
    }
}
