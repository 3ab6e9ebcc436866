//! What can go wrong, each with a word on whether anything changed.

use doorway_protocol::NameError;

use crate::config::ConfigError;
use crate::locks::{ClientEnd, Fault};

/// Why a lock could not be had. In every case nothing has changed: the request is withdrawn, no
/// lock is held, and asking again is safe.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// The text is no name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The deadline came first.
    #[error("the deadline passed before the lock was free")]
    TimedOut,
    /// Names like this one are served by an algorithm that knows no shared mode.
    #[error("`{name}` cannot be shared: {algorithm} serves exclusive locks only")]
    NotShared {
        /// The lock.
        name: String,
        /// The algorithm that serves it.
        algorithm: &'static str,
    },
    /// As many acquires wait at this node as may, [`Config::outstanding`](crate::Config).
    #[error("{0} acquires wait at this node, which is its limit")]
    Busy(usize),
    /// As many messages as may wait for a member that does not take them.
    #[error("{limit} messages wait for `{node}`, which is the limit: it is away, or too slow")]
    Backlog {
        /// The member.
        node: String,
        /// The limit, [`Config::outstanding`](crate::Config) or 1024.
        limit: usize,
    },
    /// The node has stopped.
    #[error("the node has stopped")]
    Stopped,
    /// The lock is out of order: its algorithm broke its contract. Other locks are not affected.
    #[error("the lock is out of order: {0}")]
    Broken(Fault),
}

impl From<ClientEnd> for AcquireError {
    fn from(ended: ClientEnd) -> Self {
        match ended {
            ClientEnd::Lost => Self::Stopped,
            ClientEnd::Broken(fault) => Self::Broken(fault),
        }
    }
}

/// The lock was lost before it was released: someone else may have been inside since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lock was lost before it was released")]
pub struct Lost;

/// Why a node did not start. Nobody can have heard of it. After a mistake in the configuration or
/// the certificates nothing has changed; after the others its directory may have been made, its
/// epoch raised, and a recording begun.
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
    /// Nobody can listen at the configured address.
    #[error("cannot listen at {address}: {error}")]
    Listen {
        /// The address.
        address: String,
        /// What the system said.
        error: std::io::Error,
    },
}
