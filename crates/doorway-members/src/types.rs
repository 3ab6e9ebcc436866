//! The types with which this crate uses openraft.

use std::fmt;

use doorway_node::members::{Answer, Command, GroupState, Seat};
use openraft::TokioRuntime;
use serde::{Deserialize, Serialize};

use crate::encoding::StoredState;

openraft::declare_raft_types!(
    /// The types of our replicated log.
    pub(crate) TypeConfig:
        D = Command,
        R = Answer,
        NodeId = u64,
        Node = Peer,
        Entry = openraft::Entry<TypeConfig>,
        SnapshotData = Image,
        AsyncRuntime = TokioRuntime,
);

pub(crate) type Raft = openraft::Raft<TypeConfig>;
pub(crate) type Entry = openraft::Entry<TypeConfig>;
pub(crate) type LogId = openraft::LogId<u64>;
pub(crate) type Vote = openraft::Vote<u64>;
pub(crate) type Membership = openraft::Membership<u64, Peer>;
pub(crate) type StoredMembership = openraft::StoredMembership<u64, Peer>;
pub(crate) type SnapshotMeta = openraft::SnapshotMeta<u64, Peer>;
pub(crate) type Snapshot = openraft::Snapshot<TypeConfig>;
pub(crate) type StorageError = openraft::StorageError<u64>;
pub(crate) type Metrics = openraft::RaftMetrics<u64, Peer>;

/// The state that a snapshot contains, once the group was founded.
pub(crate) type Image = Option<GroupState>;

/// What Raft knows of a seat besides its number.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) address: String,
    /// The first state of the group, at the seat that founded it. The first entry of the log names
    /// the voters. Because this state is in it, all replicas begin with the same state, and a
    /// group cannot have voters without having a record.
    pub(crate) founding: Option<Box<StoredState>>,
}

impl Peer {
    pub(crate) fn of(seat: &Seat) -> Self {
        Self { name: seat.name.clone(), address: seat.address.clone(), founding: None }
    }

    /// Whether this is the machine of that seat.
    pub(crate) fn is(&self, seat: &Seat) -> bool {
        self.name == seat.name && self.address == seat.address
    }
}

/// openraft prints this often.
impl fmt::Debug for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} at {}", self.name, self.address)
    }
}
