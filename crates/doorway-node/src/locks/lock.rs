//! One lock at one node: the state machine of its algorithm, and the queue of clients in front of
//! it.
//!
//! The clients of a node pass the lock among themselves without a message. While another node
//! waits, they do so in *visits*. A visit serves each client that waits at the node as it begins,
//! once; then the lock moves on. So the share of a node follows the number of its clients.
//!
//! Where the clients ask again quickly after they have left, a visit serves each of them several
//! times, which saves messages. Such a client may be away for a moment although the visit is not
//! over, and no other may wait. Then the lock *lingers* for it: the node holds the lock although no
//! client is inside. Without that, a node with one client would get one entry a visit, and each
//! client of another node several. Whether clients come back quickly is for the shard to say.
//!
//! A client may give up at any time. When the last one does, the request of the node is withdrawn,
//! if the algorithm can do that: a request that nobody wants must not keep other nodes waiting. If
//! it cannot, the request stays open, and a grant that no client wants is released at once.

use std::collections::VecDeque;

use doorway_core::{Kind, Mode, NodeId, NodeSet};
use smallvec::SmallVec;

use super::event::LockEvent;
use super::machine::{AlgorithmMachine, Fault, Sends};
use super::rule::Rule;

/// The number of a client of this node, from its request until it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u32);

/// How quickly the clients of a lock come back after they have left, while another node waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pace {
    /// Too slowly, or nobody knows. The visit serves those who have waited from its beginning.
    Slow,
    /// Quickly, but the visit takes long already. Its last round has begun.
    Late,
    /// Quickly. The visit may have another round.
    Quick,
}

/// What a call to a lock leads to: messages to send, and clients that are now inside, both in
/// order.
#[derive(Clone, Debug, Default)]
pub struct LockEffects {
    /// The messages to send.
    pub sends: Sends,
    /// The clients that are now inside.
    pub granted: Vec<ClientId>,
    /// How many times the algorithm let the node enter. The other grants passed between clients.
    pub entries: u32,
    /// The events of the lock, if they are recorded.
    pub record: Option<Vec<LockEvent>>,
}

impl LockEffects {
    /// Clear everything but the recorded events, and keep the buffers.
    pub fn clear(&mut self) {
        self.sends.clear();
        self.granted.clear();
        self.entries = 0;
    }
}

/// A lock at this node. Between two views it has no state machine: clients may queue and leave, and
/// none enters.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Lock<M: ?Sized> {
    machine: Option<Box<M>>,
    inside: SmallVec<[(ClientId, Mode); 1]>,
    /// Present only while a client waits or a request of this node is open, because most locks are
    /// free or held without contention.
    wait: Option<Box<Wait>>,
    /// The grants of this visit: those since the node entered, or since no other node was waiting.
    /// These three numbers are small because most locks never need them. Larger ones count as
    /// 65,535.
    turns: u16,
    /// How many clients waited here as this visit began.
    crowd: u16,
    /// How many grants this visit may have. Each round adds one for each client of the crowd.
    limit: u16,
    /// The node holds the lock for a client that is about to come back.
    lingers: bool,
    /// No client of this node may enter for now, and the node does not ask for the lock.
    shut: bool,
}

/// What a lock needs while clients wait for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Wait {
    queue: VecDeque<(ClientId, Mode)>,
    /// The nodes to which a message was sent since the open request was made, and from which
    /// nothing was heard since. After a withdrawal, the next request may still wait for them.
    unheard: NodeSet,
}

impl<M: ?Sized> Clone for Lock<M>
where
    Box<M>: Clone,
{
    fn clone(&self) -> Self {
        let (machine, inside, wait) =
            (self.machine.clone(), self.inside.clone(), self.wait.clone());
        let Self { turns, crowd, limit, lingers, shut, .. } = *self;
        Self { machine, inside, wait, turns, crowd, limit, lingers, shut }
    }
}

impl<M: ?Sized> Default for Lock<M> {
    fn default() -> Self {
        let (machine, inside, wait) = (None, SmallVec::new(), None);
        let (turns, crowd, limit, lingers, shut) = (0, 0, 0, false, false);
        Self { machine, inside, wait, turns, crowd, limit, lingers, shut }
    }
}

impl<M: AlgorithmMachine + ?Sized> Lock<M> {
    /// Start in a new view with `machine`, which has just begun. What it sent as it began is
    /// already in `out`. The lock is released for clients that left since the last view, and
    /// requested again for those that wait.
    pub fn start(
        &mut self,
        rule: &Rule,
        machine: Box<M>,
        out: &mut LockEffects,
    ) -> Result<(), Fault> {
        self.machine = Some(machine);
        (self.turns, self.crowd, self.limit) = (0, 0, 0);
        if let Some(wait) = &mut self.wait {
            wait.unheard.clear();
        }
        self.settle(rule, out)
    }

    /// End the view: from now on no client enters.
    pub fn stop(&mut self) {
        self.machine = None;
        (self.crowd, self.limit, self.lingers) = (0, 0, false);
        // The numbers of nodes mean others in the next view.
        if let Some(wait) = &mut self.wait {
            wait.unheard.clear();
        }
        self.wait.take_if(|wait| wait.queue.is_empty());
    }

    /// From now on no client enters, and the node does not ask for the lock. What other nodes ask
    /// for is answered as always.
    pub fn shut(&mut self) {
        self.shut = true;
    }

    /// Let clients enter again after [`Lock::shut`]. The lock is requested for those that wait.
    pub fn reopen(&mut self, rule: &Rule, out: &mut LockEffects) -> Result<(), Fault> {
        self.shut = false;
        self.settle(rule, out)
    }

    /// Put a client inside that held the lock before this process started. That is possible only
    /// before the first view, and only beside clients that can have been inside at the same time.
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

    /// What the clients of this node hold by this rule: the mode, and the number of permits. They
    /// may have entered by another rule.
    pub fn holding(&self, rule: &Rule) -> Option<(Mode, u32)> {
        self.inside.first()?;
        let shared = rule.info.shared && self.inside.iter().all(|(_, mode)| *mode == Mode::Shared);
        let mode = if shared { Mode::Shared } else { Mode::Exclusive };
        Some((mode, if rule.info.permits { self.inside.len() as u32 } else { 1 }))
    }

    /// Remove all clients that wait for the lock in shared mode, and return them.
    pub(super) fn refuse_shared(&mut self) -> Vec<ClientId> {
        let Some(wait) = &mut self.wait else { return Vec::new() };
        let shared = wait.queue.iter().filter(|(_, mode)| *mode == Mode::Shared);
        let refused = shared.map(|(client, _)| *client).collect();
        wait.queue.retain(|(_, mode)| *mode != Mode::Shared);
        refused
    }

    /// A client requests the lock.
    pub fn acquire(
        &mut self,
        rule: &Rule,
        client: ClientId,
        mode: Mode,
        out: &mut LockEffects,
    ) -> Result<(), Fault> {
        if self.waiters() == 0 && !self.shut && self.enter_at_once(rule, client, mode, out)? {
            return Ok(());
        }
        self.wait.get_or_insert_default().queue.push_back((client, mode));
        self.settle(rule, out)
    }

    /// The fast path for a lock without contention: the client never queues, so it costs no memory.
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

    /// A client requests the lock, but only if it can enter immediately and without a message.
    pub fn try_acquire(
        &mut self,
        rule: &Rule,
        client: ClientId,
        mode: Mode,
        out: &mut LockEffects,
    ) -> Result<(), Fault> {
        if self.waiters() > 0 || self.shut {
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

    /// A client leaves: it was inside, or it gives up waiting. Returns whether it was inside or
    /// waiting. `pace` says how quickly clients come back. After this call the lock may linger:
    /// then [`Lock::end_linger`] must be called soon.
    pub fn leave(
        &mut self,
        rule: &Rule,
        client: ClientId,
        pace: Pace,
        out: &mut LockEffects,
    ) -> Result<bool, Fault> {
        if let Some(at) = self.inside.iter().position(|(inside, _)| *inside == client) {
            self.inside.remove(at);
            if pace != Pace::Slow && self.is_disputed(rule) {
                let handovers = u16::try_from(rule.handovers).unwrap_or(u16::MAX);
                let most = self.crowd.saturating_mul(handovers);
                if pace == Pace::Quick && self.turns >= self.limit && self.limit < most {
                    self.limit = self.limit.saturating_add(self.crowd);
                }
                self.lingers = self.may_linger(rule);
            }
        } else if let (Some(at), Some(wait)) = (self.place(client), &mut self.wait) {
            wait.queue.remove(at);
        } else {
            return Ok(false);
        }
        self.settle(rule, out)?;
        Ok(true)
    }

    /// The lock lingers no longer: if no client has come back, it goes to the node that waits.
    pub fn end_linger(&mut self, rule: &Rule, out: &mut LockEffects) -> Result<(), Fault> {
        self.lingers = false;
        self.settle(rule, out)
    }

    /// A message of another member has arrived.
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

    /// Decide what to do next, until there is nothing left to do: let a client enter, release what
    /// no client can use, ask for the lock, or withdraw a request that no client wants. Every
    /// decision is made here.
    fn settle(&mut self, rule: &Rule, out: &mut LockEffects) -> Result<(), Fault> {
        loop {
            while let Some((client, mode)) = self.first()
                && self.admit_if_room(rule, client, mode, out)
            {
                self.wait.as_mut().and_then(|wait| wait.queue.pop_front());
            }
            self.wait.take_if(|wait| wait.queue.is_empty() && wait.unheard.is_empty());
            // A client that waits now cannot use what the node holds.
            self.lingers &= self.waiters() == 0;
            let spare = self.spare(rule) && !self.lingers;
            let next = self.first().map(|(_, mode)| mode);
            let Some(machine) = self.machine.as_mut() else { return Ok(()) };
            let sent = out.sends.len();
            let (entered, event) = if spare {
                (machine.release(&rule.group, &mut out.sends)?, LockEvent::Release)
            } else if let Some(mode) = next
                && !self.shut
                && machine.may_acquire(&rule.group, mode)
            {
                (machine.acquire(&rule.group, mode, &mut out.sends)?, LockEvent::Acquire(mode))
            } else if next.is_none() && machine.may_withdraw() {
                (machine.withdraw(&rule.group, &mut out.sends)?, LockEvent::Withdraw)
            } else {
                if machine.held() == 0 {
                    (self.crowd, self.limit) = (0, 0); // The visit is over.
                }
                return Ok(());
            };
            self.account(entered, sent, out);
            self.record(|| event, entered, sent, out);
        }
    }

    /// May one more client enter in this mode? The node must hold enough, and the lock must not be
    /// due to another node.
    fn admits(&self, rule: &Rule, mode: Mode) -> bool {
        let Some(machine) = self.machine.as_ref() else { return false };
        let room = if rule.info.permits || self.inside.is_empty() {
            self.spare(rule) && (machine.mode() == Mode::Exclusive || mode == Mode::Shared)
        } else {
            mode == Mode::Shared && self.inside.iter().all(|(_, mode)| *mode == Mode::Shared)
        };
        let due = self.turns > 0 && self.turns >= self.limit && self.is_disputed(rule);
        room && !self.shut && !due
    }

    /// Is the node to hold the lock for the client that has just left?
    fn may_linger(&self, rule: &Rule) -> bool {
        let unused = self.inside.is_empty() && self.waiters() == 0;
        let alone =
            !rule.info.permits && self.machine().is_some_and(|m| m.mode() == Mode::Exclusive);
        unused && alone && !self.shut && self.turns < self.limit
    }

    /// Does the node hold a permit that no client uses?
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
            if self.turns == 0 || !self.is_disputed(rule) {
                self.crowd = u16::try_from(self.waiters().max(1)).unwrap_or(u16::MAX);
                (self.turns, self.limit) = (0, if rule.handovers == 0 { 1 } else { self.crowd });
            }
            self.turns = self.turns.saturating_add(1);
            self.lingers = false;
            self.inside.push((client, mode));
            out.granted.push(client);
        }
        admits
    }

    /// Account for a step of the state machine: whether it entered, and what it sent after the
    /// first `sent` messages.
    fn account(&mut self, entered: bool, sent: usize, out: &mut LockEffects) {
        if entered {
            out.entries += 1;
            // An entry that no client uses is released at once. It must not reset the count of the
            // clients that hold other permits.
            if self.waiters() > 0 {
                self.turns = 0;
            }
        }
        self.track_unheard(sent, out);
    }

    /// Record a step of the state machine, if a recording is made: what happened to it, and what it
    /// did.
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

    /// Remember the nodes to which the last step has sent something, while a request is open.
    fn track_unheard(&mut self, sent: usize, out: &LockEffects) {
        let Some(machine) = &self.machine else { return };
        if machine.waiting().is_some() {
            let unheard = &mut self.wait.get_or_insert_default().unheard;
            for (to, _) in &out.sends[sent..] {
                unheard.insert(*to);
            }
        } else if let Some(wait) = self.wait.as_mut().filter(|_| machine.held() > 0) {
            wait.unheard.clear();
        }
    }

    /// The place of a waiting client in the queue of this node, counted from 0.
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

    /// Does another client of this node wait, or may another node wait? Where nodes ask quorums,
    /// another node may wait for this one although their connection is cut.
    pub(super) fn is_wanted(&self, rule: &Rule) -> bool {
        let asks_quorums = rule.info.kind == Kind::Quorum;
        let elsewhere = |machine: &M| rule.group.size() > 1 && (asks_quorums || machine.wanted());
        self.waiters() > 0 || self.machine.as_deref().is_some_and(elsewhere)
    }

    /// May another node wait for this one to release the lock?
    pub(super) fn is_disputed(&self, rule: &Rule) -> bool {
        rule.group.size() > 1 && self.machine.as_deref().is_some_and(AlgorithmMachine::wanted)
    }

    /// How many clients have entered in this visit, and how many waited as it began.
    pub(super) fn visit(&self) -> (u16, u16) {
        (self.turns, self.crowd)
    }

    /// Does the node hold the lock for a client that is about to come back?
    pub fn lingers(&self) -> bool {
        self.lingers
    }

    fn first(&self) -> Option<(ClientId, Mode)> {
        self.wait.as_ref().and_then(|wait| wait.queue.front().copied())
    }

    /// The nodes to which something was sent for the open request, and from which nothing was heard
    /// since.
    pub fn unheard(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.wait.iter().flat_map(|wait| wait.unheard.iter())
    }

    /// The state machine, if a view is running.
    pub fn machine(&self) -> Option<&M> {
        self.machine.as_deref()
    }

    /// Is the lock without clients of this node?
    pub fn is_idle(&self) -> bool {
        self.inside.is_empty() && self.waiters() == 0
    }

    /// If the lock may be removed from memory: the number from which it must start again.
    pub fn floor(&self) -> Option<u64> {
        if !self.is_idle() || self.lingers {
            return None;
        }
        self.machine.as_ref().map_or(Some(0), |machine| machine.floor())
    }
}
