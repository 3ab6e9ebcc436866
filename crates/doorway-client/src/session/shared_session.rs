//! The session of a client, shared by its threads or tasks.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use doorway_protocol::Moment;

use super::Session;
use crate::machine::SessionMachine;
use crate::options::Options;

/// The session of a client, shared by its threads or tasks.
pub(crate) struct SharedSession {
    /// How long one attempt to reconnect may take.
    pub(crate) attempt: Duration,
    session: Mutex<Session>,
}

impl SharedSession {
    pub(crate) fn new(options: &Options, session: Session) -> Self {
        Self { attempt: options.attempt(), session: Mutex::new(session) }
    }

    /// Lock the session. If another thread panicked while it had the lock, the session is still
    /// sound, because no step leaves it half changed.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Make a request whose answer nobody needs.
    pub(crate) fn tell(&self, make: impl FnOnce(&mut SessionMachine, Moment) -> u64) {
        let mut session = self.lock();
        let number = make(&mut session.line, Moment::now());
        session.line.quiet(number);
        session.calls += 1;
        session.flush();
    }
}
