//! What a shard does as views come and go, and with the messages of each.

use std::iter::once;
use std::time::Duration;

use doorway_core::{Holder, NodeId, Start};

use super::clients::Ended;
use super::kept::Kept;
use super::machine::{Fault, Sends};
use super::record::Did;
use super::shard::{CLOCK_FULL, Holders, Out, Shard};
use crate::wire::{Held, Step};

/// What a shard is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Run {
    /// It waits for its target to start.
    Stopped,
    /// It runs its target.
    Running,
    /// It can do no more in its target and waits for a newer view.
    Spent,
    /// The node has stopped.
    Over,
}

impl Shard {
    /// Stop for a view, and say what is held: it is what the view begins with, whoever leaves
    /// before it does.
    ///
    /// # Panics
    ///
    /// If the view is not newer than all that the shard has stopped for.
    pub fn stop(&mut self, view: u64) -> Vec<Held> {
        if self.run == Run::Over {
            return Vec::new();
        }
        assert!(view > self.target, "a shard stops for newer views only");
        (self.run, self.target) = (Run::Stopped, view);
        self.kept = Kept::default();
        self.holders = Holders::default();
        let mut held = Vec::new();
        for entry in self.table.iter_mut() {
            entry.lock.stop();
            entry.broken = None;
            let holding = entry.lock.holding(&self.setup.rules[entry.rule as usize]);
            entry.told = holding.is_some();
            if let Some((mode, permits)) = holding {
                held.push(Held { lock: entry.name.clone(), mode, permits });
            }
        }
        self.table.drop_idle();
        held
    }

    /// A view starts, with what its members held as they stopped for it. Whoever left since is
    /// released now, and whoever waits asks again. A view older than the target is never run.
    pub fn start(&mut self, view: u64, held: Vec<(NodeId, Held)>, now: Duration, out: &mut Out) {
        if view < self.target || self.run != Run::Stopped {
            out.overdue |= self.run == Run::Spent;
            return;
        }
        (self.run, self.target, self.clock) = (Run::Running, view, 0);
        self.floors.fill(0);
        for (node, Held { lock, mode, permits }) in held {
            self.holders.entry(lock).or_default().push(Holder { node, mode, permits });
        }
        for at in self.table.busy() {
            self.table.get_mut(at).told = false;
            self.begin(at, now, out);
            self.rest(at);
        }
        for (from, rule, step) in self.kept.take() {
            self.receive(from, rule, &step, now, out);
        }
    }

    /// The node stops: nobody is inside any more, and nobody ever will be.
    pub fn end(&mut self, out: &mut Out) {
        self.run = Run::Over;
        self.table.iter_mut().for_each(|entry| entry.lock.stop());
        self.kept = Kept::default();
        let table = &self.table;
        self.clients.end_all(|lock| &table.get(lock).name, Ended::Lost, out);
    }

    /// A message of a peer has arrived. One of another view is dropped, one of a view that has not
    /// started here is kept until it does.
    pub fn receive(
        &mut self,
        from: NodeId,
        rule: usize,
        step: &Step,
        now: Duration,
        out: &mut Out,
    ) {
        // Nobody runs a view for which we have not stopped: such a message is of a view that this
        // process never was in.
        if step.view != self.target {
            return;
        }
        match self.run {
            Run::Stopped => return self.keep(from, rule, step, out),
            Run::Spent | Run::Over => return,
            Run::Running => {}
        }
        if step.clock >= CLOCK_FULL {
            let fault = Fault::Rejected("a clock that no correct node reaches");
            return out.refused.push((from, step.lock.clone(), fault));
        }
        let at = self.table.enter(&step.lock, rule);
        self.begin(at, now, out);
        if self.table.get(at).broken.is_some() {
            return;
        }
        let entry = self.table.get_mut(at);
        let rule = &self.setup.rules[entry.rule as usize];
        match entry.lock.receive(rule, from, &step.payload, &mut self.moves) {
            Ok(()) => {
                self.clock = self.clock.max(step.clock);
                let counters = &mut self.counters[entry.rule as usize];
                counters.received += 1;
                counters.remote += u64::from(self.moves.entries);
                self.carry_out(at, now, out);
            }
            Err(fault @ Fault::Breached(_)) => self.break_lock(at, from, fault, now, out),
            Err(fault) => {
                self.moves.clear();
                self.note(at, now, out, [Did::Receive { from }, Did::Refuse(fault)]);
                out.refused.push((from, step.lock.clone(), fault));
            }
        }
        self.rest(at);
    }

    /// A message came before its view has started here.
    fn keep(&mut self, from: NodeId, rule: usize, step: &Step, out: &mut Out) {
        if self.kept.push(from, rule, step) {
            return;
        }
        let fault = Fault::Rejected("more messages of a view to come than can be kept");
        out.refused.push((from, step.lock.clone(), fault));
        // Without this message the view could stand still, or let two in.
        self.run = Run::Spent;
        out.overdue = true;
    }

    /// A lock that is needed begins in the view that runs, if it has not.
    pub(super) fn begin(&mut self, at: u32, now: Duration, out: &mut Out) {
        let entry = self.table.get_mut(at);
        if entry.lock.machine().is_some() || self.run != Run::Running || entry.broken.is_some() {
            return;
        }
        let rule = &self.setup.rules[entry.rule as usize];
        // A lock whose holders are known was never forgotten, and has no past in this view.
        let start = match self.holders.get(&entry.name) {
            Some(holders) => Start { holders: holders.clone(), floor: 0 },
            None => Start { holders: Vec::new(), floor: self.floors[entry.rule as usize] },
        };
        let mut sends = Sends::new();
        let machine = match rule.begin(self.setup.me, &start, &mut sends) {
            Ok(machine) => machine,
            Err(fault) => return self.break_lock(at, self.setup.me, fault, now, out),
        };
        let sent =
            sends.iter().map(|(to, payload)| Did::Send { to: *to, message: machine.show(payload) });
        self.note(at, now, out, once(Did::Begin(start)).chain(sent));
        self.step(at, now, out, |lock, rule, moves| {
            moves.sends.append(&mut sends);
            lock.start(rule, machine, moves)
        });
    }
}
