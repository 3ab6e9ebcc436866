//! Founding a group.
//!
//! The first entry of the log names the voters, and contains the first record of the group. So a
//! group is founded in one step, and all members begin with the same record. Before that, every
//! machine is asked who it is: a machine that belongs to another group must not be named.

use std::collections::BTreeMap;

use doorway_node::members::{
    GroupState, LONGEST_LEASE_MS, NAME_LIMIT, RULES_LIMIT, Record, RecordError, RuleTables,
    SEATS_LIMIT, SHORTEST_LEASE_MS, Seat,
};
use openraft::error::{InitializeError, RaftError};
use tokio::time::timeout;

use crate::bond::Bond;
use crate::encoding::StoredState;
use crate::ending::Ending;
use crate::error::{AskError, FoundError};
use crate::rpc::frame::Hello;
use crate::store::RaftStore;
use crate::types::Peer;

impl RaftStore {
    /// Found a group of these machines, with these rules for locks. This node has to be one of its
    /// voters.
    pub async fn found(
        &self,
        seats: Vec<Seat>,
        lease_ms: u32,
        rules: RuleTables,
        cluster: u128,
    ) -> Result<(), FoundError> {
        let record = Record::new(cluster, lease_ms, 0, seats);
        self.found_with(GroupState::new(record).with_rules(rules)).await
    }

    /// Found a group that begins with this state, for example above the view of a former group.
    pub async fn found_with(&self, state: GroupState) -> Result<(), FoundError> {
        let record = &state.record;
        let core = self.core();
        check_begin(&state, &core.ending, &core.bond)?;
        let is_me = |seat: &&Seat| seat.id.0 == core.seat && seat.name == core.name;
        if !record.seats.iter().filter(is_me).any(|seat| seat.voter) {
            return Err(FoundError::NotAVoter(core.name.clone()));
        }
        // If two machines found a group at the same time, at least one of them sees the other.
        core.bond.join(record.cluster).map_err(|cluster| FoundError::Founded { cluster })?;
        for seat in record.seats.iter().filter(|seat| seat.id.0 != core.seat) {
            if let Err(error) = check_machine(seat, self.ask(&seat.address).await) {
                core.bond.dissolve();
                return Err(error);
            }
        }
        let voters = record.seats.iter().filter(|seat| seat.voter);
        let mut voters: BTreeMap<u64, Peer> =
            voters.map(|seat| (seat.id.0, Peer::of(seat))).collect();
        if let Some(me) = voters.get_mut(&core.seat) {
            me.founding = Some(Box::new(StoredState::from(&state)));
        }
        if let Err(error) = core.engine().raft.initialize(voters).await {
            return Err(match error {
                RaftError::APIError(InitializeError::NotAllowed(_)) => {
                    FoundError::Founded { cluster: core.bond.cluster().unwrap_or_default() }
                }
                RaftError::APIError(error) => {
                    core.bond.dissolve();
                    FoundError::BadRecord(error.to_string())
                }
                RaftError::Fatal(error) => FoundError::Ended(error.to_string()),
            });
        }
        let mut records = core.records.clone();
        let limit = core.engine().timings.put() * 3;
        let begun = timeout(limit, records.wait_for(Option::is_some)).await;
        begun.map_err(|_| FoundError::NoLeader(limit.as_secs()))?.map(drop).map_err(|_| {
            FoundError::Ended(core.ending.reason().unwrap_or_else(|| "it was closed".to_owned()))
        })
    }
}

/// Check that a machine answers, is the expected one, and belongs to no group.
pub(crate) fn check_machine(
    seat: &Seat,
    answer: Result<Hello, AskError>,
) -> Result<(), FoundError> {
    let Seat { id, name, address, .. } = seat;
    let wrong = |why: String| {
        let (name, address) = (name.clone(), address.clone());
        Err(FoundError::Machine { name, address, why })
    };
    match answer {
        Err(error) => wrong(error.to_string()),
        Ok(hello) if hello.name != *name => wrong(format!("it answers as `{}`", hello.name)),
        Ok(hello) if hello.seat != id.0 => {
            wrong(format!("it has seat {:x}, not seat {:x}", hello.seat, id.0))
        }
        Ok(hello) => match hello.cluster {
            Some(cluster) => wrong(format!(
                "it belongs to group {cluster:032x} already; add it there, or start it with an \
                 empty data directory"
            )),
            None => Ok(()),
        },
    }
}

/// Check that this node can found a group, and that the group can begin with this state.
pub(crate) fn check_begin(
    state: &GroupState,
    ending: &Ending,
    bond: &Bond,
) -> Result<(), FoundError> {
    if let Some(why) = ending.reason() {
        return Err(FoundError::Ended(why));
    }
    if let Some(cluster) = bond.cluster() {
        return Err(FoundError::Founded { cluster });
    }
    check(state)
}

/// Check the first state of a group.
fn check(state: &GroupState) -> Result<(), FoundError> {
    let record = &state.record;
    let bad = |why: String| Err(FoundError::BadRecord(why));
    let lease = record.lease_ms;
    if !(SHORTEST_LEASE_MS..=LONGEST_LEASE_MS).contains(&lease) {
        return bad(format!(
            "a lease takes {SHORTEST_LEASE_MS} to {LONGEST_LEASE_MS} ms, not {lease} ms"
        ));
    }
    if state.rules.bytes() > RULES_LIMIT {
        return bad(RecordError::LongRules(state.rules.bytes()).to_string());
    }
    if record.seats.len() > SEATS_LIMIT {
        return bad(format!("a group has at most {SEATS_LIMIT} machines"));
    }
    let fits = |text: &str| (1..=NAME_LIMIT).contains(&text.len());
    for (place, seat) in record.seats.iter().enumerate() {
        if !fits(&seat.name) || !fits(&seat.address) {
            return bad(format!("a name and an address have 1 to {NAME_LIMIT} bytes"));
        }
        let same = |other: &Seat| {
            other.id == seat.id || other.name == seat.name || other.address == seat.address
        };
        if record.seats[..place].iter().any(same) {
            return bad(format!("`{}` has the name, seat or address of another one", seat.name));
        }
    }
    Ok(())
}
