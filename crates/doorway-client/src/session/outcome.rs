//! The outcome of a request.

use doorway_protocol::{Code, Fence, LockReport, Locks, NodeStatus, Refusal};

use crate::error::Error;
use crate::machine::Answer;

/// The outcome of a request.
#[derive(Debug)]
pub(crate) enum Outcome {
    Granted(Fence),
    Refused(Refusal),
    Unknown(Refusal),
    Released(bool),
    Answer(Answer),
}

impl Outcome {
    pub(crate) fn granted(self) -> Result<Fence, Error> {
        match self {
            Self::Granted(fence) => Ok(fence),
            other => Err(other.unexpected()),
        }
    }

    /// True if the grant was held until it was released.
    pub(crate) fn released(self) -> Result<bool, Error> {
        match self {
            Self::Released(held) => Ok(held),
            other => Err(other.unexpected()),
        }
    }

    pub(crate) fn lock(self) -> Result<LockReport, Error> {
        match self {
            Self::Answer(Answer::Lock(report)) => Ok(*report),
            other => Err(other.unexpected()),
        }
    }

    pub(crate) fn locks(self) -> Result<Locks, Error> {
        match self {
            Self::Answer(Answer::Locks(locks)) => Ok(locks),
            other => Err(other.unexpected()),
        }
    }

    pub(crate) fn status(self) -> Result<NodeStatus, Error> {
        match self {
            Self::Answer(Answer::Status(status)) => Ok(*status),
            other => Err(other.unexpected()),
        }
    }

    pub(crate) fn done(self) -> Result<(), Error> {
        match self {
            Self::Answer(Answer::Done) => Ok(()),
            other => Err(other.unexpected()),
        }
    }

    /// The error for an outcome that is not the expected answer.
    fn unexpected(self) -> Error {
        match self {
            Self::Refused(refusal) => refusal.into(),
            Self::Unknown(refusal) => Error::Unknown(refusal),
            other => {
                let text = format!("the node answered a different question: {other:?}");
                Error::Refused(Refusal { code: Code::Invalid, text })
            }
        }
    }
}
