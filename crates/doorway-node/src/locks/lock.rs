//! One lock at one node: the algorithm, and the clients that queue in front of it.
//!
//! The clients of a node pass the lock among themselves without a message. While another node waits
//! they may do so only so many times; then the lock moves on. A client may give up at any moment:
//! the algorithm never learns of it, for a grant that nobody wants is released at once.

use std::collections::VecDeque;

use doorway_core::{Mode, NodeId, NodeSet};
use smallvec::SmallVec;

use super::machine::{Fault, Machine, Sends};
use super::rule::Rule;

/// A client of this node, from when it asks until it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u32);

/// What came of a step: messages to send, and clients that are now inside, both in order.
#[derive(Clone, Debug, Default)]
pub struct Moves {
    /// The messages.
    pub sends: Sends,
    /// The clients.
    pub granted: Vec<ClientId>,
    /// How often the algorithm let the node in for them; all other grants passed between clients.
    pub entries: u32,
}

impl Moves {
    /// Forget everything, keeping the buffers.
    pub fn clear(&mut self) {
        self.sends.clear();
        self.granted.clear();
        self.entries = 0;
    }
}

/// A lock at this node. Between two views it has no machine: clients queue and leave, and nobody
/// enters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lock<M: ?Sized> {
    machine: Option<Box<M>>,
    inside: SmallVec<[(ClientId, Mode); 1]>,
    queue: VecDeque<(ClientId, Mode)>,
    /// Grants since the node entered, or since nobody else was waiting.
    turns: u32,
    /// To whom a message went since the open request was made, with nothing heard of them since.
    unheard: NodeSet,
}

impl<M: ?Sized> Default for Lock<M> {
    fn default() -> Self {
        Self {
            machine: None,
            inside: SmallVec::new(),
            queue: VecDeque::new(),
            turns: 0,
            unheard: NodeSet::new(),
        }
    }
}

impl<M: Machine + ?Sized> Lock<M> {
    /// A view begins. Whoever left since the last one is released now, whoever waits asks again.
    pub fn start(&mut self, rule: &Rule, machine: Box<M>, out: &mut Moves) -> Result<(), Fault> {
        self.machine = Some(machine);
        self.turns = 0;
        self.unheard = NodeSet::new();
        self.settle(rule, out)
    }

    /// The view ends: from now on nobody enters.
    pub fn stop(&mut self) {
        self.machine = None;
    }

    /// What the clients of this node hold: the mode, and how many permits.
    pub fn holding(&self, rule: &Rule) -> Option<(Mode, u32)> {
        let (_, mode) = self.inside.first()?;
        Some((*mode, if rule.info.permits { self.inside.len() as u32 } else { 1 }))
    }

    /// A client wants in.
    pub fn acquire(
        &mut self,
        rule: &Rule,
        client: ClientId,
        mode: Mode,
        out: &mut Moves,
    ) -> Result<(), Fault> {
        self.queue.push_back((client, mode));
        self.settle(rule, out)
    }

    /// A client wants in if that is possible this very moment, without a message.
    pub fn try_acquire(
        &mut self,
        rule: &Rule,
        client: ClientId,
        mode: Mode,
        out: &mut Moves,
    ) -> Result<(), Fault> {
        if !self.queue.is_empty() {
            return Ok(());
        }
        let Some(machine) = self.machine.as_mut() else { return Ok(()) };
        if machine.may_acquire(&rule.group, mode) && machine.try_acquire(&rule.group, mode)? {
            self.turns = 0;
            out.entries += 1;
        }
        if self.admits(rule, mode) {
            self.admit(client, mode);
            out.granted.push(client);
        }
        Ok(())
    }

    /// A client leaves: it was inside, or it gives up. Whether it was here at all comes back.
    pub fn leave(&mut self, rule: &Rule, client: ClientId, out: &mut Moves) -> Result<bool, Fault> {
        if let Some(at) = self.inside.iter().position(|(inside, _)| *inside == client) {
            self.inside.remove(at);
        } else if let Some(at) = self.place(client) {
            self.queue.remove(at);
        } else {
            return Ok(false);
        }
        self.settle(rule, out)?;
        Ok(true)
    }

    /// A message of a peer has arrived.
    pub fn receive(
        &mut self,
        rule: &Rule,
        from: NodeId,
        payload: &[u8],
        out: &mut Moves,
    ) -> Result<(), Fault> {
        let Some(machine) = self.machine.as_mut() else { return Ok(()) };
        let sent = out.sends.len();
        let entered = machine.receive(&rule.group, from, payload, &mut out.sends)?;
        self.unheard.remove(from);
        self.note(entered, sent, out);
        self.settle(rule, out)
    }

    /// The one place where it is decided what to do next: let a client in, give back what nobody
    /// can use, or ask.
    fn settle(&mut self, rule: &Rule, out: &mut Moves) -> Result<(), Fault> {
        loop {
            while let Some(&(client, mode)) = self.queue.front()
                && self.admits(rule, mode)
            {
                self.queue.pop_front();
                self.admit(client, mode);
                out.granted.push(client);
            }
            let spare = self.spare(rule);
            let next = self.queue.front().map(|(_, mode)| *mode);
            let Some(machine) = self.machine.as_mut() else { return Ok(()) };
            let sent = out.sends.len();
            let entered = if spare {
                machine.release(&rule.group, &mut out.sends)?
            } else if let Some(mode) = next
                && machine.may_acquire(&rule.group, mode)
            {
                machine.acquire(&rule.group, mode, &mut out.sends)?
            } else {
                return Ok(());
            };
            self.note(entered, sent, out);
        }
    }

    /// Is there room for one more of this mode under what the node holds, and is it our turn?
    fn admits(&self, rule: &Rule, mode: Mode) -> bool {
        let Some(machine) = self.machine.as_ref() else { return false };
        let room = if rule.info.permits || self.inside.is_empty() {
            self.spare(rule) && (machine.mode() == Mode::Exclusive || mode == Mode::Shared)
        } else {
            mode == Mode::Shared && self.inside.iter().all(|(_, mode)| *mode == Mode::Shared)
        };
        room && (self.turns == 0 || self.turns <= rule.handovers || !machine.wanted())
    }

    /// Does the node hold something that no client uses?
    fn spare(&self, rule: &Rule) -> bool {
        let used = if rule.info.permits { self.inside.len() } else { self.inside.len().min(1) };
        self.machine.as_ref().is_some_and(|machine| machine.held() as usize > used)
    }

    fn admit(&mut self, client: ClientId, mode: Mode) {
        self.inside.push((client, mode));
        let wanted = self.machine.as_ref().is_some_and(|machine| machine.wanted());
        self.turns = if wanted { self.turns.saturating_add(1) } else { 1 };
    }

    /// Remember what the machine did: whether it entered, and what it sent after the first `sent`.
    fn note(&mut self, entered: bool, sent: usize, out: &mut Moves) {
        if entered {
            out.entries += 1;
            // An entry that nobody uses is given back, and is no turn for those who hold permits.
            if !self.queue.is_empty() {
                self.turns = 0;
            }
        }
        if self.machine.as_ref().is_some_and(|machine| machine.waiting().is_some()) {
            for (to, _) in &out.sends[sent..] {
                self.unheard.insert(*to);
            }
        } else {
            self.unheard = NodeSet::new();
        }
    }

    /// The place of a waiting client in the queue, 0 being the next of this node.
    pub fn place(&self, client: ClientId) -> Option<usize> {
        self.queue.iter().position(|(waiting, _)| *waiting == client)
    }

    /// The clients inside.
    pub fn inside(&self) -> impl Iterator<Item = (ClientId, Mode)> + '_ {
        self.inside.iter().copied()
    }

    /// The clients that wait, the next one first.
    pub fn queue(&self) -> impl ExactSizeIterator<Item = (ClientId, Mode)> + '_ {
        self.queue.iter().copied()
    }

    /// Those who were sent something for the open request and have not answered since.
    pub fn unheard(&self) -> &NodeSet {
        &self.unheard
    }

    /// The machine, if a view is running.
    pub fn machine(&self) -> Option<&M> {
        self.machine.as_deref()
    }

    /// Has this node no client here?
    pub fn idle(&self) -> bool {
        self.inside.is_empty() && self.queue.is_empty()
    }

    /// If the lock may be forgotten: from where it must start again.
    pub fn floor(&self) -> Option<u64> {
        if !self.idle() {
            return None;
        }
        self.machine.as_ref().map_or(Some(0), |machine| machine.floor())
    }
}
