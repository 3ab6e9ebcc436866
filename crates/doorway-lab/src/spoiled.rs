//! Algorithms with one rule broken, to show that the rule is needed and that its loss is found.

use std::fmt::Debug;
use std::hash::Hash;

use doorway_core::{Algorithm, Effects, Group, Info, Mode, NodeId, Snapshot, Start};

/// A flaw that is added to a correct algorithm, with the state that the flaw needs.
pub trait Spoil: Clone + Debug + Default + Eq + Hash + Send + Sync + 'static {
    /// The correct algorithm.
    type Of: Algorithm;

    /// Are messages ignored that the correct algorithm would reject?
    const TOLERANT: bool = false;

    /// The floor from which a forgotten node starts again.
    const FLOOR: Option<u64> = None;

    /// Change a message that arrives; `None` if it is ignored.
    fn hears(&mut self, _from: NodeId, message: Message<Self>) -> Option<Message<Self>> {
        Some(message)
    }

    /// Does the client enter on this message, even if the correct algorithm does not let it in?
    fn enters(&mut self, _message: &Message<Self>) -> bool {
        false
    }

    /// Change the messages that an event made the node send.
    fn change(&mut self, sends: Sends<Self>) -> Sends<Self> {
        sends
    }

    /// Settle a group in a wrong way.
    fn settle(_group: &Group, _snapshot: &mut Snapshot<SpoiledAlgorithm<Self>>) {}

    /// Change the messages that the node sends when its client gives up.
    fn withdraw(&mut self, sends: Sends<Self>) -> Sends<Self> {
        self.change(sends)
    }

    /// Change the messages that the node sends when its client leaves.
    fn leave(&mut self, sends: Sends<Self>) -> Sends<Self> {
        self.change(sends)
    }
}

/// A message of the correct algorithm.
pub type Message<S> = <<S as Spoil>::Of as Algorithm>::Message;

/// The messages that an event made a node send.
pub type Sends<S> = Vec<(NodeId, Message<S>)>;

/// The correct algorithm with a flaw.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SpoiledAlgorithm<S: Spoil> {
    /// The correct algorithm.
    pub sound: S::Of,
    spoil: S,
}

impl<S: Spoil> SpoiledAlgorithm<S> {
    fn change(&mut self, out: &mut Effects<Message<S>>) {
        if S::TOLERANT && out.rejected().is_some() {
            out.clear();
        }
        let sends = out.drain().collect();
        send(self.spoil.change(sends), out);
    }
}

fn send<M>(sends: Vec<(NodeId, M)>, out: &mut Effects<M>) {
    for (to, message) in sends {
        out.send(to, message);
    }
}

impl<S: Spoil> Algorithm for SpoiledAlgorithm<S> {
    type Message = Message<S>;

    const INFO: Info = S::Of::INFO;

    fn new(me: NodeId, group: &Group, start: &Start) -> Self {
        Self { sound: S::Of::new(me, group, start), spoil: S::default() }
    }

    fn start(&mut self, group: &Group, out: &mut Effects<Message<S>>) {
        self.sound.start(group, out);
        self.change(out);
    }

    fn acquire(&mut self, group: &Group, mode: Mode, out: &mut Effects<Message<S>>) {
        self.sound.acquire(group, mode, out);
        self.change(out);
    }

    fn receive(
        &mut self,
        group: &Group,
        from: NodeId,
        message: Message<S>,
        out: &mut Effects<Message<S>>,
    ) {
        let enters = self.spoil.enters(&message);
        if let Some(message) = self.spoil.hears(from, message) {
            self.sound.receive(group, from, message, out);
        }
        self.change(out);
        if enters {
            out.enter();
        }
    }

    fn release(&mut self, group: &Group, out: &mut Effects<Message<S>>) {
        self.sound.release(group, out);
        let sends = out.drain().collect();
        send(self.spoil.leave(sends), out);
    }

    fn withdraw(&mut self, group: &Group, out: &mut Effects<Message<S>>) {
        self.sound.withdraw(group, out);
        let sends = out.drain().collect();
        send(self.spoil.withdraw(sends), out);
    }

    fn wanted(&self) -> bool {
        self.sound.wanted()
    }

    fn floor(&self) -> Option<u64> {
        S::FLOOR
    }

    fn settle(group: &Group, snapshot: &mut Snapshot<Self>) {
        S::settle(group, snapshot);
    }
}
