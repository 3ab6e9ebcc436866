//! What may go wrong.

use std::io;

use doorway_protocol::{Code, Fence, Name, NameError, Refusal};

use crate::endpoint::Endpoint;

/// Why something was not done. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody answers there.
    #[error("cannot reach a node at {endpoint}: {why}")]
    Unreachable {
        /// Where.
        endpoint: Endpoint,
        /// What happened.
        #[source]
        why: io::Error,
    },
    /// No lock has such a name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The lock was not free at once, or not in time.
    #[error("{0}")]
    NotFree(Refusal),
    /// The node does not do that.
    #[error("{0}")]
    Refused(Refusal),
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal.code {
            Code::NotFree => Self::NotFree(refusal),
            _ => Self::Refused(refusal),
        }
    }
}

/// A grant that was lost: whatever it protected may have been in someone else's hands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("lost the lock {lock} with fence {fence}: {reason}")]
pub struct Lost {
    /// The lock.
    pub lock: Name,
    /// The fence of the grant.
    pub fence: Fence,
    /// Why.
    pub reason: String,
}
