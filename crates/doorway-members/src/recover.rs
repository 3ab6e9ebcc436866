//! Going on with one machine after the majority of the voters is lost for ever.
//!
//! This is not a vote, but the decision of an operator. The machine founds a group of its own, from
//! what its file shows of the old one. The new group has another number, so no machine of the old
//! group can talk to it by mistake. The view jumps by [`VIEW_STEP`]: views that the old group began
//! without this machine have lower numbers, unless there were more of them than that. Then the
//! operator has to name a view that was seen elsewhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use doorway_node::Fence;
use doorway_node::members::{AuditEntry, AuditLog, GroupState, Record, Seat};

use crate::disk::{Change, Content, Disk};
use crate::encoding::{Line, StoredState};
use crate::error::OpenError;
use crate::state_machine::newest;
use crate::types::Peer;

/// By how much the number of the view jumps if not all views of the former group are known.
pub const VIEW_STEP: u64 = 1 << 16;

/// A machine cannot go on alone. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The file cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The directory has no group.
    #[error(
        "{} does not have the data of a group that agrees on its members; give the data directory \
         of a machine that belonged to it",
        .0.display()
    )]
    NoGroup(PathBuf),
    /// The machine does not belong to the group.
    #[error(
        "this machine was removed from its group, or was never a member of it; recover another \
         machine"
    )]
    NoSeat,
    /// The disk shows a higher view than the one that the operator has named.
    #[error(
        "the disk of this machine shows view {known}, so the group has reached more than view \
         {named}: give the highest view that `doorway status` has shown at any machine, or leave \
         out --view-at-least"
    )]
    LowView {
        /// The view on the disk.
        known: u64,
        /// The view that was named.
        named: u64,
    },
    /// The number of views is exhausted.
    #[error(
        "view {0} cannot be raised by {VIEW_STEP}: fences cannot tell more than {limit} views apart",
        limit = Fence::VIEW_LIMIT
    )]
    NoMoreViews(u64),
    /// The file cannot be written.
    #[error("{}: {why}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        why: String,
    },
}

/// A machine whose node does not run, and what its file shows of its group. While this lives, no
/// node can use the file.
pub struct Survivor {
    disk: Disk,
    state: GroupState,
    seat: Seat,
    /// The highest view of the old group that is known.
    known: u64,
}

impl Survivor {
    /// Look at the data directory of a machine whose node does not run. The old group has reached
    /// the view `seen`, if the operator names one.
    pub fn open(directory: &Path, seen: Option<u64>) -> Result<Self, RecoverError> {
        let no_group = || RecoverError::NoGroup(directory.to_owned());
        let (disk, mut content) = Disk::open_existing(directory)?.ok_or_else(no_group)?;
        let id = content.seat;
        let state = newest(&mut content).ok_or_else(no_group)?;
        let record = &state.record;
        let seat = record.seats.iter().find(|seat| seat.id.0 == id).cloned();
        let seat = seat.ok_or(RecoverError::NoSeat)?;
        let known = record.number;
        if let Some(named) = seen.filter(|seen| *seen < known) {
            return Err(RecoverError::LowView { known, named });
        }
        let known = seen.unwrap_or(known);
        if known.saturating_add(VIEW_STEP) >= Fence::VIEW_LIMIT {
            return Err(RecoverError::NoMoreViews(known));
        }
        Ok(Self { disk, state, seat, known })
    }

    /// The newest record that the machine knows. Its last changes may never have been agreed on.
    pub fn record(&self) -> &Record {
        &self.state.record
    }

    /// The machine.
    pub fn seat(&self) -> &Seat {
        &self.seat
    }

    /// The first view of the new group.
    pub fn next_view(&self) -> u64 {
        self.known + VIEW_STEP
    }

    /// Found a group of this machine alone, with this address and this number, and note that in the
    /// audit log. Promises that are longer than a lease stay: their members are gone, so all of
    /// their time is waited for. All of it is on disk when this returns.
    pub fn found_alone(
        mut self,
        address: String,
        cluster: u128,
        entry: &AuditEntry,
    ) -> Result<(), RecoverError> {
        let seat = Seat { address, voter: true, ..self.seat.clone() };
        let GroupState { record: old, holds, audit, rules } = &self.state;
        let mut record = Record::new(cluster, old.lease_ms, old.rules, vec![seat.clone()]);
        (record.number, record.last, record.holds) = (self.next_view(), old.last, old.holds);
        let mut audit = AuditLog::clone(audit);
        audit.note(entry);
        let (record, holds, audit) = (Arc::new(record), Arc::clone(holds), Arc::new(audit));
        let rules = Arc::clone(rules);
        let state = StoredState::from(&GroupState { record, holds, audit, rules });
        let founder = Peer { founding: Some(Box::new(state)), ..Peer::of(&seat) };
        let line = Line::founding(BTreeMap::from([(seat.id.0, founder)]));
        let (line, file) = (Box::new(line), self.disk.identity());
        let written = self.disk.write(&[Change::Restart { cluster, line, file }]);
        let path = self.disk.path();
        written.map_err(|error| RecoverError::Write { path, why: error.to_string() })
    }
}

/// The number of the group to which the node of this directory belongs, if it agrees on its
/// members.
pub fn group_of(directory: &Path) -> Result<Option<u128>, OpenError> {
    let opened = Disk::open_existing(directory)?;
    Ok(opened.and_then(|(_, Content { cluster, .. })| cluster))
}
