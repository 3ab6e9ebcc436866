//! All nodes of a group in one block, with the messages under way beside them.

use std::fmt::Debug;

use doorway_core::{Algorithm, Breach, Effects, Group, Input, Member, Mode, NodeId, Phase, Start};

use crate::nodes::Members;

/// The number of a message under way. It is reused after the message has arrived.
pub(crate) type Slot = u32;

/// A message that was just sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SentMessage {
    pub(crate) slot: Slot,
    /// The size of the message in bytes on the wire.
    pub(crate) bytes: u32,
    /// The node whose request the message serves, if that is not the request that caused it.
    pub(crate) serves: Option<NodeId>,
}

/// The nodes of a group of some algorithm. A message is known by its [`Slot`] from the step that
/// sends it to the step that receives it.
pub(crate) trait Troupe:
    Members<Message = Slot, SentMessage = SentMessage> + Debug + Send
{
    /// Begin the next node, whose number follows that of the node begun last.
    fn begin(
        &mut self,
        group: &Group,
        start: &Start,
        out: &mut Effects<SentMessage>,
    ) -> Result<(), Breach>;

    /// May a client of this node request the lock now?
    fn may_acquire(&self, group: &Group, node: NodeId, mode: Mode) -> bool;

    /// Whether the node is outside, waiting or inside.
    fn phase(&self, node: NodeId) -> Phase;

    /// A message as text.
    fn text(&self, slot: Slot) -> String;

    /// Put a second copy of a message under way.
    fn duplicate(&mut self, slot: Slot) -> Slot;

    /// Take a message out of the network without delivering it.
    fn discard(&mut self, slot: Slot);
}

impl Members for Box<dyn Troupe> {
    type Message = Slot;
    type SentMessage = SentMessage;

    fn step(
        &mut self,
        group: &Group,
        node: NodeId,
        input: Input<Slot>,
        out: &mut Effects<SentMessage>,
    ) -> Result<(), Breach> {
        (**self).step(group, node, input, out)
    }

    fn held(&self, node: NodeId) -> u32 {
        (**self).held(node)
    }

    fn mode(&self, node: NodeId) -> Mode {
        (**self).mode(node)
    }
}

/// The troupe of algorithm `A`.
#[derive(Debug)]
pub(super) struct TypedTroupe<A: Algorithm> {
    nodes: Vec<Member<A>>,
    messages: Messages<A::Message>,
    /// The buffer of the last step, kept for the next one.
    effects: Effects<A::Message>,
}

impl<A: Algorithm> TypedTroupe<A> {
    pub(super) fn new(size: usize) -> Self {
        let messages = Messages { slots: Vec::new(), free: Vec::new() };
        Self { nodes: Vec::with_capacity(size), messages, effects: Effects::default() }
    }

    /// Report what the last step of `node` did. Its messages are put into slots.
    fn hand_on(&mut self, node: NodeId, out: &mut Effects<SentMessage>) {
        out.clear();
        if self.effects.entered() {
            out.enter();
        }
        if let Some(reason) = self.effects.rejected() {
            out.reject(reason);
        }
        for (to, message) in self.effects.drain() {
            let bytes = postcard::experimental::serialized_size(&message).unwrap_or(0) as u32;
            let serves = A::serves(&message, node, to);
            out.send(to, SentMessage { slot: self.messages.put(message), bytes, serves });
        }
    }
}

impl<A: Algorithm> Members for TypedTroupe<A> {
    type Message = Slot;
    type SentMessage = SentMessage;

    fn step(
        &mut self,
        group: &Group,
        node: NodeId,
        input: Input<Slot>,
        out: &mut Effects<SentMessage>,
    ) -> Result<(), Breach> {
        let input = input.map(|slot| self.messages.take(slot));
        let stepped = self.nodes[node.index()].step(group, input, &mut self.effects);
        self.hand_on(node, out);
        stepped
    }

    fn held(&self, node: NodeId) -> u32 {
        self.nodes[node.index()].held()
    }

    fn mode(&self, node: NodeId) -> Mode {
        self.nodes[node.index()].mode()
    }
}

impl<A: Algorithm> Troupe for TypedTroupe<A> {
    fn begin(
        &mut self,
        group: &Group,
        start: &Start,
        out: &mut Effects<SentMessage>,
    ) -> Result<(), Breach> {
        let me = NodeId::at(self.nodes.len());
        self.nodes.push(Member::begin(me, group, start, &mut self.effects)?);
        self.hand_on(me, out);
        Ok(())
    }

    fn may_acquire(&self, group: &Group, node: NodeId, mode: Mode) -> bool {
        self.nodes[node.index()].may_acquire(group, mode)
    }

    fn phase(&self, node: NodeId) -> Phase {
        self.nodes[node.index()].phase()
    }

    fn text(&self, slot: Slot) -> String {
        format!("{:?}", self.messages.get(slot))
    }

    fn duplicate(&mut self, slot: Slot) -> Slot {
        let message = self.messages.get(slot).clone();
        self.messages.put(message)
    }

    fn discard(&mut self, slot: Slot) {
        self.messages.take(slot);
    }
}

/// Messages by slot. The slot of a message that has arrived is used again.
#[derive(Debug)]
struct Messages<M> {
    slots: Vec<Option<M>>,
    free: Vec<Slot>,
}

impl<M> Messages<M> {
    fn put(&mut self, message: M) -> Slot {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = Some(message);
            slot
        } else {
            self.slots.push(Some(message));
            (self.slots.len() - 1) as Slot
        }
    }

    fn get(&self, slot: Slot) -> &M {
        self.slots[slot as usize].as_ref().expect("a slot in use has a message")
    }

    fn take(&mut self, slot: Slot) -> M {
        self.free.push(slot);
        self.slots[slot as usize].take().expect("a slot in use has a message")
    }
}
