//! How a shard goes from one view to the next.

use std::sync::Arc;
use std::time::Duration;

use doorway_core::{Holder, NodeId};

use super::clients::ClientEnd;
use super::early::EarlyMessages;
use super::effects::ShardEffects;
use super::shard::{Holders, Shard, ShardState};
use crate::messages::HeldLock;
use crate::seating::Seating;

impl Shard {
    /// Stop for a view. Returns what this node holds: the view begins with exactly that, even if
    /// clients leave before it starts.
    ///
    /// # Panics
    ///
    /// If the view is not newer than every view that the shard has stopped for.
    pub fn stop(&mut self, view: u64) -> Vec<HeldLock> {
        if self.state == ShardState::Ended {
            return Vec::new();
        }
        assert!(view > self.target, "a shard stops for newer views only");
        (self.state, self.target) = (ShardState::Stopped, view);
        self.early = EarlyMessages::default();
        self.holders = Holders::default();
        let mut held = Vec::new();
        for entry in self.table.iter_mut() {
            entry.lock.stop();
            entry.broken = None;
            let holding = entry.lock.holding(&self.seating.rules[entry.rule as usize]);
            entry.declared_held = holding.is_some();
            if let Some((mode, permits)) = holding {
                held.push(HeldLock { lock: entry.name.clone(), mode, permits });
            }
        }
        self.table.drop_idle();
        held
    }

    /// Start a view with these members and with what they held as they stopped for it. Clients that
    /// left since are released now, and the node asks again for those that wait. A view older than
    /// the target is never started.
    pub fn start(
        &mut self,
        view: u64,
        seating: &Arc<Seating>,
        held: Vec<(NodeId, HeldLock)>,
        now: Duration,
        out: &mut ShardEffects,
    ) {
        self.check_lease(now, out);
        if view < self.target || self.state != ShardState::Stopped {
            out.overdue |= self.state == ShardState::Exhausted;
            return;
        }
        (self.state, self.target, self.clock) = (ShardState::Running, view, 0);
        self.seating = Arc::clone(seating);
        self.floors.fill(0);
        for (node, HeldLock { lock, mode, permits }) in held {
            self.holders.entry(lock).or_default().push(Holder { node, mode, permits });
        }
        for at in self.table.busy() {
            self.table.get_mut(at).declared_held = false;
            self.start_lock(at, now, out);
            self.mark_used(at);
        }
        for (from, rule, message) in self.early.take() {
            self.receive(from, rule, &message, now, out);
        }
    }

    /// End the shard, because the node stops: all clients lose their locks, and no client ever
    /// enters again.
    pub fn end(&mut self, out: &mut ShardEffects) {
        self.state = ShardState::Ended;
        self.table.iter_mut().for_each(|entry| entry.lock.stop());
        self.early = EarlyMessages::default();
        let table = &self.table;
        self.clients.end_all(|lock| &table.get(lock).name, ClientEnd::Lost, out);
    }
}
