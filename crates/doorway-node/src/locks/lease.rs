//! The lease of a node in its shards: when it ends, the clients of the node are inside no longer.
//!
//! In a group that agrees on its members, a node may grant locks only while it is a member for
//! sure. It renews its membership all the time, and each renewal gives it a lease. If it cannot
//! renew in time, the others go on without it when the lease is over.

use std::time::Duration;

use super::clients::ClientEnd;
use super::early::EarlyMessages;
use super::effects::ShardEffects;
use super::lock::Pace;
use super::shard::{Shard, ShardState};

impl Shard {
    /// Set when the lease of the node ends. A shard without a lease serves forever.
    pub fn set_lease(&mut self, end: Duration) {
        self.lease = end;
    }

    /// Is the lease of the node over? Then all clients have lost their locks, even if nothing has
    /// noticed it yet.
    pub fn is_over(&self, now: Duration) -> bool {
        now >= self.lease
    }

    /// Compare the time with the end of the lease, before anything that may let a client enter. A
    /// timer is not enough for that: the process may have been stopped, or the machine suspended.
    #[inline]
    pub(super) fn check_lease(&mut self, now: Duration, out: &mut ShardEffects) {
        if self.is_over(now) && !matches!(self.state, ShardState::Lapsed | ShardState::Ended) {
            self.lapse(out);
            out.lapsed = true;
        }
    }

    /// The membership of the node is over, and the node knows it: it gets a new lease before it
    /// takes part in a view again. Returns whether a client has lost a lock by that, now or when
    /// the lease ended before. A client that cannot be told still counts on that lock.
    #[must_use]
    pub fn discard(&mut self, out: &mut ShardEffects) -> bool {
        self.lapse(out);
        self.lease = Duration::MAX;
        std::mem::take(&mut self.lapsed_inside)
    }

    /// Take the locks from all clients that are inside, because the membership of the node is over.
    /// Clients that wait stay in their queues. The shard waits for a newer view.
    pub fn lapse(&mut self, out: &mut ShardEffects) {
        if matches!(self.state, ShardState::Lapsed | ShardState::Ended) {
            return;
        }
        self.state = ShardState::Lapsed;
        self.lingering.clear();
        self.early = EarlyMessages::default();
        for entry in self.table.iter_mut() {
            entry.lock.stop();
            let rule = &self.seating.rules[entry.rule as usize];
            for (client, _) in entry.lock.inside().collect::<Vec<_>>() {
                // Without a state machine this cannot fail and has no effects.
                let _ = entry.lock.leave(rule, client, Pace::Slow, &mut self.effects);
                self.lapsed_inside = true;
                self.clients.lose(client, &entry.name, ClientEnd::Lost, out);
            }
        }
    }
}
