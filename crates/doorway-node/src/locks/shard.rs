//! A shard: many named locks of one node, with one clock and in one view.
//!
//! Everything that happens to a shard is a method call, and the call puts what the node has to do
//! about it into [`ShardEffects`]. Between two views clients may queue and leave, and none enters.

use std::collections::BTreeMap;
use std::iter::once;
use std::mem::take;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use doorway_core::{Holder, Mode, NodeId, Start};
use doorway_protocol::{Fence, Name};
use rustc_hash::FxHashMap;

use super::clients::{Client, ClientEnd, Clients};
use super::counters::LockCounters;
use super::early::EarlyMessages;
use super::effects::ShardEffects;
use super::event::{LockEvent, Record};
use super::lock::{ClientId, Lock, LockEffects, Pace};
use super::machine::{AlgorithmMachine, Fault, Sends};
use super::rule::Rule;
use super::table::{Slot, Table};
use crate::messages::AlgorithmMessage;
use crate::seating::Seating;

/// Which members held each lock as a view began. The map is never iterated, so its order does not
/// matter.
pub(super) type Holders = FxHashMap<Name, Vec<Holder>>;

/// A client's request for a lock.
#[derive(Clone, Copy, Debug)]
pub struct LockRequest {
    /// The mode. If the lock has no shared mode, a shared request is refused.
    pub mode: Mode,
    /// The number of the session at this node; 0 if there is none.
    pub session: u64,
    /// How many numbers after its fence the client wants for itself, so that it can leave and enter
    /// again while it keeps the lock; 0 if it does not keep the lock. They are reserved only for an
    /// exclusive lock that nobody else wants: see [`Shard::reserved`].
    pub reserve: u32,
    /// The time since the node started.
    pub now: Duration,
}

/// The state of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ShardState {
    /// The shard has stopped for its target view and waits for that view to start.
    Stopped,
    /// The target view of the shard is running.
    Running,
    /// The shard cannot go on in its target view and waits for a newer one.
    Exhausted,
    /// The membership of the node has ended. It waits for a view of its next membership.
    Lapsed,
    /// The node has stopped.
    Ended,
}

/// The limit of a shard's clock. A message with a clock from here on is refused, and a shard whose
/// own clock gets here is exhausted. The distance to [`Fence::CLOCK_LIMIT`] leaves room for all
/// grants of one call.
pub(super) const CLOCK_FULL: u64 = Fence::CLOCK_LIMIT + Fence::CLOCK_LIMIT / 2;

/// Many named locks of one node.
#[derive(Clone, Debug)]
pub struct Shard {
    /// The members of the target view. Before the first view, those of the group.
    pub(super) seating: Arc<Seating>,
    /// How many idle locks the shard keeps in memory before it forgets old ones.
    keep_idle: usize,
    /// When the lease of the node ends. From then on no client is inside.
    pub(super) lease: Duration,
    /// A client was inside when the lease ended, and the node has not been told yet.
    pub(super) lapsed_inside: bool,
    pub(super) state: ShardState,
    /// The newest view for which the shard has stopped; no older view is ever run.
    pub(super) target: u64,
    /// A logical clock: it counts grants, and is at least as high as the clock of every message
    /// received in this view.
    pub(super) clock: u64,
    /// For each rule, the number from which locks that are not in memory must start. One number for
    /// all rules would not do: algorithms that never forget count from where all nodes began.
    pub(super) floors: Vec<u64>,
    pub(super) table: Table,
    pub(super) clients: Clients,
    /// Which members held each lock as the view began, for locks that have not started in it here.
    pub(super) holders: Holders,
    pub(super) early: EarlyMessages,
    /// The locks that are closed to the clients of this node.
    pub(super) shut: BTreeMap<Name, Slot>,
    pub(super) counters: Vec<LockCounters>,
    /// The counters of rules that are not in force any more, by algorithm.
    pub(super) former_counters: BTreeMap<&'static str, LockCounters>,
    pub(super) effects: LockEffects,
    /// The locks that linger, and until when.
    pub(super) lingering: Vec<(u32, Duration)>,
}

impl Shard {
    /// Make a shard without locks, which keeps up to `keep_idle` idle locks in memory. No view is
    /// running yet.
    pub fn new(seating: Arc<Seating>, keep_idle: usize) -> Self {
        Self {
            state: ShardState::Stopped,
            target: 0,
            clock: 0,
            floors: vec![0; seating.rules.iter().count()],
            table: Table::default(),
            clients: Clients::default(),
            holders: Holders::default(),
            early: EarlyMessages::default(),
            shut: BTreeMap::new(),
            counters: vec![LockCounters::default(); seating.rules.iter().count()],
            former_counters: BTreeMap::new(),
            effects: LockEffects::default(),
            lingering: Vec::new(),
            seating,
            keep_idle,
            lease: Duration::MAX,
            lapsed_inside: false,
        }
    }

    /// Record all events from now on.
    pub fn record(&mut self) {
        self.effects.record.get_or_insert_default();
    }

    /// Record nothing any more.
    pub fn stop_recording(&mut self) {
        self.effects.record = None;
    }

    /// How a lock stands at this node: whether the node is inside, and whether it waits. `None` if
    /// the lock has not begun in the running view.
    pub fn standing(&self, name: &Name, now: Duration) -> Option<Record> {
        let entry = self.table.find(name)?;
        let machine = entry.lock.machine()?;
        let (node, permits) = (self.seating.me, machine.held());
        let mode = machine.mode();
        let holder = (permits > 0).then_some(Holder { node, mode, permits });
        let events = vec![LockEvent::Stand { holder, waiting: machine.waiting() }];
        let (lock, rule) = (name.clone(), entry.rule as usize);
        Some(Record { at: now, view: self.target, lock, rule, events })
    }

    /// Pin the lock of this name: it stays in memory at its index until it has been closed as often
    /// as it was opened.
    pub fn open(&mut self, name: &Name) -> Slot {
        let at = self.table.get_or_insert(name, &self.seating.rules);
        self.table.pin(at);
        Slot(at)
    }

    /// Close a lock that was opened once with [`Shard::open`]. When it has been closed as often as
    /// it was opened, the shard may forget it.
    pub fn close(&mut self, slot: Slot) {
        self.table.unpin(slot.0);
        self.mark_used(slot.0);
    }

    /// A client requests a lock. If a fence is returned, it is inside; otherwise it waits.
    pub fn acquire(
        &mut self,
        slot: Slot,
        request: LockRequest,
        out: &mut ShardEffects,
    ) -> (ClientId, Option<Fence>) {
        self.check_lease(request.now, out);
        let client = self.add_client(slot, request);
        self.start_lock(slot.0, request.now, out);
        if let Some(ended) = self.barred(slot.0, request.mode) {
            self.clients.end(client, ended, &mut out.wakers);
            return (client, None);
        }
        self.apply(slot.0, request.now, out, |lock, rule, effects| {
            lock.acquire(rule, client, request.mode, effects)
        });
        let fence = self.clients.get(client).and_then(Client::fence);
        if fence.is_none() {
            if let Some(ended) = self.barred(slot.0, request.mode) {
                self.clients.end(client, ended, &mut out.wakers);
            }
            // If the disk was full when the next view was asked for, it is asked for again.
            out.overdue |= self.state == ShardState::Exhausted;
            let entry = self.table.get(slot.0);
            let counters = &mut self.counters[entry.rule as usize];
            counters.waits += 1;
            counters.longest_queue = counters.longest_queue.max(entry.lock.waiters() as u64);
        }
        (client, fence)
    }

    /// A client requests a lock, but only if it can enter immediately and without a message.
    pub fn try_acquire(
        &mut self,
        slot: Slot,
        request: LockRequest,
        out: &mut ShardEffects,
    ) -> Result<Option<(ClientId, Fence)>, ClientEnd> {
        self.check_lease(request.now, out);
        self.start_lock(slot.0, request.now, out);
        if let Some(ended) = self.barred(slot.0, request.mode) {
            return Err(ended);
        }
        let client = self.add_client(slot, request);
        self.apply(slot.0, request.now, out, |lock, rule, effects| {
            lock.try_acquire(rule, client, request.mode, effects)
        });
        let fence = self.clients.get(client).and_then(Client::fence);
        if fence.is_none() {
            self.clients.remove(client, out);
        }
        Ok(fence.map(|fence| (client, fence)))
    }

    fn add_client(&mut self, slot: Slot, request: LockRequest) -> ClientId {
        let client = self.clients.add(slot.0, request.session, request.now);
        self.note_request(slot.0, request.session, request.now);
        if request.mode == Mode::Exclusive {
            self.clients.set_reserved(client, request.reserve);
        }
        client
    }

    /// How many numbers after its fence are reserved for a client that is inside. The node does not
    /// use them again. From the moment when [`ShardEffects::wanted`] has named the lock, the client
    /// must not enter again with them, and this is 0.
    pub fn reserved(&self, client: ClientId) -> u32 {
        let inside = self.clients.get(client).filter(|client| client.fence().is_some());
        inside.map_or(0, |client| client.reserved)
    }

    /// Is a client that was waiting inside now? If not, `waker` is woken when it is.
    pub fn poll(
        &mut self,
        client: ClientId,
        waker: &Waker,
        out: &mut ShardEffects,
    ) -> Poll<Result<Fence, ClientEnd>> {
        self.clients.poll(client, waker, out)
    }

    /// Has a client that was inside lost its lock? If not, `waker` is woken when it does.
    pub fn poll_lost(
        &mut self,
        client: ClientId,
        waker: &Waker,
        out: &mut ShardEffects,
    ) -> Poll<ClientEnd> {
        self.clients.poll_lost(client, waker, out)
    }

    /// Has a client that was inside lost its lock?
    pub fn is_lost(&self, client: ClientId) -> bool {
        self.clients.get(client).is_none_or(Client::is_ended)
    }

    /// Remove a client, whether it is inside, waits, or has lost its lock.
    pub fn leave(&mut self, client: ClientId, now: Duration, out: &mut ShardEffects) {
        self.check_lease(now, out);
        let Some(gone) = self.clients.remove(client, out) else { return };
        let at = gone.lock;
        let pace = self.note_departure(&gone, now);
        self.apply(at, now, out, |lock, rule, effects| {
            lock.leave(rule, client, pace, effects).map(|_| ())
        });
        out.overdue |= self.has_room(at);
        self.mark_used(at);
    }

    /// A message of another member has arrived. If its view has not started here yet, it is kept
    /// until then; a message of any other view is dropped.
    pub fn receive(
        &mut self,
        from: NodeId,
        message: &AlgorithmMessage,
        now: Duration,
        out: &mut ShardEffects,
    ) {
        self.check_lease(now, out);
        // No member can run a view for which this node has not stopped. So this message is of a
        // view that this process never took part in.
        if message.view != self.target {
            return;
        }
        match self.state {
            ShardState::Stopped => return self.keep_early(from, message, out),
            ShardState::Exhausted | ShardState::Lapsed | ShardState::Ended => return,
            ShardState::Running => {}
        }
        if message.clock >= CLOCK_FULL {
            let fault = Fault::Rejected("its clock is higher than any correct member's");
            return out.refused.push((from, message.lock.clone(), fault));
        }
        let at = self.table.get_or_insert(&message.lock, &self.seating.rules);
        self.start_lock(at, now, out);
        if self.table.get(at).broken.is_some() {
            return;
        }
        let entry = self.table.get_mut(at);
        let rule = &self.seating.rules[entry.rule as usize];
        match entry.lock.receive(rule, from, &message.payload, &mut self.effects) {
            Ok(()) => {
                self.clock = self.clock.max(message.clock);
                let counters = &mut self.counters[entry.rule as usize];
                counters.received += 1;
                counters.remote += u64::from(self.effects.entries);
                self.apply_effects(at, now, out);
            }
            Err(fault @ Fault::Breached(_)) => self.break_lock(at, from, fault, now, out),
            Err(fault) => {
                self.effects.clear();
                self.record_events(
                    at,
                    now,
                    out,
                    [LockEvent::Receive { from }, LockEvent::Refuse(fault)],
                );
                out.refused.push((from, message.lock.clone(), fault));
            }
        }
        self.mark_used(at);
    }

    /// Keep a message that arrived before its view has started here.
    fn keep_early(&mut self, from: NodeId, message: &AlgorithmMessage, out: &mut ShardEffects) {
        if self.early.push(from, message) {
            return;
        }
        let fault = Fault::Rejected("too many messages of a view that has not started here");
        out.refused.push((from, message.lock.clone(), fault));
        // Without the message, a lock could hang in this view or admit two holders.
        self.state = ShardState::Exhausted;
        out.overdue = true;
    }

    /// Start a lock in the running view, if it has not started there.
    pub(super) fn start_lock(&mut self, at: u32, now: Duration, out: &mut ShardEffects) {
        let entry = self.table.get_mut(at);
        if entry.lock.machine().is_some()
            || self.state != ShardState::Running
            || entry.broken.is_some()
            || entry.crowded
        {
            return;
        }
        let rule = &self.seating.rules[entry.rule as usize];
        // A lock whose holders are known has not been forgotten in this view, so it starts from 0.
        let start = match self.holders.get(&entry.name) {
            Some(holders) => Start { holders: holders.clone(), floor: 0 },
            None => Start { holders: Vec::new(), floor: self.floors[entry.rule as usize] },
        };
        if self.seating.rules.agreed.is_some() && !rule.admits(&start) {
            entry.crowded = true;
            return;
        }
        let mut sends = Sends::new();
        let machine = match rule.begin(&entry.name, self.seating.me, &start, &mut sends) {
            Ok(machine) => machine,
            Err(fault) => return self.break_lock(at, self.seating.me, fault, now, out),
        };
        let sent = sends.iter().map(|(to, payload)| {
            let message = machine.show(payload);
            LockEvent::Send { to: *to, message }
        });
        self.record_events(at, now, out, once(LockEvent::Begin(start)).chain(sent));
        self.apply(at, now, out, |lock, rule, effects| {
            effects.sends.append(&mut sends);
            lock.start(rule, machine, effects)
        });
    }

    /// The members of the view that runs, or ran last.
    pub fn seating(&self) -> &Arc<Seating> {
        &self.seating
    }

    /// The number of the view that is running.
    pub fn running(&self) -> Option<u64> {
        (self.state == ShardState::Running).then_some(self.target)
    }

    /// Do something with a lock on behalf of this node, and carry out what follows.
    pub(super) fn apply<F>(&mut self, at: u32, now: Duration, out: &mut ShardEffects, act: F)
    where
        F: FnOnce(&mut Lock<dyn AlgorithmMachine>, &Rule, &mut LockEffects) -> Result<(), Fault>,
    {
        let entry = self.table.get_mut(at);
        match act(&mut entry.lock, &self.seating.rules[entry.rule as usize], &mut self.effects) {
            Ok(()) => self.apply_effects(at, now, out),
            Err(fault) => self.break_lock(at, self.seating.me, fault, now, out),
        }
    }

    /// Give fences to the clients that entered, and stamp the messages with the clock after them.
    pub(super) fn apply_effects(&mut self, at: u32, now: Duration, out: &mut ShardEffects) {
        let entry = self.table.get(at);
        let rule = &self.seating.rules[entry.rule as usize];
        let counters = &mut self.counters[entry.rule as usize];
        let grants = self.effects.granted.len() as u64;
        counters.grants += grants;
        counters.handovers += grants.saturating_sub(u64::from(self.effects.entries));
        for client in self.effects.granted.drain(..) {
            self.clock = next(self.clock, self.seating.me, rule);
            self.clients.enter(client, Fence::new(self.target, self.clock), now, &mut out.wakers);
            if self.clients.keeps(client) {
                let free = !rule.info.permits
                    && !entry.lock.is_wanted(rule)
                    && self.clock < Fence::CLOCK_LIMIT;
                if !free {
                    self.clients.set_reserved(client, 0);
                }
                // Whatever happens from now on has a higher number.
                self.clock += u64::from(self.clients.get(client).map_or(0, |it| it.reserved));
            }
        }
        for (to, payload) in self.effects.sends.drain(..) {
            counters.sent += 1;
            counters.bytes += payload.len() as u64;
            let (lock, payload) = (entry.name.clone(), payload.to_vec());
            out.messages.push((
                to,
                AlgorithmMessage { view: self.target, clock: self.clock, lock, payload },
            ));
        }
        self.effects.entries = 0;
        if let Some((client, _)) = entry.lock.inside().next()
            && self.clients.keeps(client)
            && entry.lock.is_wanted(rule)
        {
            self.clients.revoke(client, out);
            out.wanted.push(entry.name.clone());
        }
        self.emit_record(at, now, out);
        self.track_linger(at, now, out);
        if self.clock >= Fence::CLOCK_LIMIT {
            out.overdue = true;
            if self.clock >= CLOCK_FULL {
                self.state = ShardState::Exhausted;
                self.lingering.clear();
                self.table.iter_mut().for_each(|entry| entry.lock.stop());
            }
        }
    }

    /// Pass on the recorded events of a lock.
    fn emit_record(&mut self, at: u32, now: Duration, out: &mut ShardEffects) {
        if let Some(events) = &mut self.effects.record
            && !events.is_empty()
        {
            let entry = self.table.get(at);
            let (lock, rule, events) = (entry.name.clone(), entry.rule as usize, take(events));
            out.records.push(Record { at: now, view: self.target, lock, rule, events });
        }
    }

    /// Record events of a lock that have no other effects.
    pub(super) fn record_events(
        &mut self,
        at: u32,
        now: Duration,
        out: &mut ShardEffects,
        events: impl IntoIterator<Item = LockEvent>,
    ) {
        if let Some(record) = &mut self.effects.record {
            record.extend(events);
            self.emit_record(at, now, out);
        }
    }

    /// Break a lock for the rest of this view. Clients that were inside have lost it, but stay
    /// counted as inside until they leave.
    pub(super) fn break_lock(
        &mut self,
        at: u32,
        by: NodeId,
        fault: Fault,
        now: Duration,
        out: &mut ShardEffects,
    ) {
        self.effects.clear();
        self.record_events(at, now, out, [LockEvent::Break(fault)]);
        self.lingering.retain(|(lock, _)| *lock != at);
        let entry = self.table.get_mut(at);
        entry.lock.stop();
        entry.broken = Some(Box::new(fault));
        out.refused.push((by, entry.name.clone(), fault));
        let rule = &self.seating.rules[entry.rule as usize];
        for (client, _) in entry.lock.queue().collect::<Vec<_>>() {
            // Without a state machine this cannot fail and has no effects.
            let _ = entry.lock.leave(rule, client, Pace::Slow, &mut self.effects);
            self.clients.end(client, ClientEnd::Broken(fault), &mut out.wakers);
        }
        let name = &entry.name;
        for (client, _) in entry.lock.inside() {
            self.clients.lose(client, name, ClientEnd::Broken(fault), out);
        }
    }

    /// Why a client that requests this lock now would never enter.
    fn barred(&self, at: u32, mode: Mode) -> Option<ClientEnd> {
        let entry = self.table.get(at);
        match &entry.broken {
            _ if self.state == ShardState::Ended => Some(ClientEnd::Lost),
            Some(fault) => Some(ClientEnd::Broken(**fault)),
            None if mode == Mode::Shared => self.not_shared(entry.rule),
            None => None,
        }
    }

    /// Why a client cannot have a lock of this rule in shared mode, if it cannot.
    pub(super) fn not_shared(&self, rule: u32) -> Option<ClientEnd> {
        let info = &self.seating.rules[rule as usize].info;
        (!info.shared).then_some(ClientEnd::NotShared(info.name))
    }

    /// Note that a lock was used. In return, some idle locks may be forgotten.
    pub(super) fn mark_used(&mut self, at: u32) {
        self.table.mark_used(at);
        // Each call adds at most one lock to the idle queue and considers two of them. So even if
        // some cannot be forgotten and are considered in vain, at most as many forgettable locks as
        // unforgettable ones stay beyond the limit.
        for _ in 0..2 {
            if let Some((gone, floor)) = self.table.forget(self.keep_idle)
                && gone.lock.machine().is_some()
            {
                // The holders at the beginning of the view are part of what the lock may forget.
                self.holders.remove(&gone.name);
                let known = &mut self.floors[gone.rule as usize];
                *known = floor.max(*known);
            }
        }
        self.table.shrink();
    }
}

/// The clock of the next grant. With permits, several nodes may grant at the same clock, so each
/// node uses numbers of its own.
fn next(clock: u64, me: NodeId, rule: &Rule) -> u64 {
    if !rule.info.permits {
        return clock + 1;
    }
    let (size, me) = (u64::from(rule.group.size()), u64::from(me.0));
    let next = clock + 1;
    next + (me + size - next % size) % size
}
