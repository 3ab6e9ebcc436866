//! A shard: many named locks of one node, under one clock and in one view.
//!
//! Everything that happens to a shard is a call, and what is to be done about it is put into an
//! [`Out`]. Between two views clients queue and leave, and nobody enters.

use std::mem::take;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use doorway_core::{Holder, Mode, NodeId};
use doorway_protocol::{Fence, Name};
use rustc_hash::FxHashMap;

use super::clients::{Client, Clients, Ended};
use super::counters::Counters;
use super::kept::Kept;
use super::lock::{ClientId, Lock, Moves};
use super::machine::{Fault, Machine};
use super::record::{Did, Record};
use super::rule::Rule;
use super::table::{Slot, Table};
use super::view::Run;
use crate::wire::Step;

/// Who was inside each lock as a view began; never listed, so its order plays no part.
pub(super) type Holders = FxHashMap<Name, Vec<Holder>>;

/// What all shards of a node have in common.
#[derive(Debug)]
pub struct Setup {
    /// Who this is.
    pub me: NodeId,
    /// The rules, by which names are served.
    pub rules: Vec<Rule>,
    /// How many idle locks a shard keeps before it forgets old ones.
    pub keep_idle: usize,
}

/// A client wants in.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// How. Whoever would share what its rule cannot share would wait for ever, and is turned away
    /// before.
    pub mode: Mode,
    /// For which session, a number of this node.
    pub session: u64,
    /// The time since the node started.
    pub now: Duration,
}

/// A session was inside of a lock, under this fence, and has lost it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostBy {
    /// The session, by its number at this node; none has the number 0.
    pub session: u64,
    /// The lock.
    pub lock: Name,
    /// The fence.
    pub fence: Fence,
}

/// What is to be done about what happened.
#[derive(Debug, Default)]
pub struct Out {
    /// Messages to send, in order. They go into their queues before the shard is unlocked.
    pub steps: Vec<(NodeId, Step)>,
    /// Whom to wake, once the shard is unlocked.
    pub wakers: Vec<Waker>,
    /// Wakers that are of no more use, to be dropped once the shard is unlocked: one may own a
    /// task, and the task a lock of this shard.
    pub spent: Vec<Waker>,
    /// Who was inside of something and has lost it.
    pub lost: Vec<LostBy>,
    /// What was refused or broke a lock, for the log: who did it, which may be this node.
    pub refused: Vec<(NodeId, Name, Fault)>,
    /// The clock is far, or the shard cannot go on in this view: the group must start the next.
    pub overdue: bool,
    /// What happened, in a shard that writes it down. It goes into its queue before the shard is
    /// unlocked.
    pub records: Vec<Record>,
}

/// A peer's clock up to here is believed, and a shard whose own gets here is spent. It leaves room
/// for all that one step may grant.
pub(super) const CLOCK_FULL: u64 = Fence::CLOCK_LIMIT + Fence::CLOCK_LIMIT / 2;

/// Many named locks of one node.
#[derive(Debug)]
pub struct Shard {
    pub(super) setup: Arc<Setup>,
    pub(super) run: Run,
    /// The newest view for which the shard has stopped; no older one is ever run.
    pub(super) target: u64,
    /// Counts grants, and is never behind that of any message received in this view.
    pub(super) clock: u64,
    /// From where locks of each rule that are not in memory must start. One number for all rules
    /// would not do: algorithms that never forget count from where all nodes began.
    pub(super) floors: Vec<u64>,
    pub(super) table: Table,
    pub(super) clients: Clients,
    /// Who was inside as the view began, for the locks that have not begun in it here.
    pub(super) holders: Holders,
    pub(super) kept: Kept,
    pub(super) counters: Vec<Counters>,
    pub(super) moves: Moves,
}

impl Shard {
    /// A shard without locks. No view runs yet.
    pub fn new(setup: Arc<Setup>) -> Self {
        Self {
            run: Run::Stopped,
            target: 0,
            clock: 0,
            floors: vec![0; setup.rules.len()],
            table: Table::default(),
            clients: Clients::default(),
            holders: Holders::default(),
            kept: Kept::default(),
            counters: vec![Counters::default(); setup.rules.len()],
            moves: Moves::default(),
            setup,
        }
    }

    /// From now on, write down what happens.
    pub fn record(&mut self) {
        self.moves.record.get_or_insert_default();
    }

    /// Keep the lock of that name in its place, until it has been closed as often as opened.
    pub fn open(&mut self, name: &Name, rule: usize) -> Slot {
        let at = self.table.enter(name, rule);
        self.table.pin(at);
        Slot(at)
    }

    /// The lock need not be kept any more.
    pub fn close(&mut self, slot: Slot) {
        self.table.unpin(slot.0);
        self.rest(slot.0);
    }

    /// A client wants in. With a fence it is inside at once, else it waits.
    pub fn acquire(&mut self, slot: Slot, ask: Ask, out: &mut Out) -> (ClientId, Option<Fence>) {
        let client = self.clients.add(slot.0, ask.session, ask.now);
        self.begin(slot.0, ask.now, out);
        if let Some(ended) = self.barred(slot.0) {
            self.clients.end(client, ended, &mut out.wakers);
            return (client, None);
        }
        self.step(slot.0, ask.now, out, |lock, rule, moves| {
            lock.acquire(rule, client, ask.mode, moves)
        });
        let fence = self.clients.get(client).and_then(Client::fence);
        if fence.is_none() {
            if let Some(ended) = self.barred(slot.0) {
                self.clients.end(client, ended, &mut out.wakers);
            }
            let entry = self.table.get(slot.0);
            let counters = &mut self.counters[entry.rule as usize];
            counters.waits += 1;
            counters.longest_queue = counters.longest_queue.max(entry.lock.waiters() as u64);
        }
        (client, fence)
    }

    /// A client wants in if that is possible at once and without a message.
    pub fn try_acquire(
        &mut self,
        slot: Slot,
        ask: Ask,
        out: &mut Out,
    ) -> Result<Option<(ClientId, Fence)>, Ended> {
        self.begin(slot.0, ask.now, out);
        if let Some(ended) = self.barred(slot.0) {
            return Err(ended);
        }
        let client = self.clients.add(slot.0, ask.session, ask.now);
        self.step(slot.0, ask.now, out, |lock, rule, moves| {
            lock.try_acquire(rule, client, ask.mode, moves)
        });
        let fence = self.clients.get(client).and_then(Client::fence);
        if fence.is_none() {
            self.clients.remove(client, out);
        }
        Ok(fence.map(|fence| (client, fence)))
    }

    /// Is a client that was waiting inside now? If not, `waker` hears of it.
    pub fn poll(
        &mut self,
        client: ClientId,
        waker: &Waker,
        out: &mut Out,
    ) -> Poll<Result<Fence, Ended>> {
        self.clients.poll(client, waker, out)
    }

    /// Has a client that was inside lost its lock? If not, `waker` hears of it.
    pub fn poll_lost(&mut self, client: ClientId, waker: &Waker, out: &mut Out) -> Poll<Ended> {
        self.clients.poll_lost(client, waker, out)
    }

    /// Has a client that was inside lost its lock?
    pub fn is_lost(&self, client: ClientId) -> bool {
        self.clients.get(client).is_none_or(Client::is_ended)
    }

    /// A client is gone, wherever it stood: inside, waiting, or at its end.
    pub fn leave(&mut self, client: ClientId, now: Duration, out: &mut Out) {
        let Some(at) = self.clients.remove(client, out) else { return };
        self.step(at, now, out, |lock, rule, moves| lock.leave(rule, client, moves).map(|_| ()));
        self.rest(at);
    }

    /// The view that runs.
    pub fn running(&self) -> Option<u64> {
        (self.run == Run::Running).then_some(self.target)
    }

    /// Something happens to a lock because of this node.
    pub(super) fn step(
        &mut self,
        at: u32,
        now: Duration,
        out: &mut Out,
        act: impl FnOnce(&mut Lock<dyn Machine>, &Rule, &mut Moves) -> Result<(), Fault>,
    ) {
        let entry = self.table.get_mut(at);
        match act(&mut entry.lock, &self.setup.rules[entry.rule as usize], &mut self.moves) {
            Ok(()) => self.carry_out(at, now, out),
            Err(fault) => self.break_lock(at, self.setup.me, fault, now, out),
        }
    }

    /// Give those who entered their fences, and number the messages after them.
    pub(super) fn carry_out(&mut self, at: u32, now: Duration, out: &mut Out) {
        let entry = self.table.get(at);
        let rule = &self.setup.rules[entry.rule as usize];
        let counters = &mut self.counters[entry.rule as usize];
        let grants = self.moves.granted.len() as u64;
        counters.grants += grants;
        counters.handovers += grants.saturating_sub(u64::from(self.moves.entries));
        for client in self.moves.granted.drain(..) {
            self.clock = next(self.clock, self.setup.me, rule);
            self.clients.enter(client, Fence::new(self.target, self.clock), now, &mut out.wakers);
        }
        for (to, payload) in self.moves.sends.drain(..) {
            counters.sent += 1;
            counters.bytes += payload.len() as u64;
            let (lock, payload) = (entry.name.clone(), payload.to_vec());
            out.steps.push((to, Step { view: self.target, clock: self.clock, lock, payload }));
        }
        self.moves.entries = 0;
        self.hand_out(at, now, out);
        if self.clock >= Fence::CLOCK_LIMIT {
            out.overdue = true;
            if self.clock >= CLOCK_FULL {
                self.run = Run::Spent;
                self.table.iter_mut().for_each(|entry| entry.lock.stop());
            }
        }
    }

    /// Hand out what was written down about a lock.
    fn hand_out(&mut self, at: u32, now: Duration, out: &mut Out) {
        if let Some(did) = &mut self.moves.record
            && !did.is_empty()
        {
            let entry = self.table.get(at);
            let (lock, rule, did) = (entry.name.clone(), entry.rule as usize, take(did));
            out.records.push(Record { at: now, view: self.target, lock, rule, did });
        }
    }

    /// Write down what happened to a lock, and nothing else came of it.
    pub(super) fn note(
        &mut self,
        at: u32,
        now: Duration,
        out: &mut Out,
        did: impl IntoIterator<Item = Did>,
    ) {
        if let Some(record) = &mut self.moves.record {
            record.extend(did);
            self.hand_out(at, now, out);
        }
    }

    /// A lock is of no use in this view. Whoever was inside stays on record until it leaves.
    pub(super) fn break_lock(
        &mut self,
        at: u32,
        by: NodeId,
        fault: Fault,
        now: Duration,
        out: &mut Out,
    ) {
        self.moves.clear();
        self.note(at, now, out, [Did::Break(fault)]);
        let entry = self.table.get_mut(at);
        entry.lock.stop();
        entry.broken = Some(Box::new(fault));
        out.refused.push((by, entry.name.clone(), fault));
        let rule = &self.setup.rules[entry.rule as usize];
        for (client, _) in entry.lock.queue().collect::<Vec<_>>() {
            // Without a machine nothing can go wrong, and nothing comes of it.
            let _ = entry.lock.leave(rule, client, &mut self.moves);
            self.clients.end(client, Ended::Broken(fault), &mut out.wakers);
        }
        let name = &entry.name;
        for (client, _) in entry.lock.inside() {
            self.clients.lose(client, name, Ended::Broken(fault), out);
        }
    }

    /// Why a client that asks now would never get in.
    fn barred(&self, at: u32) -> Option<Ended> {
        match &self.table.get(at).broken {
            _ if self.run == Run::Over => Some(Ended::Lost),
            Some(fault) => Some(Ended::Broken(**fault)),
            None => None,
        }
    }

    /// A lock was used; perhaps others are forgotten for it.
    pub(super) fn rest(&mut self, at: u32) {
        self.table.rest(at);
        // For each that comes, two are looked at: so those that may be forgotten are at most as
        // many more as those that may not, which are looked at in vain.
        for _ in 0..2 {
            if let Some((gone, floor)) = self.table.forget(self.setup.keep_idle)
                && gone.lock.machine().is_some()
            {
                // Who was inside as the view began is part of what the lock may forget.
                self.holders.remove(&gone.name);
                let known = &mut self.floors[gone.rule as usize];
                *known = floor.max(*known);
            }
        }
        self.table.shrink();
    }
}

/// The clock of the next grant. Permits may be granted by several nodes at the same clock: each has
/// numbers of its own.
fn next(clock: u64, me: NodeId, rule: &Rule) -> u64 {
    if !rule.info.permits {
        return clock + 1;
    }
    let (size, me) = (u64::from(rule.group.size()), u64::from(me.0));
    let next = clock + 1;
    next + (me + size - next % size) % size
}
