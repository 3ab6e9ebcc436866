//! Whether the ledger can be written.
//!
//! If something cannot be written, the ledger is in trouble. A record that can be written does not
//! end that: on a full disk, the places of erased records can still be used. So while the trouble
//! lasts, the shell probes the ledger again and again, and a probe that succeeds ends it.
//!
//! A grant that ends goes back to the node when its record is erased, and not before: otherwise
//! another client could hold the lock, and after a crash the next process would hold it too. If the
//! record cannot be erased, the grant keeps its lock until a probe has erased the record.

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
    /// The grants that have ended and whose records are being erased, with the places of these.
    pub(super) erasing: BTreeSet<(u32, AskId)>,
    /// The grants that have ended and whose records could not be erased.
    unerased: Vec<AskId>,
}

impl LedgerState {
    /// Whether a grant that has ended waits until its record is erased.
    pub(super) fn withholds(&self) -> bool {
        !self.erasing.is_empty() || !self.unerased.is_empty()
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
        let LedgerState { trouble, tried, .. } = &mut self.ledger;
        if let Some((_, known)) = trouble {
            known.clone_from(error);
        } else {
            *tried = Some(now);
            *trouble = Some((now, error.clone()));
            out.push(Output::LedgerTrouble(Some(error.clone())));
        }
    }

    /// Free a place of the ledger.
    pub(super) fn erase(&mut self, place: u32, out: &mut Vec<Output>) {
        self.places.free.push(place);
        out.push(Output::Erase(place));
    }

    /// Erase the record of a grant that has ended, if it has one, and then give the grant back to
    /// the node.
    pub(super) fn give_back(&mut self, ask: AskId, place: Option<u32>, out: &mut Vec<Output>) {
        let Some(place) = place else { return out.push(Output::Release(ask)) };
        self.ledger.erasing.insert((place, ask));
        self.erase(place, out);
    }

    /// A record was erased, or could not be.
    pub(super) fn erased(
        &mut self,
        now: Moment,
        place: u32,
        erased: &Result<(), String>,
        out: &mut Vec<Output>,
    ) {
        self.note_failure(now, erased, out);
        let LedgerState { erasing, unerased, .. } = &mut self.ledger;
        let of_place = (place, AskId(0))..=(place, AskId(u64::MAX));
        for (_, ask) in erasing.extract_if(of_place, |_| true) {
            match erased {
                Ok(()) => out.push(Output::Release(ask)),
                Err(_) => unerased.push(ask),
            }
        }
    }

    /// The records that could not be erased before are erased now.
    pub(super) fn all_erased(&mut self, out: &mut Vec<Output>) {
        out.extend(self.ledger.unerased.drain(..).map(Output::Release));
    }

    /// Ask for a probe while the ledger is in trouble, unless it was tried a moment ago.
    pub(super) fn probe_in_trouble(&mut self, now: Moment, out: &mut Vec<Output>) {
        let due = self.ledger.tried.is_none_or(|tried| now.since(tried) >= PAUSE);
        if self.ledger.trouble.is_some() && self.stage != Stage::Stopped && due {
            self.ledger.tried = Some(now);
            out.push(Output::Probe);
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
