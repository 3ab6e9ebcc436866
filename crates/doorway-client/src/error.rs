//! What may go wrong.

use std::io;

use doorway_protocol::{Code, Fence, Name, NameError, Refusal};

use crate::endpoint::Endpoint;

/// Why something was not done. Nothing has changed, unless it is [`Error::Unknown`].
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
    /// It was asked for and nobody answered: it may have been done or not.
    #[error("{0}; it may have been done or not")]
    Unknown(Refusal),
    /// The lock was granted and lost again before anyone could enter, for instance because the
    /// machine slept.
    #[error(transparent)]
    Lost(#[from] Lost),
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal.code {
            Code::NotFree => Self::NotFree(refusal),
            _ => Self::Refused(refusal),
        }
    }
}

/// Why a grant was not given back as one that was held until now.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// It was lost before.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// Nobody says what became of it: it may have been released, or ends with its session.
    #[error("cannot tell whether the lock {lock} with fence {fence} was released: {why}")]
    Unknown {
        /// The lock.
        lock: Name,
        /// The fence of the grant.
        fence: Fence,
        /// Why there is no answer.
        #[source]
        why: Box<Error>,
    },
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
