//! Mistakes that a search must find.
//!
//! The shipped machine, the shipped shards and the shipped record are never changed. Each mistake
//! is made by what is around them: the host performs an output wrongly or too early, a keeper
//! proposes a command against its rules, or the store applies a command that the record would
//! refuse.

/// A rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// Missing snapshots are taken for empty ones as soon as most members have flushed.
    Majority,
    /// Missing snapshots are taken for empty ones as soon as the node itself has flushed.
    Alone,
    /// The snapshot of a member that has just entered is not awaited.
    EntrantNotAwaited,
    /// A restarted process serves although clients of its predecessor have yet to reclaim.
    HeirEarly,
    /// The predecessor of a waiting member is removed without that member.
    RemovedAlone,
    /// The members of a seat are removed before their leases have ended.
    RemovedEarly,
    /// A waiting member is removed before its lease has ended.
    ForgottenEarly,
    /// A process that ends gives up its membership although a client is inside.
    LeftInside,
    /// An evicted member gives up its membership before its lease has ended.
    EvictedLeavesEarly,
    /// A process that has lapsed joins again and keeps all its state.
    StateKept,
    /// A process that has lapsed joins again, and its shards keep their state.
    ShardsKept,
    /// A restarted process joins with the nonce of its predecessor, and so gets its number.
    SameIdentity,
    /// Clients may reclaim although the predecessor of the process was removed.
    AnyClaim,
    /// A lease of a process covers claims before a record has confirmed them.
    ClaimsCovered,
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
    /// Two members that cannot reach each other stay in the view.
    NoEviction,
    /// A client is told that it has a hold before the group has agreed on it.
    HoldNotAwaited,
    /// A view starts at a node that does not know the holds before its record.
    HoldsUnknown,
    /// The length of a hold is counted from when the group agreed on it, or by a clock that is too
    /// fast: a member drops it although the client still believes in it.
    CountedShort,
    /// A drop ends all holds of the lock, whatever their fence.
    AnyDropped,
    /// A node does not close the locks of orphans.
    DoorIgnored,
    /// A restarted process enters without taking over the holds of its predecessor.
    HoldNotTaken,
    /// A process that has lapsed drops the holds of its clients, which may not know that they have
    /// lost their locks.
    DroppedAtLapse,
    /// A member starts a view with the rules of the view before.
    OldRules,
    /// The group changes its rules without a new view, and each node uses them as soon as it sees
    /// them.
    RulesInPlace,
    /// A lock with more holders than its new rule lets in begins with some of them.
    CrowdIgnored,
    /// A node does not ask for another view when a client leaves a lock that is too full.
    RoomForgotten,
}
