//! The settings that concern clients: who may connect over TCP, and the limits of all.

use std::time::Duration;

use crate::principal::Rights;

/// A client that may connect over TCP.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// Its name. Its certificate is issued for `NAME.client.GROUP.doorway`.
    pub name: String,
    /// The SHA-256 of its token, if it has one.
    pub token: Option<[u8; 32]>,
    /// Its rights.
    pub rights: Rights,
}

/// The limits of clients. A client that exceeds a limit gets an error; other clients are not
/// affected. Of sessions, connections and waiting requests, one client of another machine gets half
/// at most.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Open sessions.
    pub sessions: usize,
    /// Connections, including those without a session.
    pub connections: usize,
    /// Grants that one session may hold.
    pub grants: usize,
    /// Requests of one session that may wait.
    pub waiting: usize,
    /// Requests at this node that may wait for one lock.
    pub queue: usize,
    /// The longest time to live of a session: how long it survives without a heartbeat.
    pub ttl: Duration,
    /// How long a lock of Terraform is held if Terraform does not unlock it.
    pub terraform_ttl: Duration,
    /// Whether a lease may be without end.
    pub endless: bool,
    /// Descriptors for connections and processes. The system sets this limit, not the file.
    pub files: usize,
}
