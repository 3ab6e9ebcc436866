//! Whether the ledger can be written, for reports.
//!
//! If something cannot be written, the ledger is in trouble. A record that can be written does not
//! end that: on a full disk, the places of erased records can still be used. So while the trouble
//! lasts, the shell probes the ledger again and again, and a probe that succeeds ends it.

use std::time::Duration;

use doorway_protocol::Moment;

use super::event::Output;
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
