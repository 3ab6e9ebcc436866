//! What a shard asks its node to do.

use std::task::Waker;

use doorway_core::NodeId;
use doorway_protocol::{Fence, Name};

use super::event::Record;
use super::machine::Fault;
use crate::messages::AlgorithmMessage;

/// A session was inside of a lock, under this fence, and has lost it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostGrant {
    /// The session, by its number at this node; none has the number 0.
    pub session: u64,
    /// The lock.
    pub lock: Name,
    /// The fence.
    pub fence: Fence,
}

/// What is to be done about what happened.
#[derive(Debug, Default)]
pub struct ShardEffects {
    /// Messages to send, in order. They go into their queues before the shard is unlocked.
    pub messages: Vec<(NodeId, AlgorithmMessage)>,
    /// Whom to wake, once the shard is unlocked.
    pub wakers: Vec<Waker>,
    /// Wakers that are of no more use, to be dropped once the shard is unlocked: one may own a
    /// task, and the task a lock of this shard.
    pub discarded: Vec<Waker>,
    /// Who was inside of something and has lost it.
    pub lost: Vec<LostGrant>,
    /// What was refused or broke a lock, for the log: who did it, which may be this node.
    pub refused: Vec<(NodeId, Name, Fault)>,
    /// The clock is far, or the shard cannot go on in this view: the group must start the next.
    pub overdue: bool,
    /// What happened, in a shard that writes it down. It goes into its queue before the shard is
    /// unlocked.
    pub records: Vec<Record>,
}
