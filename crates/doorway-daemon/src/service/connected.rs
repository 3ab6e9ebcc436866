//! Connections: who is at the other end, and which session is told what.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use doorway_protocol::{Code, Life, Refusal};
use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;

use super::open::End;
use super::outbox::Outbox;
use super::process::Process;
use super::refusals::{limit, refusal};
use super::session::Session;
use super::shares::{Share, What, half};
use super::{Inner, Service};
use crate::principal::Principal;

/// How many who cannot come in are told so at a time: that takes a connection too.
pub(crate) const TURNED: usize = 64;

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
    /// Whose it is, if it came from another machine: nobody's until its client has said who it is.
    share: Mutex<Option<(Arc<str>, Share)>>,
}

/// A connection that cannot come in, and is only told why.
pub(crate) struct Turned {
    pub(crate) refusal: Refusal,
    _turn: OwnedSemaphorePermit,
}

/// What becomes of a connection.
pub(crate) type Entry = Result<Connected, Turned>;

impl Drop for Connected {
    fn drop(&mut self) {
        self.inner.connections.lock().remove(&self.number);
        self.inner.changed.notify_waiters();
    }
}

impl Connected {
    /// The client has said who it is: the connection counts as one of its own.
    pub(crate) fn belongs(&self, principal: &Principal) -> Result<(), Refusal> {
        let mut share = self.share.lock();
        if share.as_ref().is_none_or(|(whose, _)| **whose == *principal.name) {
            return Ok(());
        }
        let all = self.inner.limits.connections;
        let name = "limits.connections";
        let own =
            self.inner.shares.take_half(What::Connections, principal, all, name, "connections")?;
        *share = own.map(|own| (principal.name.as_str().into(), own));
        Ok(())
    }
}

impl Service {
    /// Count a connection before anything is done for it. One too many is told why it cannot come
    /// in; none if too many are told already.
    pub(crate) fn connect(&self, remote: bool) -> Option<Entry> {
        let refusal = match self.count(remote) {
            Ok(connected) => return Some(Ok(connected)),
            Err(refusal) => refusal,
        };
        let turn = Arc::clone(&self.0.turned).try_acquire_owned().ok()?;
        Some(Err(Turned { refusal, _turn: turn }))
    }

    fn count(&self, remote: bool) -> Result<Connected, Refusal> {
        let inner = &*self.0;
        let most = inner.limits.connections;
        let share = if remote {
            let share = inner.shares.take(What::Connections, "", 1, half(most));
            let share = share.ok_or_else(|| {
                let text = "too many clients of other machines have not said who they are yet";
                refusal(Code::Busy, text)
            })?;
            Some(("".into(), share))
        } else {
            None
        };
        let outbox: Arc<Outbox> = Arc::default();
        let number = inner.connected.fetch_add(1, Ordering::Relaxed);
        let files = inner.limits.files.saturating_sub(inner.processes());
        let mut connections = inner.connections.lock();
        if connections.len() >= most {
            let text = format!("{most} connections are open");
            return Err(limit(&text, "limits.connections", most));
        }
        if connections.len() >= files {
            return Err(no_files());
        }
        connections.insert(number, Arc::clone(&outbox));
        drop(connections);
        Ok(Connected { inner: Arc::clone(&self.0), number, outbox, share: Mutex::new(share) })
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
        if closed && !session.remote {
            if matches!(session.life, Life::Connection { .. }) {
                return self.0.end(session, End::Left);
            }
            // Whoever waited is gone, and a grant that nobody learns of would only keep others out.
            let waiting: Vec<u64> = session.state().waiting.keys().copied().collect();
            for request in waiting {
                let _ = self.withdraw(session, request);
            }
        }
        if session.is_loose() {
            self.0.end_if_idle(session);
        }
    }
}

impl Inner {
    /// How many descriptors of processes the sessions have.
    pub(crate) fn processes(&self) -> usize {
        self.shares.of(What::Processes, "")
    }
}

/// The system allows no more.
pub(crate) fn no_files() -> Refusal {
    let text =
        "the node has as many files open as the system allows: raise LimitNOFILE of its unit";
    refusal(Code::Busy, text)
}
