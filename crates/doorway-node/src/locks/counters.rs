//! What a shard counts, as plain values.

use std::ops::AddAssign;

/// What happened under one rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockCounters {
    /// Clients that went inside.
    pub grants: u64,
    /// Clients that had to wait first, whether they went inside later or gave up.
    pub waits: u64,
    /// Grants that passed from client to client of this node, without the algorithm.
    pub handovers: u64,
    /// Entries for which a message of a peer had to arrive.
    pub remote: u64,
    /// Messages of the algorithm that were sent.
    pub sent: u64,
    /// Messages of the algorithm that were received and not refused.
    pub received: u64,
    /// Bytes of the messages sent, without what surrounds them in a frame.
    pub bytes: u64,
    /// The most clients of this node that ever waited for one lock.
    pub longest_queue: u64,
    /// Locks in memory now.
    pub kept: u64,
}

impl AddAssign for LockCounters {
    /// Put the counts of two shards together.
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
