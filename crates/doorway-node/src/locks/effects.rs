//! What a shard asks its node to do.

use std::task::Waker;

use doorway_core::NodeId;
use doorway_protocol::{Fence, Name};

use super::event::Record;
use super::lock::ClientId;
use super::machine::Fault;
use crate::messages::AlgorithmMessage;

/// A grant that a session has lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostGrant {
    /// The number of the session at this node; 0 if the client had none.
    pub session: u64,
    /// The lock.
    pub lock: Name,
    /// The fence.
    pub fence: Fence,
}

/// What the node has to do after a call to a shard.
#[derive(Debug, Default)]
pub struct ShardEffects {
    /// Messages to send, in order. They must be in the outboxes before the shard is unlocked.
    pub messages: Vec<(NodeId, AlgorithmMessage)>,
    /// Wakers to wake, once the shard is unlocked.
    pub wakers: Vec<Waker>,
    /// Wakers that are not needed any more. They must be dropped after the shard is unlocked: a
    /// waker may own a task, and the task may own a guard of this shard.
    pub discarded: Vec<Waker>,
    /// The grants that were lost.
    pub lost: Vec<LostGrant>,
    /// The locks that a client keeps, and that somebody else wants from now on.
    pub wanted: Vec<Name>,
    /// The clients that must not use the numbers that were reserved for them any more, because
    /// somebody else wants the lock or because it is lost: see [`Shard::release_revoked`].
    ///
    /// [`Shard::release_revoked`]: super::Shard::release_revoked
    pub revoked: Vec<ClientId>,
    /// Messages that were refused and faults that broke a lock, for the log. The node is the one
    /// that caused it, possibly this node.
    pub refused: Vec<(NodeId, Name, Fault)>,
    /// The shard's clock is near its limit, or the shard cannot go on in this view: the group must
    /// start the next view.
    pub overdue: bool,
    /// A lock lingers: after [`Patience::linger`](super::Patience::linger), or a little later,
    /// [`Shard::end_lingers`](super::Shard::end_lingers) must be called.
    pub lingers: bool,
    /// The shard has found that the lease of its node has ended: all shards must lapse.
    pub lapsed: bool,
    /// What happened, if the shard records it. The records must be in the recorder's queue before
    /// the shard is unlocked.
    pub records: Vec<Record>,
}
