//! Brings the members of Raft in line with the seats of the record.
//!
//! The record says which machines belong to the group and which of them vote. The leader makes Raft
//! follow, one change at a time: a new seat first gets a copy of the log, and votes when it has
//! caught up. Each step looks at the record and at Raft anew, so a new leader goes on where an old
//! one has stopped, also in the middle of an exchange of voters.
//!
//! Raft keeps the address of a seat for good, because two machines that answer for one seat could
//! vote twice. If the address in the record differs, the seat is removed from Raft and added again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use doorway_node::members::{Record, Seat};
use openraft::{ChangeMembers, ServerState};
use tokio::time::sleep;

use crate::core::{Core, Engine};
use crate::types::{Membership, Metrics, Peer};

/// How many entries a seat may be behind when it becomes a voter.
const CAUGHT_UP: u64 = 50;

/// Go on bringing Raft in line with the record, while this node leads.
pub(crate) async fn run(core: Arc<Core>, engine: Arc<Engine>) {
    let Engine { raft, timings, guards } = &*engine;
    let records = core.records.clone();
    let metrics = raft.metrics();
    loop {
        sleep(timings.heartbeat()).await;
        let record = records.borrow().clone();
        let Some(record) = record else { continue };
        core.peers.retain(|seat| {
            let metrics = metrics.borrow();
            is_known(&record, metrics.membership_config.membership(), seat)
        });
        let change = {
            let metrics = metrics.borrow();
            let leads = metrics.state == ServerState::Leader && guards.accepts();
            leads.then(|| next_change(&record, &metrics)).flatten()
        };
        let Some(change) = change else { continue };
        tracing::info!("the voters of the group change: {change:?}");
        let changed = raft.change_membership(change, true);
        match guards.limit(timings.change(), changed).await {
            Some(Ok(_)) => {}
            Some(Err(error)) => tracing::warn!("the voters cannot be changed yet: {error}"),
            None => tracing::warn!("the change of the voters takes long"),
        }
    }
}

/// Whether a seat belongs to the group, by the record or still by Raft.
fn is_known(record: &Record, membership: &Membership, seat: u64) -> bool {
    record.seats.iter().any(|it| it.id.0 == seat) || membership.get_node(&seat).is_some()
}

/// The next step towards the record, if one is left.
fn next_change(record: &Record, metrics: &Metrics) -> Option<ChangeMembers<u64, Peer>> {
    let membership = metrics.membership_config.membership();
    let is_same = |seat: &Seat| membership.get_node(&seat.id.0).is_some_and(|peer| peer.is(seat));
    let seats: BTreeMap<u64, &Seat> = record.seats.iter().map(|seat| (seat.id.0, seat)).collect();

    // A new machine gets a copy of the log.
    if let Some((id, seat)) = seats.iter().find(|(id, _)| membership.get_node(id).is_none()) {
        return Some(ChangeMembers::AddNodes(BTreeMap::from([(*id, Peer::of(seat))])));
    }

    // Those vote that shall and can.
    let voting: BTreeSet<u64> = membership.voter_ids().collect();
    let can_vote = |seat: &Seat| {
        is_same(seat) && (voting.contains(&seat.id.0) || has_caught_up(metrics, seat.id.0))
    };
    let voters: BTreeSet<u64> =
        seats.values().filter(|seat| seat.voter && can_vote(seat)).map(|seat| seat.id.0).collect();
    let is_joint = membership.get_joint_config().len() > 1;
    if !voters.is_empty() && (voters != voting || is_joint) {
        return Some(ChangeMembers::ReplaceAllVoters(voters));
    }

    // A machine that left the group, or has another address now, gets nothing any more.
    let gone = membership
        .nodes()
        .find(|(id, _)| !voting.contains(id) && !seats.get(id).is_some_and(|seat| is_same(seat)));
    gone.map(|(id, _)| ChangeMembers::RemoveNodes(BTreeSet::from([*id])))
}

fn has_caught_up(metrics: &Metrics, seat: u64) -> bool {
    let Some(replication) = &metrics.replication else { return false };
    let Some(Some(matching)) = replication.get(&seat) else { return false };
    matching.index + CAUGHT_UP >= metrics.last_log_index.unwrap_or(0)
}
