//! The errors of this crate. Each says whether anything has changed.

use doorway_protocol::{Name, NameError};

use crate::config::ConfigError;
use crate::locks::{ClientEnd, Fault};

/// Why a lock was not granted. In every case nothing has changed: the request is withdrawn, no lock
/// is held, and it is safe to ask again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// The text is not a valid lock name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The deadline passed before the lock was granted.
    #[error("the deadline passed before the lock was free")]
    TimedOut,
    /// The algorithm that serves the lock has no shared mode.
    #[error("`{name}` cannot be shared: its algorithm, {algorithm}, serves exclusive locks only")]
    NotShared {
        /// The lock.
        name: String,
        /// The algorithm that serves it.
        algorithm: &'static str,
    },
    /// The node has as many waiting requests as [`Config::outstanding`](crate::Config::outstanding)
    /// allows.
    #[error(
        "{0} requests wait at this node, which is the limit set by `outstanding`; try again later"
    )]
    Busy(usize),
    /// The queue of messages to a member that does not acknowledge them is full.
    #[error(
        "{limit} messages wait for member `{node}`, which is the limit: it is unreachable or too slow"
    )]
    Backlog {
        /// The member.
        node: String,
        /// The limit: [`Config::outstanding`](crate::Config::outstanding), but at least 1024.
        limit: usize,
    },
    /// The node has stopped.
    #[error("the node has stopped")]
    Stopped,
    /// The lock is broken until the next view, because its algorithm broke its contract. Other
    /// locks are not affected.
    #[error("the lock is broken until the next view: {0}")]
    Broken(Fault),
}

impl AcquireError {
    /// Why a request for a lock has failed that has ended so.
    pub(crate) fn of(lock: &Name, ended: ClientEnd) -> Self {
        match ended {
            ClientEnd::Lost => Self::Stopped,
            ClientEnd::Broken(fault) => Self::Broken(fault),
            ClientEnd::NotShared(algorithm) => {
                Self::NotShared { name: lock.to_string(), algorithm }
            }
        }
    }
}

/// The lock was lost before it was released: another client may have held it since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lock was lost before it was released")]
pub struct LostLock;

/// Why a node did not start. No other member has noticed the attempt. After a mistake in the
/// configuration or the certificates nothing has changed. After other errors the node's directory
/// may have been created, its epoch raised, and a recording begun.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The configuration is wrong.
    #[error("the configuration is wrong: {0}")]
    Config(#[from] ConfigError),
    /// The epoch could not be raised durably.
    #[error(transparent)]
    Store(#[from] crate::views::StoreError),
    /// The certificates cannot be used.
    #[error(transparent)]
    Identity(#[from] crate::net::IdentityError),
    /// The node cannot listen at its configured address.
    #[error("cannot listen at {address}: {error}")]
    Listen {
        /// The address.
        address: String,
        /// The error of the operating system.
        error: std::io::Error,
    },
}
