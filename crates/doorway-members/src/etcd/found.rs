//! Founding a group in etcd.
//!
//! The state is created in one transaction, if there is none. Of two nodes that found the group at
//! the same time, one succeeds, and the other is told.

use std::time::Duration;

use doorway_node::members::{GroupState, Seat};

use super::core::RANGE;
use super::layout::EtcdState;
use super::line::Line;
use super::store::EtcdStore;
use super::wire::{self, Range};
use crate::error::FoundError;
use crate::found::{check_begin, check_machine};
use crate::group_store::GroupStore as _;

/// How long each question to etcd may take while a group is founded. No lease runs yet, so there is
/// no hurry.
pub(super) const FOUNDING: Duration = Duration::from_secs(5);

impl EtcdStore {
    /// Found a group that begins with this state.
    pub(super) async fn found(&self, state: GroupState) -> Result<(), FoundError> {
        let core = &*self.core;
        check_begin(&state, &core.ending, &core.bond)?;
        let record = &state.record;
        let is_me = |seat: &&Seat| seat.id.0 == core.seat && seat.name == core.name;
        if !record.seats.iter().any(|seat| is_me(&seat)) {
            return Err(FoundError::NotAVoter(core.name.clone()));
        }
        self.check_keys().await?;
        for seat in record.seats.iter().filter(|seat| seat.id.0 != core.seat) {
            check_machine(seat, self.ask(&seat.address).await)?;
        }
        let cluster = record.cluster;
        let created = core.create(EtcdState::new(state)).await;
        let found = core.newest().map(|(_, kept)| kept.state.record.cluster);
        match (found, created) {
            (Some(found), _) if found == cluster => Ok(()),
            (Some(cluster), _) => Err(FoundError::Overtaken { cluster }),
            (None, Err(error)) if error.not_sent => Err(FoundError::Etcd(error.why)),
            (None, created) => {
                let why = created.map_or_else(|error| error.why, |()| "no answer".to_owned());
                Err(FoundError::Etcd(format!(
                    "{why}; it is unknown whether the group was founded: look with `doorway \
                     members`, and try again"
                )))
            }
        }
    }

    /// Check that etcd has no group of this name, and no rest of one.
    async fn check_keys(&self) -> Result<(), FoundError> {
        let core = &*self.core;
        let failed = FoundError::Etcd;
        let mut line = Line::new(&core.access);
        let asked = line.call(RANGE, &wire::get_all(&core.keys.prefix), FOUNDING).await;
        let range: Range = asked.map_err(|error| failed(error.why))?;
        core.check_etcd(range.header).map_err(failed)?;
        let Some(first) = range.kvs.first().map(|pair| pair.key.clone()) else { return Ok(()) };
        let pairs = range.kvs.into_iter().map(|pair| (pair.key, pair.value));
        match core.keys.read(pairs).map_err(failed)? {
            Some(kept) => {
                let cluster = kept.state.record.cluster;
                Err(FoundError::Overtaken { cluster })
            }
            None => Err(FoundError::BadRecord(format!(
                "etcd has keys of an earlier group, such as {first}; delete them with `etcdctl del \
                 --prefix {}` if nobody needs that group any more",
                core.keys.prefix
            ))),
        }
    }
}
