//! What a lock does at its node, written down where somebody wants to know.

use std::time::Duration;

use doorway_core::{Mode, NodeId, Start};
use doorway_protocol::Name;

use super::machine::Fault;

/// Something that happened to this node as a member of the algorithm of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockEvent {
    /// The lock begins here, for the first time in its view or after it was forgotten.
    Begin(Start),
    /// The node asks.
    Acquire(Mode),
    /// The node goes inside.
    Enter,
    /// The node leaves, or gives back one permit.
    Release,
    /// A message of the algorithm is sent.
    Send {
        /// The receiver.
        to: NodeId,
        /// The message as a person reads it.
        message: String,
    },
    /// A message of the algorithm arrives: of those that this sender sent here about this lock in
    /// this view, the next.
    Receive {
        /// The sender.
        from: NodeId,
    },
    /// The message that has just arrived was refused, and changed nothing.
    Refuse(Fault),
    /// The lock is of no use any more in this view.
    Break(Fault),
}

/// What happened to a lock at one moment, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The time since the node started.
    pub at: Duration,
    /// The view.
    pub view: u64,
    /// The lock.
    pub lock: Name,
    /// The rule it goes by, by its place in the list.
    pub rule: usize,
    /// What happened.
    pub events: Vec<LockEvent>,
}
