//! The messages of Maekawa's section 9.

use core::fmt;

use crate::algorithms::maekawa::{self, cost};
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

impl Message {
    /// The number to learn from it.
    pub fn clock(&self) -> u64 {
        match self {
            Self::About(_, message) => message.clock(),
            Self::Recover(_, request) => request.map_or(0, |(clock, _)| clock),
        }
    }

    /// The numbers in it.
    pub fn numbers(&mut self, each: Each<'_>) {
        match self {
            Self::About(_, message) => message.numbers(each),
            Self::Recover(_, request) => request.iter_mut().for_each(|(clock, _)| each(clock)),
        }
    }

    /// Is its arbiter in a quorum of the node that asks it: of the sender, or of the receiver?
    pub fn is_of_quorum(&self, group: &Group, from: NodeId, to: NodeId) -> bool {
        match self {
            Self::About(arbiter, message) if !message.is_for_arbiter() => {
                cost::asks(group, to, *arbiter)
            }
            Self::About(arbiter, _) | Self::Recover(arbiter, _) => {
                cost::asks(group, from, *arbiter)
            }
        }
    }
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
