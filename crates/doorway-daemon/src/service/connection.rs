//! Connections: who is at the other end, and whether one more is admitted.

use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use doorway_protocol::Refusal;
use doorway_sessions::outbox::Outbox;
use doorway_sessions::principal::Principal;
use doorway_sessions::{Connection, Input};
use tokio::sync::OwnedSemaphorePermit;

use super::process::Process;
use super::{Service, ServiceShell};

/// How many connections that are turned away may be open at a time, to be told why.
pub(crate) const REJECTED: usize = 64;

/// The client at the other end of a connection.
#[derive(Debug, Default)]
pub struct Peer {
    /// Who it is, if the connection proves it: the user of a Unix socket, a client certificate.
    pub principal: Option<Principal>,
    /// The process that connected, if it is one of this machine.
    pub process: Option<Process>,
    /// The descriptor that it passed with its first bytes, if any.
    pub passed: Option<OwnedFd>,
    /// Whether it may be on another machine, where a connection that ends may have been cut.
    pub remote: bool,
    /// Its address, if it came over TCP.
    pub from: Option<IpAddr>,
}

/// A connection, which is counted until this is dropped.
pub(crate) struct OpenConnection {
    shell: Arc<ServiceShell>,
    pub(crate) number: Connection,
    pub(crate) outbox: Arc<Outbox>,
    /// Whether the client was seen to close the connection, or to break its rules.
    pub(crate) closed: bool,
}

/// A connection that is turned away, and is only told why.
pub(crate) struct RejectedConnection {
    pub(crate) refusal: Refusal,
    _permit: OwnedSemaphorePermit,
}

/// Whether a connection is admitted.
pub(crate) type Entry = Result<OpenConnection, RejectedConnection>;

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let mut core = self.shell.core.lock();
        core.outboxes.remove(&self.number);
        core.inputs.push_back(Input::HangUp { connection: self.number, closed: self.closed });
        self.shell.run(&mut core);
        drop(core);
        self.shell.changed.notify_waiters();
    }
}

impl OpenConnection {
    /// The client of the connection, with the rights that it has now.
    pub(crate) fn principal(&self) -> Option<Arc<Principal>> {
        self.shell.core.lock().sessions.principal_of(self.number)
    }

    /// Note who the client is. The connection counts against the limits of that client from now on.
    pub(crate) fn belongs(&self, principal: &Arc<Principal>) -> Result<(), Refusal> {
        let mut core = self.shell.core.lock();
        let (connection, principal) = (self.number, Arc::clone(principal));
        core.turned_away = None;
        let outbox = core.outboxes.get(&connection).cloned();
        core.inputs.push_back(Input::Identify { connection, principal });
        self.shell.run(&mut core);
        match core.turned_away.take() {
            // The connection itself goes on, so that the client can be told why.
            Some(refusal) => {
                core.outboxes.extend(outbox.map(|outbox| (connection, outbox)));
                Err(refusal)
            }
            None => Ok(()),
        }
    }
}

impl Service {
    /// Count a connection before anything is done for it. If the limits do not allow it, it is
    /// turned away and told why. None if too many are being told why already.
    pub(crate) fn connect(&self, remote: bool) -> Option<Entry> {
        let outbox: Arc<Outbox> = Arc::default();
        let mut core = self.0.core.lock();
        let number = core.next_connection();
        core.outboxes.insert(number, Arc::clone(&outbox));
        core.turned_away = None;
        core.inputs.push_back(Input::Connect { connection: number, remote });
        self.0.run(&mut core);
        let Some(refusal) = core.turned_away.take() else {
            let shell = Arc::clone(&self.0);
            return Some(Ok(OpenConnection { shell, number, outbox, closed: false }));
        };
        drop(core);
        let permit = Arc::clone(&self.0.rejected).try_acquire_owned().ok()?;
        Some(Err(RejectedConnection { refusal, _permit: permit }))
    }
}
