//! Whether the ledger can be written.
//!
//! If something cannot be written, the ledger is in trouble. A record that can be written does not
//! end that: on a full disk, the places of erased records can still be used. So while the trouble
//! lasts, the shell probes the ledger again and again, and a probe that succeeds ends it.
//!
//! If the record of a grant that ends cannot be erased, the grant keeps its lock until the record
//! is erased later.

use std::collections::BTreeSet;
use std::time::Duration;

use doorway_protocol::Moment;

use super::event::{AskId, Output};
use super::{Sessions, Stage};

/// The shortest time between two probes.
const PAUSE: Duration = Duration::from_secs(1);

/// What is known about writing to the ledger.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct LedgerState {
    /// Since when it cannot be written, and the latest reason.
    trouble: Option<(Moment, String)>,
    /// When it was tried last whether it can be written.
    tried: Option<Moment>,
}

/// The grants that have ended while the ledger still has them. The shell keeps them at the node:
/// otherwise another client could hold the lock, and after a crash the next process would hold it
/// too.
#[derive(Clone, Debug, Default)]
pub struct WithheldGrants {
    /// The places whose records could not be erased.
    unerased: BTreeSet<u32>,
    grants: Vec<AskId>,
}

impl WithheldGrants {
    /// The record at this place could not be erased.
    pub fn note_unerased(&mut self, place: u32) {
        self.unerased.insert(place);
    }

    /// Whether a grant of [`Output::Release`] goes back to the node now. Otherwise
    /// [`WithheldGrants::take`] names it later.
    pub fn releases(&mut self, grant: AskId, place: Option<u32>) -> bool {
        let withheld = place.is_some_and(|place| self.unerased.contains(&place));
        if withheld {
            self.grants.push(grant);
        }
        !withheld
    }

    /// All records that have ended are erased. Returns the grants that go back to the node.
    pub fn take(&mut self) -> Vec<AskId> {
        self.unerased.clear();
        std::mem::take(&mut self.grants)
    }
}

impl Sessions {
    /// Since when the ledger cannot be written, and why.
    pub fn ledger_trouble(&self) -> Option<(Moment, &str)> {
        self.ledger.trouble.as_ref().map(|(since, error)| (*since, error.as_str()))
    }

    /// Note it if something could not be written.
    pub(super) fn note_failure(
        &mut self,
        now: Moment,
        written: &Result<(), String>,
        out: &mut Vec<Output>,
    ) {
        let Err(error) = written else { return };
        let LedgerState { trouble, tried } = &mut self.ledger;
        *tried = Some(now);
        if let Some((_, known)) = trouble {
            known.clone_from(error);
        } else {
            *trouble = Some((now, error.clone()));
            out.push(Output::LedgerTrouble(Some(error.clone())));
        }
    }

    /// Ask for a probe, unless it was tried a moment ago.
    pub(super) fn probe_ledger(&mut self, now: Moment, out: &mut Vec<Output>) {
        let due = self.ledger.tried.is_none_or(|tried| now.since(tried) >= PAUSE);
        if self.setup.ledger && self.stage != Stage::Stopped && due {
            self.ledger.tried = Some(now);
            out.push(Output::Probe);
        }
    }

    /// Ask for a probe while the ledger is in trouble.
    pub(super) fn probe_in_trouble(&mut self, now: Moment, out: &mut Vec<Output>) {
        if self.ledger.trouble.is_some() {
            self.probe_ledger(now, out);
        }
    }

    /// The ledger was probed.
    pub(super) fn probed(
        &mut self,
        now: Moment,
        written: &Result<(), String>,
        out: &mut Vec<Output>,
    ) {
        self.note_failure(now, written, out);
        if written.is_ok() && self.ledger.trouble.take().is_some() {
            out.push(Output::LedgerTrouble(None));
        }
    }
}
