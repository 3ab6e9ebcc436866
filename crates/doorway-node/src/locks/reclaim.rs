//! Clients that were inside before the process of their node began, and say so.
//!
//! A process that is killed does not take with it the clients of other processes, which go on with
//! what they hold. Its successor puts those who report inside again before it stops for its first
//! view: from there on they are holders like all others that live through a change of views.

use std::time::Duration;

use doorway_core::Mode;
use doorway_protocol::Fence;

use super::clients::{Client, ClientEnd};
use super::effects::ShardEffects;
use super::lock::{ClientId, Lock};
use super::machine::Machine;
use super::shard::{Shard, ShardState};
use super::table::Slot;

/// Why a client is not inside again. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReclaimRefusal {
    /// The shard has stopped for a view, whose start is said to be without this client.
    TooLate,
    /// Others are inside who cannot have been there with it.
    Taken,
}

impl Shard {
    /// A client was inside under this fence when the process before this one ended.
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
        let rule = &self.setup.rules[entry.rule as usize];
        let mode = if rule.info.shared { mode } else { Mode::Exclusive };
        let clients = &mut self.clients;
        // A node never gives the same fence twice, whatever the lock.
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

    /// Nobody can have been inside under a fence of a view that has not begun: those who said so
    /// have lost what they said they hold.
    pub fn disown(&mut self, view: u64, out: &mut ShardEffects) {
        for entry in self.table.iter_mut() {
            let rule = &self.setup.rules[entry.rule as usize];
            for client in inside(&entry.lock) {
                let fence = self.clients.get(client).and_then(Client::fence);
                if fence.is_some_and(|fence| fence.view() >= view) {
                    // Without a machine nothing can go wrong, and nothing comes of it.
                    let _ = entry.lock.leave(rule, client, &mut self.effects);
                    self.clients.lose(client, &entry.name, ClientEnd::Lost, out);
                }
            }
        }
    }
}

fn inside(lock: &Lock<dyn Machine>) -> Vec<ClientId> {
    lock.inside().map(|(client, _)| client).collect()
}
