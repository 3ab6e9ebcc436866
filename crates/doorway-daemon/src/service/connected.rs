//! Connections: who is at the other end, and which session is told what.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use doorway_protocol::{Life, Refusal};

use super::open::End;
use super::outbox::Outbox;
use super::process::Process;
use super::refusals::limit;
use super::session::Session;
use super::{Inner, Service};
use crate::principal::Principal;

/// Who is at the other end of a connection.
#[derive(Debug, Default)]
pub struct Peer {
    /// Who it is, if the connection proves it: the user of a Unix socket, a client certificate.
    pub principal: Option<Principal>,
    /// The process that connected, if it is one of this machine.
    pub process: Option<Process>,
    /// It may be on another machine: a connection that ends may have been cut.
    pub remote: bool,
}

/// A connection is counted until this is dropped.
pub(crate) struct Connected {
    inner: Arc<Inner>,
    number: u64,
    pub(crate) outbox: Arc<Outbox>,
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.inner.connections.lock().remove(&self.number);
        self.inner.changed.notify_waiters();
    }
}

impl Service {
    /// Count a connection, unless there are too many.
    pub(crate) fn connect(&self) -> Result<Connected, Refusal> {
        let outbox: Arc<Outbox> = Arc::default();
        let number = self.0.connected.fetch_add(1, Ordering::Relaxed);
        let most = self.0.limits.connections;
        let mut connections = self.0.connections.lock();
        if connections.len() >= most {
            let text = format!("{most} connections are open");
            return Err(limit(&text, "limits.connections", most));
        }
        connections.insert(number, Arc::clone(&outbox));
        drop(connections);
        Ok(Connected { inner: Arc::clone(&self.0), number, outbox })
    }

    /// The connection of a session has ended. Did its client close it, or nobody have it any more?
    pub(crate) fn disconnected(&self, session: &Session, outbox: &Arc<Outbox>, closed: bool) {
        let mut state = session.state();
        let own = state.outbox.as_ref().is_some_and(|current| Arc::ptr_eq(current, outbox));
        if !own {
            return; // It goes on over another one.
        }
        state.outbox = None;
        drop(state);
        if closed && !session.remote && matches!(session.life, Life::Connection { .. }) {
            self.0.end(session, End::Left);
        } else if session.is_loose() {
            self.0.end_if_idle(session);
        }
    }
}
