//! Clients that held a lock before the process of their node started, and reclaim it.
//!
//! When the process of a node is killed, clients in other processes live on and keep using what
//! they hold. The next process of the node puts the clients that report back inside before it stops
//! for its first view. From there on they are holders like all others that live through a change of
//! views.

use std::ops::Range;
use std::time::Duration;

use doorway_core::Mode;
use doorway_protocol::Fence;

use super::clients::{Client, ClientEnd};
use super::effects::ShardEffects;
use super::lock::{ClientId, Lock, Pace};
use super::machine::AlgorithmMachine;
use super::shard::{Shard, ShardState};
use super::table::Slot;

/// Why a client could not reclaim a lock. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReclaimRefusal {
    /// The shard has stopped for a view, and has told the other members that this client holds
    /// nothing.
    TooLate,
    /// Other clients are inside that cannot have held the lock at the same time.
    Taken,
}

impl Shard {
    /// Put a client inside that held the lock under this fence when the process before this one
    /// ended.
    pub fn reclaim(
        &mut self,
        slot: Slot,
        mode: Mode,
        fence: Fence,
        session: u64,
        now: Duration,
    ) -> Result<ClientId, ReclaimRefusal> {
        if self.state != ShardState::Stopped || self.target > 0 {
            return Err(ReclaimRefusal::TooLate);
        }
        let entry = self.table.get_mut(slot.0);
        let rule = &self.seating.rules[entry.rule as usize];
        let mode = if rule.info.shared { mode } else { Mode::Exclusive };
        let clients = &mut self.clients;
        // A node never grants the same fence twice, not even for different locks.
        let fence_of = |client| clients.get(client).and_then(Client::fence);
        if inside(&entry.lock).into_iter().any(|client| fence_of(client) == Some(fence)) {
            return Err(ReclaimRefusal::Taken);
        }
        let client = clients.add(slot.0, session, now);
        if entry.lock.reclaim(rule, client, mode) {
            clients.enter(client, fence, now, &mut Vec::new());
            Ok(client)
        } else {
            clients.remove(client, &mut ShardEffects::default());
            Err(ReclaimRefusal::Taken)
        }
    }

    /// Take the locks from clients that reclaimed them under a fence of another view than these:
    /// such a fence was never granted, or the grant has ended.
    pub fn disown(&mut self, views: &Range<u64>, out: &mut ShardEffects) {
        for entry in self.table.iter_mut() {
            let rule = &self.seating.rules[entry.rule as usize];
            for client in inside(&entry.lock) {
                let fence = self.clients.get(client).and_then(Client::fence);
                if fence.is_some_and(|fence| !views.contains(&fence.view())) {
                    // Without a state machine this cannot fail and has no effects.
                    let _ = entry.lock.leave(rule, client, Pace::Slow, &mut self.effects);
                    self.clients.lose(client, &entry.name, ClientEnd::Lost, out);
                }
            }
        }
    }
}

fn inside(lock: &Lock<dyn AlgorithmMachine>) -> Vec<ClientId> {
    lock.inside().map(|(client, _)| client).collect()
}
