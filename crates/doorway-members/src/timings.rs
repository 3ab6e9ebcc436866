//! The times of the store, all of them fractions of the lease.

use std::time::Duration;

use openraft::{Config, SnapshotPolicy};

/// After how many entries a snapshot is made.
const SNAPSHOT_ENTRIES: u64 = 1_000;

/// How many entries are kept behind a snapshot, for members that are a little late.
const KEPT_ENTRIES: u64 = 200;

/// The times of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timings {
    lease: Duration,
}

impl Timings {
    pub(crate) fn new(lease_ms: u32) -> Self {
        Self { lease: Duration::from_millis(lease_ms.into()) }
    }

    pub(crate) fn lease_ms(&self) -> u32 {
        self.lease.as_millis() as u32
    }

    /// How often a leader sends heartbeats. openraft also waits this long for an answer to them.
    pub(crate) fn heartbeat(&self) -> Duration {
        self.lease / 40
    }

    /// After how long without a leader a member stands for election, at least.
    pub(crate) fn election_min(&self) -> Duration {
        self.lease * 7 / 100
    }

    /// After how long without a leader a member stands for election, at most.
    pub(crate) fn election_max(&self) -> Duration {
        self.lease * 14 / 100
    }

    /// How long a command may take. The sender repeats a renewal long before that.
    pub(crate) fn put(&self) -> Duration {
        self.lease * 3 / 10
    }

    /// How long it may take to connect to another member.
    pub(crate) fn connect(&self) -> Duration {
        self.lease / 5
    }

    /// How long a member may be silent before it counts as unreachable.
    pub(crate) fn silence(&self) -> Duration {
        self.lease * 3 / 10
    }

    /// How often other members are asked whether they are there.
    pub(crate) fn ping(&self) -> Duration {
        self.lease / 10
    }

    /// How long a change of the voters may take.
    pub(crate) fn change(&self) -> Duration {
        self.lease / 2
    }

    /// The configuration of openraft.
    pub(crate) fn config(&self, group: &str) -> Config {
        let millis = |time: Duration| time.as_millis() as u64;
        Config {
            cluster_name: group.to_owned(),
            heartbeat_interval: millis(self.heartbeat()),
            election_timeout_min: millis(self.election_min()),
            election_timeout_max: millis(self.election_max()),
            install_snapshot_timeout: millis(self.lease / 5),
            snapshot_policy: SnapshotPolicy::LogsSinceLast(SNAPSHOT_ENTRIES),
            max_in_snapshot_log_to_keep: KEPT_ENTRIES,
            ..Config::default()
        }
    }
}
