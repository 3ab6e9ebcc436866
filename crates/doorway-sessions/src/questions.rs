//! Questions about the sessions, for reports, tests and simulations.

use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::{Fence, Moment, Name};

use super::counters::Counters;
use super::event::Connection;
use super::{Sessions, Stage};
use crate::principal::Principal;

impl Sessions {
    /// How many sessions are open.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether no session is open.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// How many grants are held.
    pub fn held(&self) -> u64 {
        self.counters.held
    }

    /// How many claims and waiting requests a client may send as it resumes its session: as many as
    /// the limits allow, or as the node has in all, if the limits were lowered since.
    pub fn claims_limit(&self) -> usize {
        let limits = &self.setup.limits;
        let here = self.counters.held as usize + self.asks.len();
        limits.grants.saturating_add(limits.waiting).max(here)
    }

    /// The longest time to live of a session.
    pub fn longest_ttl(&self) -> Duration {
        self.setup.limits.ttl
    }

    /// The client of a connection, with the rights that it has now.
    pub fn principal_of(&self, connection: Connection) -> Option<Arc<Principal>> {
        self.connections.get(&connection)?.principal.clone()
    }

    /// What the sessions have counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Until when former holders may claim what they held.
    pub fn reclaiming(&self) -> Option<Moment> {
        self.former.awaited_until
    }

    /// How much longer a session lives if its client is not heard any more, in
    /// milliseconds. A session that lives as long as its processes has no such time.
    pub fn expires(&self, now: Moment, session: u64) -> Option<u64> {
        let deadline = self.open.get(&session)?.deadline()?;
        Some(crate::clock::ms(deadline.since(now)))
    }

    /// Whether nothing is granted any more.
    pub fn is_stopping(&self) -> bool {
        matches!(self.stage, Stage::Draining { .. } | Stage::Stopped)
    }

    /// Whether the service drains, and nothing is held any more.
    pub fn is_drained(&self) -> bool {
        matches!(self.stage, Stage::Draining { told: true })
    }

    /// Whether the end of a grant is not durable yet: its record could not be erased, or the group
    /// still keeps it.
    pub fn withholds(&self) -> bool {
        self.ledger.withholds() || self.held.drops()
    }

    /// Whether nobody holds a lock, as far as the node knows, and the next process would find
    /// nothing: no session, no grant whose end is not durable, and no former holder to wait for.
    pub fn leaves_nothing(&self) -> bool {
        self.open.is_empty()
            && self.counters.held == 0
            && !self.withholds()
            && self.former.awaited_until.is_none()
    }

    /// The lock at the node behind a name, and its number of permits.
    pub fn behind(&self, lock: &Name) -> (Name, u32) {
        let permits = self.names.permits(lock).unwrap_or_else(|| self.configured(lock));
        (self.names.behind(lock), permits)
    }

    /// The names that are used with a number of permits that is not configured, in order.
    pub fn names_with_permits(&self) -> impl Iterator<Item = &Name> {
        self.names.with_permits()
    }

    /// All grants: the session, the lock and the fence of each. For tests and simulations.
    pub fn grants(&self) -> impl Iterator<Item = (u64, &Name, Fence)> {
        self.open.values().flat_map(|session| {
            session.grants.keys().map(|(lock, fence, _)| (session.number, lock, *fence))
        })
    }

    /// The grants of leases without end: the lock and the fence of each. For simulations.
    pub fn endless_grants(&self) -> impl Iterator<Item = (&Name, Fence)> {
        let endless = self.open.values().filter(|session| session.is_endless());
        endless.flat_map(|session| session.grants.keys().map(|(lock, fence, _)| (lock, *fence)))
    }

    /// The grants that clients have claimed, and that could not be written into the ledger.
    pub fn unwritten(&self) -> impl Iterator<Item = (u64, &Name, Fence)> {
        let sessions = self.open.values().filter(|_| self.setup.ledger);
        sessions.flat_map(|session| {
            let unwritten = session.grants.iter().filter(|(_, grant)| grant.place.is_none());
            unwritten.map(|((lock, fence, _), _)| (session.number, lock, *fence))
        })
    }

    /// Whether nothing is left of any client: no session, no request, no count.
    pub fn is_clean(&self) -> bool {
        self.open.is_empty()
            && self.asks.is_empty()
            && self.detached.is_empty()
            && self.names.is_empty()
            && self.shares.is_empty()
            && self.leases.calls.is_empty()
            && self.standing.is_empty()
            && self.kept.is_empty()
            && self.tries.is_empty()
            && !self.ledger.withholds()
    }
}
