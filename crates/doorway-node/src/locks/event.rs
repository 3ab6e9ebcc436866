//! What a lock does at its node, for a recording.

use std::time::Duration;

use doorway_core::{Holder, Mode, NodeId, Start};
use doorway_protocol::Name;

use super::machine::Fault;

/// One event of this node as a member of the algorithm of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockEvent {
    /// The lock begins here, for the first time in its view or after it was forgotten.
    Begin(Start),
    /// A recording begins while the lock is in use. This is how the lock stands at this node.
    Stand {
        /// How this node holds the lock, if it does.
        holder: Option<Holder>,
        /// In which mode this node waits for it, if it does.
        waiting: Option<Mode>,
    },
    /// The node asks for the lock.
    Acquire(Mode),
    /// The node enters.
    Enter,
    /// The node leaves, or gives back one permit.
    Release,
    /// The node withdraws its request, because no client waits any more.
    Withdraw,
    /// A message of the algorithm is sent.
    Send {
        /// The receiver.
        to: NodeId,
        /// The message in a form for people.
        message: String,
    },
    /// A message of the algorithm arrives. It is the next of those that this sender has sent to
    /// this node about this lock in this view.
    Receive {
        /// The sender.
        from: NodeId,
    },
    /// The message that has just arrived was refused, and changed nothing.
    Refuse(Fault),
    /// The lock cannot be used any more in this view.
    Break(Fault),
}

/// The events of a lock in one call to its shard, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The time since the node started.
    pub at: Duration,
    /// The view.
    pub view: u64,
    /// The lock.
    pub lock: Name,
    /// The rule of the lock, by its index in the list of rules.
    pub rule: usize,
    /// The events.
    pub events: Vec<LockEvent>,
}
