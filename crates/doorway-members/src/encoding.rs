//! How entries, votes and snapshots are written on disk and on the wire.
//!
//! These are types of our own. So neither the file nor the protocol changes when openraft changes
//! its types.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use doorway_node::members::{AuditLog, Command, GroupState, Holds, Record, RuleTables};
use openraft::{CommittedLeaderId, EntryPayload};
use serde::{Deserialize, Serialize};

use crate::types::{
    Entry, Image, LogId, Membership, Peer, Snapshot, SnapshotMeta, StoredMembership, Vote,
};

/// A vote for a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ballot {
    pub(crate) term: u64,
    pub(crate) seat: u64,
    pub(crate) committed: bool,
}

/// A place in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) term: u64,
    pub(crate) seat: u64,
    pub(crate) index: u64,
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) place: Place,
    pub(crate) content: Content,
}

/// What an entry of the log says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Content {
    Blank,
    Command(Command),
    Voters(Voters),
}

/// Who votes, and who gets a copy of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Voters {
    /// One set of voters; two while one is exchanged for the other.
    sets: Vec<BTreeSet<u64>>,
    peers: BTreeMap<u64, Peer>,
}

/// A snapshot of the state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Picture {
    id: String,
    last: Option<Place>,
    voters_at: Option<Place>,
    voters: Voters,
    state: Option<StoredState>,
}

/// Everything on which a group has agreed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredState {
    record: Record,
    holds: Holds,
    audit: AuditLog,
    rules: RuleTables,
}

impl From<&GroupState> for StoredState {
    fn from(state: &GroupState) -> Self {
        let GroupState { record, holds, audit, rules } = state;
        let (record, holds) = (Record::clone(record), Holds::clone(holds));
        let (audit, rules) = (AuditLog::clone(audit), RuleTables::clone(rules));
        Self { record, holds, audit, rules }
    }
}

impl From<StoredState> for GroupState {
    fn from(StoredState { record, holds, audit, rules }: StoredState) -> Self {
        let (record, holds) = (Arc::new(record), Arc::new(holds));
        Self { record, holds, audit: Arc::new(audit), rules: Arc::new(rules) }
    }
}

impl Line {
    /// The first entry of a log, in which the seats that vote found their group.
    pub(crate) fn founding(voters: BTreeMap<u64, Peer>) -> Self {
        let sets = vec![voters.keys().copied().collect()];
        let place = Place { term: 0, seat: 0, index: 0 };
        Self { place, content: Content::Voters(Voters { sets, peers: voters }) }
    }
}

impl From<Vote> for Ballot {
    fn from(vote: Vote) -> Self {
        let leader = vote.leader_id;
        Self { term: leader.term, seat: leader.node_id, committed: vote.committed }
    }
}

impl From<Ballot> for Vote {
    fn from(ballot: Ballot) -> Self {
        let Ballot { term, seat, committed } = ballot;
        if committed { Self::new_committed(term, seat) } else { Self::new(term, seat) }
    }
}

impl From<LogId> for Place {
    fn from(id: LogId) -> Self {
        Self { term: id.leader_id.term, seat: id.leader_id.node_id, index: id.index }
    }
}

impl From<Place> for LogId {
    fn from(place: Place) -> Self {
        Self::new(CommittedLeaderId::new(place.term, place.seat), place.index)
    }
}

impl From<&Entry> for Line {
    fn from(entry: &Entry) -> Self {
        let content = match &entry.payload {
            EntryPayload::Blank => Content::Blank,
            EntryPayload::Normal(command) => Content::Command(command.clone()),
            EntryPayload::Membership(membership) => Content::Voters(membership.into()),
        };
        Self { place: entry.log_id.into(), content }
    }
}

impl From<Line> for Entry {
    fn from(line: Line) -> Self {
        let payload = match line.content {
            Content::Blank => EntryPayload::Blank,
            Content::Command(command) => EntryPayload::Normal(command),
            Content::Voters(voters) => EntryPayload::Membership(voters.into()),
        };
        Self { log_id: line.place.into(), payload }
    }
}

impl From<&Membership> for Voters {
    fn from(membership: &Membership) -> Self {
        let peers = membership.nodes().map(|(seat, peer)| (*seat, peer.clone())).collect();
        Self { sets: membership.get_joint_config().clone(), peers }
    }
}

impl From<Voters> for Membership {
    fn from(voters: Voters) -> Self {
        Self::new(voters.sets, voters.peers)
    }
}

impl From<&Snapshot> for Picture {
    fn from(snapshot: &Snapshot) -> Self {
        let SnapshotMeta { last_log_id, last_membership, snapshot_id } = &snapshot.meta;
        Self {
            id: snapshot_id.clone(),
            last: last_log_id.map(Place::from),
            voters_at: last_membership.log_id().map(Place::from),
            voters: last_membership.membership().into(),
            state: (*snapshot.snapshot).as_ref().map(StoredState::from),
        }
    }
}

impl From<Picture> for Snapshot {
    fn from(picture: Picture) -> Self {
        let voters_at = picture.voters_at.map(LogId::from);
        let meta = SnapshotMeta {
            last_log_id: picture.last.map(LogId::from),
            last_membership: StoredMembership::new(voters_at, picture.voters.into()),
            snapshot_id: picture.id,
        };
        let image: Image = picture.state.map(GroupState::from);
        Self { meta, snapshot: Box::new(image) }
    }
}
