//! Questions about leases that may hold several locks, which are those of etcd clients.

use std::time::Duration;

use doorway_protocol::{Moment, Name};
use doorway_sessions::principal::Principal;
use doorway_sessions::standing::StandingKey;

use super::Service;

impl Service {
    /// The session of a lease of this client.
    pub(crate) fn standing_session(&self, principal: &Principal, lease: u64) -> Option<u64> {
        self.0.core.lock().sessions.standing_session(principal, lease)
    }

    /// The number of the lease of a session; none if it is another kind of session.
    pub(crate) fn standing_lease(&self, session: u64) -> Option<u64> {
        self.0.core.lock().sessions.standing_lease(session)
    }

    /// The description of the client of a session.
    pub(crate) fn described(&self, session: u64) -> Option<String> {
        let client = self.0.clients.lock().get(&session).cloned();
        client.map(|client| client.now())
    }

    /// What a lease has to do with a lock: it holds the lock, or waits for it.
    pub(crate) fn standing_key(&self, session: u64, lock: &Name) -> Option<StandingKey> {
        self.0.core.lock().sessions.standing_key(session, lock)
    }

    /// Everything that a lease holds and waits for.
    pub(crate) fn standing_keys(&self, session: u64) -> Vec<StandingKey> {
        self.0.core.lock().sessions.standing_keys(session)
    }

    /// How much of its time to live a lease has left, and the time to live itself.
    pub(crate) fn standing_time(&self, session: u64) -> Option<(Duration, Duration)> {
        self.0.core.lock().sessions.standing_time(Moment::now_at_node(), session)
    }

    /// The lease that holds a lock at this node: its session, its number, and what it holds.
    pub(crate) fn standing_holder(&self, lock: &Name) -> Option<(u64, u64, StandingKey)> {
        self.0.core.lock().sessions.standing_holder(lock)
    }
}
