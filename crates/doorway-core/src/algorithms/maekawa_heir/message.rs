//! The messages of Maekawa's section 9.

use core::fmt;

use crate::algorithms::maekawa;
use crate::algorithms::prelude::*;

/// The messages of `maekawa`, and the one of section 9.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    /// To or from this node's arbiter, wherever it runs.
    About(NodeId, maekawa::Message),
    /// What the sender knows of this node's lost arbiter: the number of the sender's open request,
    /// and whether it has the lock.
    Recover(NodeId, Option<(u64, bool)>),
}

/// A message is known by the paper's name, which comes first.
impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::About(arbiter, message) => write!(f, "{message:?} arbiter {arbiter}"),
            Self::Recover(arbiter, request) => write!(f, "Recover({request:?}) arbiter {arbiter}"),
        }
    }
}
