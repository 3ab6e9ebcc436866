//! What the explorer finds, as cells of a table.
#![allow(dead_code, reason = "no table needs all of them")]

use doorway_threads::Bypass;
use doorway_threads::check::Report;

/// Exclusion, deadlock freedom, lockout freedom, first come first served.
pub(crate) type Verdicts = [Option<bool>; 4];

pub(crate) const FIFO: Verdicts = [Some(true); 4];
pub(crate) const LOCKOUT_FREE: Verdicts = [Some(true), Some(true), Some(true), Some(false)];
pub(crate) const UNFAIR: Verdicts = [Some(true), Some(true), Some(false), Some(false)];
pub(crate) const LIVELOCKS: Verdicts = [Some(true), Some(false), Some(false), Some(false)];
pub(crate) const BROKEN: Verdicts = [Some(false), None, None, None];

/// There is no bound on overtaking.
pub(crate) const EVER: Option<Bypass> = Some(Bypass::Unbounded);

/// Overtaken at most this often, by all others together and by any single one of them.
#[allow(clippy::unnecessary_wraps, reason = "a cell of the table")]
pub(crate) const fn by(all: u32, one: u32) -> Option<Bypass> {
    Some(Bypass::AtMost { all, one })
}

/// The number of steps that lead to a violation, and the number that are then repeated.
pub(crate) type Lengths = [usize; 2];

/// There is no violation.
pub(crate) const NONE: Lengths = [0, 0];

/// The states, the verdicts, the overtaking, and the lengths of the schedule of a violation.
pub(crate) type ReportSummary = (u64, Verdicts, Option<Bypass>, Lengths);

pub(crate) fn found(report: &Report) -> ReportSummary {
    let verdicts = [report.exclusion, report.deadlock_free, report.lockout_free, report.fifo];
    let lengths = [report.schedule.len(), report.cycle.len()];
    (report.progress.states, verdicts, report.bypass, lengths)
}
