//! The errors of both clients.

use std::io;

use doorway_protocol::{Code, Fence, Name, NameError, Refusal};

use crate::endpoint::Endpoint;
use crate::endpoints::Endpoints;

/// Why a request failed. It has changed nothing, unless the error is [`Error::Unknown`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The client could not connect to a node.
    #[error("cannot reach a node at {endpoint}: {why}")]
    Unreachable {
        /// Where the client tried to connect.
        endpoint: Endpoint,
        /// What went wrong.
        #[source]
        why: io::Error,
    },
    /// The text cannot be the name of a lock.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The lock was not free, or did not become free in time.
    #[error("{0}")]
    NotFree(Refusal),
    /// The node refused the request, or could not be reached in time. [`Refusal::code`] tells
    /// which.
    #[error("{0}")]
    Refused(Refusal),
    /// The request was sent and no answer came, so it may have been carried out or not.
    #[error("{0}; the request may have been carried out or not")]
    Unknown(Refusal),
    /// The lock was granted, but it was lost before the caller could use it, for instance because
    /// the machine was suspended.
    #[error(transparent)]
    Lost(#[from] LostGrant),
}

impl Error {
    /// Is this a reason to try another node?
    fn is_of_one_node(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused(refusal) => matches!(refusal.code, Code::Busy | Code::Unavailable),
            _ => false,
        }
    }
}

/// The endpoints where a client could not open its session, and why.
#[derive(Debug, Default)]
pub(crate) struct Failures(Vec<String>);

impl Failures {
    /// Go on with the next endpoint after this error, or return it if there is none, or if no other
    /// node would do better.
    pub(crate) fn add(&mut self, error: Error, endpoints: &Endpoints) -> Result<(), Error> {
        if !error.is_of_one_node() {
            return Err(error);
        }
        self.0.push(error.to_string());
        if self.0.len() < endpoints.count() {
            return Ok(());
        }
        if let [_] = self.0[..] {
            return Err(error);
        }
        let (code, text) = (Code::Unavailable, self.0.join("; "));
        Err(Error::Refused(Refusal { code, text }))
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal.code {
            Code::NotFree => Self::NotFree(refusal),
            _ => Self::Refused(refusal),
        }
    }
}

/// Why the release of a grant did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// The lock was lost before it was released.
    #[error(transparent)]
    Lost(#[from] LostGrant),
    /// No answer came. The lock may have been released; if not, it is released when the session
    /// ends.
    #[error("cannot tell whether the lock {lock} with fence {fence} was released: {why}")]
    Unknown {
        /// The name of the lock.
        lock: Name,
        /// The fence of the grant.
        fence: Fence,
        /// Why there is no answer.
        #[source]
        why: Box<Error>,
    },
}

/// A grant that was lost: other clients may have held the lock since.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("lost the lock {lock} with fence {fence}: {reason}")]
pub struct LostGrant {
    /// The name of the lock.
    pub lock: Name,
    /// The fence of the grant.
    pub fence: Fence,
    /// Why the grant was lost.
    pub reason: String,
}
