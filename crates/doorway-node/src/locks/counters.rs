//! The counters of the locks of one rule, as plain values.

use std::ops::AddAssign;

/// What has happened to the locks of one rule since the node started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockCounters {
    /// Grants to clients.
    pub grants: u64,
    /// Requests that had to wait, whether they were granted later or withdrawn.
    pub waits: u64,
    /// Grants that passed from one client of this node to another, without the algorithm.
    pub handovers: u64,
    /// Entries for which a message of another member had to arrive.
    pub remote: u64,
    /// Messages of the algorithm that were sent.
    pub sent: u64,
    /// Messages of the algorithm that were received and not refused.
    pub received: u64,
    /// Bytes of the messages sent, without frames and headers.
    pub bytes: u64,
    /// The most clients of this node that ever waited for one lock.
    pub longest_queue: u64,
    /// Locks that are in memory now.
    pub kept: u64,
}

impl AddAssign for LockCounters {
    /// Add the counters of another shard.
    fn add_assign(&mut self, other: Self) {
        self.grants += other.grants;
        self.waits += other.waits;
        self.handovers += other.handovers;
        self.remote += other.remote;
        self.sent += other.sent;
        self.received += other.received;
        self.bytes += other.bytes;
        self.longest_queue = self.longest_queue.max(other.longest_queue);
        self.kept += other.kept;
    }
}
