//! How a service is to run.

use std::path::PathBuf;
use std::time::Duration;

use doorway_protocol::Scope;

use crate::principal::Rights;

/// How a service is to run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The node.
    pub node: doorway_node::Config,
    /// Whom its locks are for.
    pub scope: Scope,
    /// The Unix socket, which speaks both protocols.
    pub socket: Option<Socket>,
    /// Where sessions come in over TCP with TLS: `host:port`.
    pub sessions: Option<String>,
    /// Where HTTP comes in over TCP with TLS.
    pub http: Option<String>,
    /// The names under which this host may be asked for over HTTP, besides its addresses.
    pub hosts: Vec<String>,
    /// Who may come in over TCP.
    pub clients: Vec<Known>,
    /// What nobody may exceed.
    pub limits: Limits,
    /// How long a service that is told to stop waits for its clients to finish.
    pub drain: Duration,
    /// After how long without sessions the service ends by itself.
    pub idle_stop: Option<Duration>,
}

/// A Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Socket {
    /// A name that is no file, and gone with its process: written `@name`.
    Abstract(String),
    /// A file, with its permissions. Who may open it may use the node.
    File(PathBuf, u32),
}

/// A client that may come in over TCP.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its name, which a certificate proves: it is issued for `NAME.client.GROUP.doorway`.
    pub name: String,
    /// The SHA-256 of its token, if it may come with one.
    pub token: Option<[u8; 32]>,
    /// What it may do.
    pub rights: Rights,
}

/// What nobody may exceed. Over a limit is an error to that client and no trouble for others.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Open sessions.
    pub sessions: usize,
    /// Connections, also those without a session.
    pub connections: usize,
    /// Grants that one session holds.
    pub grants: usize,
    /// Requests of one session that wait.
    pub waiting: usize,
    /// The longest that a session lives without being heard of.
    pub ttl: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 20_000,
            connections: 25_000,
            grants: 200_000,
            waiting: 10_000,
            ttl: Duration::from_secs(60),
        }
    }
}
