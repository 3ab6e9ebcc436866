//! Mistakes that a search must find.
//!
//! The shipped machine and the shipped shards are never changed. Each mistake is made by the host:
//! it performs an output wrongly, or too early, or reports an event that has not happened.

/// A rule that the host of a node breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// Missing snapshots are taken for empty ones as soon as most members have flushed.
    Majority,
    /// Missing snapshots are taken for empty ones as soon as the node itself has flushed.
    Alone,
    /// A restarted process keeps its epoch.
    SameEpoch,
    /// A raised epoch is reported before it is on the disk.
    NotDurable,
    /// Messages of older views are taken for new ones.
    OldSteps,
    /// A flush for an older view counts for the newest one.
    OlderFlush,
    /// A view is started after its node has stopped and flushed for a newer one.
    LateStart,
    /// The snapshot lists no holders.
    NoHolders,
    /// The snapshot is taken before the shards stop.
    SnapshotFirst,
    /// The node flushes, and its shards go on until the next view starts.
    FlushFirst,
    /// The snapshot is taken again for each receiver.
    Reread,
    /// The node's own snapshot is taken again as it starts.
    RereadOwn,
    /// A client that leaves between two views is not released.
    ReleaseForgotten,
    /// A client that waits when a view ends is not asked for in the next view.
    NotAskedAgain,
    /// Messages of a view that the receiver has not started yet are dropped.
    EarlyDropped,
    /// Fences consist of clocks only, without the view.
    BareFence,
    /// A process that connects is not told the snapshot.
    FlushOnce,
    /// A node serves although clients of its predecessor have yet to reclaim.
    ServeEarly,
    /// A client that keeps a lock is not told that another one wants it.
    NotRevoked,
    /// The lock of a client that keeps it is released although the client is inside.
    ReleasedInside,
    /// A client enters a lock that it kept, without looking whether it still does.
    EntersUnasked,
    /// The state machine of the algorithm asks twice.
    SecondAcquire,
}
