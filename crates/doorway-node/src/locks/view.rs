//! How a shard goes from one view to the next.
//!
//! # Other rules
//!
//! In a group that agrees on its rules, the next view may have others than this one. The lock keeps
//! its clients: those inside stay there, and those that wait are asked for by the new algorithm. A
//! node declares what it holds in terms of the next view's rules, so all members begin with the
//! same holders.
//!
//! More clients may be inside than the new rule lets in, for example three clients of a lock that
//! has two permits now. Such a lock is *crowded*: it has no state machine in this view at any node,
//! and nobody enters. All members come to that by themselves, because they have the same rules and
//! holders. Whenever one of the clients inside leaves, its node asks for another view, until those
//! who are left fit.

use std::sync::Arc;
use std::time::Duration;

use doorway_core::{Holder, NodeId};

use super::book::RuleBook;
use super::clients::ClientEnd;
use super::counters::LockCounters;
use super::early::EarlyMessages;
use super::effects::ShardEffects;
use super::shard::{Holders, Shard, ShardState};
use crate::messages::HeldLock;
use crate::seating::Seating;

impl Shard {
    /// Stop for a view whose rules are those of the view before. See [`Shard::stop_for`].
    pub fn stop(&mut self, view: u64) -> Vec<HeldLock> {
        let seating = Arc::clone(&self.seating);
        self.stop_for(view, &seating.rules)
    }

    /// Stop for a view with these rules. Returns what this node holds by these rules: the view
    /// begins with exactly that, even if clients leave before it starts.
    ///
    /// # Panics
    ///
    /// If the view is not newer than every view that the shard has stopped for.
    pub fn stop_for(&mut self, view: u64, rules: &RuleBook) -> Vec<HeldLock> {
        if self.state == ShardState::Ended {
            return Vec::new();
        }
        assert!(view > self.target, "a shard stops for newer views only");
        (self.state, self.target) = (ShardState::Stopped, view);
        self.early = EarlyMessages::default();
        self.holders = Holders::default();
        let same = self.seating.rules.is_same(rules);
        let mut held = Vec::new();
        for entry in self.table.iter_mut() {
            entry.lock.stop();
            (entry.broken, entry.crowded) = (None, false);
            let rule = if same { &rules[entry.rule as usize] } else { rules.rule_of(&entry.name) };
            let holding = entry.lock.holding(rule);
            entry.declared_held = holding.is_some();
            if let Some((mode, permits)) = holding {
                held.push(HeldLock { lock: entry.name.clone(), mode, permits });
            }
        }
        // What lingered is held by no client, so no member begins the next view as its holder.
        self.lingering.clear();
        self.table.drop_idle();
        held
    }

    /// Start a view with these members and rules, and with what the members held as they stopped
    /// for it. Clients that left since are released now, and the node asks again for those that
    /// wait. A view older than the target is never started.
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
        self.take_seating(seating, out);
        self.floors.fill(0);
        for (node, HeldLock { lock, mode, permits }) in held {
            self.holders.entry(lock).or_default().push(Holder { node, mode, permits });
        }
        for at in self.table.busy() {
            self.table.get_mut(at).declared_held = false;
            self.start_lock(at, now, out);
            out.overdue |= self.has_room(at);
            self.mark_used(at);
        }
        for (from, message) in self.early.take() {
            self.receive(from, &message, now, out);
        }
    }

    /// Use other rules before the first view: the rules of the group were not known as the process
    /// started. Does nothing later.
    pub fn use_rules(&mut self, seating: &Arc<Seating>, out: &mut ShardEffects) {
        if self.target == 0 {
            self.take_seating(seating, out);
        }
    }

    /// Take the members and rules of a view.
    fn take_seating(&mut self, seating: &Arc<Seating>, out: &mut ShardEffects) {
        let before = std::mem::replace(&mut self.seating, Arc::clone(seating));
        let rules = &self.seating.rules;
        if before.rules.is_same(rules) {
            return;
        }
        for (rule, counters) in before.rules.iter().zip(&self.counters) {
            *self.former_counters.entry(rule.info.name).or_default() += *counters;
        }
        let many = rules.iter().count();
        self.counters = vec![LockCounters::default(); many];
        self.floors = vec![0; many];
        self.table.change_rules(rules);
        for entry in self.table.iter_mut() {
            let info = &rules[entry.rule as usize].info;
            if !info.shared {
                for client in entry.lock.refuse_shared() {
                    self.clients.end(client, ClientEnd::NotShared(info.name), &mut out.wakers);
                }
            }
            // A client keeps a lock only by rules under which nobody enters beside it.
            for (client, _) in entry.lock.inside() {
                if self.clients.keeps(client) {
                    self.clients.revoke(client, out);
                    out.wanted.push(entry.name.clone());
                }
            }
        }
    }

    /// Was a lock crowded as this view began, and does this node hold less of it now? Then another
    /// view may find that those who are left fit.
    pub(super) fn has_room(&self, at: u32) -> bool {
        let entry = self.table.get(at);
        if !entry.crowded {
            return false;
        }
        let holders = self.holders.get(&entry.name).into_iter().flatten();
        let mut own = holders.filter(|holder| holder.node == self.seating.me);
        let declared = own.next().map(|holder| (holder.mode, holder.permits));
        entry.lock.holding(&self.seating.rules[entry.rule as usize]) != declared
    }

    /// End the shard, because the node stops: all clients lose their locks, and no client ever
    /// enters again.
    pub fn end(&mut self, now: Duration, out: &mut ShardEffects) {
        // Nobody uses these locks, so other members need not wait until this node is gone for sure.
        self.end_all_lingers(now, out);
        self.state = ShardState::Ended;
        self.table.iter_mut().for_each(|entry| entry.lock.stop());
        self.early = EarlyMessages::default();
        let table = &self.table;
        self.clients.end_all(|lock| &table.get(lock).name, ClientEnd::Lost, out);
    }
}
