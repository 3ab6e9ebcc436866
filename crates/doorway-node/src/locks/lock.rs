//! One lock at one node: the algorithm, and the clients that queue in front of it.
//!
//! The clients of a node pass the lock among themselves without a message. While another node waits
//! they may do so only so many times; then the lock moves on. A client may give up at any moment:
//! the algorithm never learns of it, for a grant that nobody wants is released at once.

use std::collections::VecDeque;

use doorway_core::{Mode, NodeId, NodeSet};
use smallvec::SmallVec;

use super::event::LockEvent;
use super::machine::{Fault, Machine, Sends};
use super::rule::Rule;

/// A client of this node, from when it asks until it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u32);

/// What came of a step: messages to send, and clients that are now inside, both in order.
#[derive(Clone, Debug, Default)]
pub struct LockEffects {
    /// The messages.
    pub sends: Sends,
    /// The clients.
    pub granted: Vec<ClientId>,
    /// How often the algorithm let the node in for them; all other grants passed between clients.
    pub entries: u32,
    /// What the machine did, if that is to be written down.
    pub record: Option<Vec<LockEvent>>,
}

impl LockEffects {
    /// Forget what was to be done, keeping the buffers; what happened has happened.
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
    /// Only while somebody waits or a request is open, for most locks are free or held in peace.
    wait: Option<Box<Wait>>,
    /// Grants since the node entered, or since nobody else was waiting.
    turns: u32,
}

/// What a lock remembers while it is waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Wait {
    queue: VecDeque<(ClientId, Mode)>,
    /// To whom a message went since the open request was made, with nothing heard of them since.
    unheard: NodeSet,
}

impl<M: ?Sized> Default for Lock<M> {
    fn default() -> Self {
        Self { machine: None, inside: SmallVec::new(), wait: None, turns: 0 }
    }
}

impl<M: Machine + ?Sized> Lock<M> {
    /// A view begins. Whoever left since the last one is released now, whoever waits asks again.
    pub fn start(
        &mut self,
        rule: &Rule,
        machine: Box<M>,
        out: &mut LockEffects,
    ) -> Result<(), Fault> {
        self.machine = Some(machine);
        self.turns = 0;
        if let Some(wait) = &mut self.wait {
            wait.unheard.clear();
        }
        self.settle(rule, out)
    }

    /// The view ends: from now on nobody enters.
    pub fn stop(&mut self) {
        self.machine = None;
    }

    /// A client was inside before this process began, and still is: possible before the first view
    /// alone, and only beside those with whom it can have been inside.
    pub fn reclaim(&mut self, rule: &Rule, client: ClientId, mode: Mode) -> bool {
        let room = if rule.info.permits {
            self.inside.len() < rule.group.permits() as usize
        } else {
            let shared = |mode: Mode| mode == Mode::Shared;
            self.inside.is_empty() || shared(mode) && self.inside.iter().all(|(_, m)| shared(*m))
        };
        let room = room && self.machine.is_none();
        if room {
            self.inside.push((client, mode));
        }
        room
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
        out: &mut LockEffects,
    ) -> Result<(), Fault> {
        if self.waiters() == 0 && self.enter_at_once(rule, client, mode, out)? {
            return Ok(());
        }
        self.wait.get_or_insert_default().queue.push_back((client, mode));
        self.settle(rule, out)
    }

    /// The way of a client that meets nobody: it never queues, so it costs no memory.
    fn enter_at_once(
        &mut self,
        rule: &Rule,
        client: ClientId,
        mode: Mode,
        out: &mut LockEffects,
    ) -> Result<bool, Fault> {
        let Some(machine) = self.machine.as_mut() else { return Ok(false) };
        if machine.may_acquire(&rule.group, mode) {
            let sent = out.sends.len();
            let entered = machine.acquire(&rule.group, mode, &mut out.sends)?;
            if entered {
                self.turns = 0;
                out.entries += 1;
            }
            self.track_unheard(sent, out);
            self.record(|| LockEvent::Acquire(mode), entered, sent, out);
        }
        Ok(self.admit_if_room(rule, client, mode, out))
    }

    /// A client wants in if that is possible this very moment, without a message.
    pub fn try_acquire(
        &mut self,
        rule: &Rule,
        client: ClientId,
        mode: Mode,
        out: &mut LockEffects,
    ) -> Result<(), Fault> {
        if self.waiters() > 0 {
            return Ok(());
        }
        let Some(machine) = self.machine.as_mut() else { return Ok(()) };
        if machine.may_acquire(&rule.group, mode) && machine.try_acquire(&rule.group, mode)? {
            self.turns = 0;
            out.entries += 1;
            self.record(|| LockEvent::Acquire(mode), true, out.sends.len(), out);
        }
        self.admit_if_room(rule, client, mode, out);
        Ok(())
    }

    /// A client leaves: it was inside, or it gives up. Whether it was here at all comes back.
    pub fn leave(
        &mut self,
        rule: &Rule,
        client: ClientId,
        out: &mut LockEffects,
    ) -> Result<bool, Fault> {
        if let Some(at) = self.inside.iter().position(|(inside, _)| *inside == client) {
            self.inside.remove(at);
        } else if let (Some(at), Some(wait)) = (self.place(client), &mut self.wait) {
            wait.queue.remove(at);
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
        out: &mut LockEffects,
    ) -> Result<(), Fault> {
        let Some(machine) = self.machine.as_mut() else { return Ok(()) };
        let sent = out.sends.len();
        let entered = machine.receive(&rule.group, from, payload, &mut out.sends)?;
        if let Some(wait) = &mut self.wait {
            wait.unheard.remove(from);
        }
        self.account(entered, sent, out);
        self.record(|| LockEvent::Receive { from }, entered, sent, out);
        self.settle(rule, out)
    }

    /// The one place where it is decided what to do next: let a client in, give back what nobody
    /// can use, or ask.
    fn settle(&mut self, rule: &Rule, out: &mut LockEffects) -> Result<(), Fault> {
        loop {
            while let Some((client, mode)) = self.first()
                && self.admit_if_room(rule, client, mode, out)
            {
                self.wait.as_mut().and_then(|wait| wait.queue.pop_front());
            }
            self.wait.take_if(|wait| wait.queue.is_empty() && wait.unheard.is_empty());
            let spare = self.spare(rule);
            let next = self.first().map(|(_, mode)| mode);
            let Some(machine) = self.machine.as_mut() else { return Ok(()) };
            let sent = out.sends.len();
            let (entered, event) = if spare {
                (machine.release(&rule.group, &mut out.sends)?, LockEvent::Release)
            } else if let Some(mode) = next
                && machine.may_acquire(&rule.group, mode)
            {
                (machine.acquire(&rule.group, mode, &mut out.sends)?, LockEvent::Acquire(mode))
            } else {
                return Ok(());
            };
            self.account(entered, sent, out);
            self.record(|| event, entered, sent, out);
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

    fn admit_if_room(
        &mut self,
        rule: &Rule,
        client: ClientId,
        mode: Mode,
        out: &mut LockEffects,
    ) -> bool {
        let admits = self.admits(rule, mode);
        if admits {
            self.inside.push((client, mode));
            let wanted = self.machine.as_ref().is_some_and(|machine| machine.wanted());
            self.turns = if wanted { self.turns.saturating_add(1) } else { 1 };
            out.granted.push(client);
        }
        admits
    }

    /// Remember what the machine did: whether it entered, and what it sent after the first `sent`.
    fn account(&mut self, entered: bool, sent: usize, out: &mut LockEffects) {
        if entered {
            out.entries += 1;
            // An entry that nobody uses is given back, and is no turn for those who hold permits.
            if self.waiters() > 0 {
                self.turns = 0;
            }
        }
        self.track_unheard(sent, out);
    }

    /// Write down a step of the machine, if that is wanted: what happened to it, and what it did.
    fn record(
        &self,
        what: impl FnOnce() -> LockEvent,
        entered: bool,
        sent: usize,
        out: &mut LockEffects,
    ) {
        let (Some(record), Some(machine)) = (&mut out.record, &self.machine) else { return };
        record.push(what());
        record.extend(entered.then_some(LockEvent::Enter));
        for (to, payload) in &out.sends[sent..] {
            record.push(LockEvent::Send { to: *to, message: machine.show(payload) });
        }
    }

    fn track_unheard(&mut self, sent: usize, out: &LockEffects) {
        if self.machine.as_ref().is_some_and(|machine| machine.waiting().is_some()) {
            let unheard = &mut self.wait.get_or_insert_default().unheard;
            for (to, _) in &out.sends[sent..] {
                unheard.insert(*to);
            }
        } else if let Some(wait) = &mut self.wait {
            wait.unheard.clear();
        }
    }

    /// The place of a waiting client in the queue, 0 being the next of this node.
    pub fn place(&self, client: ClientId) -> Option<usize> {
        self.queue().position(|(waiting, _)| waiting == client)
    }

    /// The clients inside.
    pub fn inside(&self) -> impl Iterator<Item = (ClientId, Mode)> + '_ {
        self.inside.iter().copied()
    }

    /// The clients that wait, the next one first.
    pub fn queue(&self) -> impl Iterator<Item = (ClientId, Mode)> + '_ {
        self.wait.iter().flat_map(|wait| wait.queue.iter().copied())
    }

    /// How many clients wait.
    pub fn waiters(&self) -> usize {
        self.wait.as_ref().map_or(0, |wait| wait.queue.len())
    }

    fn first(&self) -> Option<(ClientId, Mode)> {
        self.wait.as_ref().and_then(|wait| wait.queue.front().copied())
    }

    /// Those who were sent something for the open request and have not answered since.
    pub fn unheard(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.wait.iter().flat_map(|wait| wait.unheard.iter())
    }

    /// The machine, if a view is running.
    pub fn machine(&self) -> Option<&M> {
        self.machine.as_deref()
    }

    /// Has this node no client here?
    pub fn is_idle(&self) -> bool {
        self.inside.is_empty() && self.waiters() == 0
    }

    /// If the lock may be forgotten: from where it must start again.
    pub fn floor(&self) -> Option<u64> {
        if !self.is_idle() {
            return None;
        }
        self.machine.as_ref().map_or(Some(0), |machine| machine.floor())
    }
}
