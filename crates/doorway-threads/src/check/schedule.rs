//! A schedule as text: one line for each step.

use core::fmt;
use std::string::String;
use std::vec::Vec;

use super::Check;
use super::memory::Row;
use super::model::ProcessModel;
use crate::{Section, Word};

/// A step of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The process that takes it, from 0.
    pub process: usize,
    /// What the process does in this step.
    pub what: String,
    /// Whether the process enters with this step.
    pub enters: bool,
    /// The section that the process is in after the step.
    pub section: Section,
    /// The values of all registers after the step, in the order of [`Report::registers`].
    ///
    /// [`Report::registers`]: super::Report::registers
    pub values: Vec<Word>,
}

/// What the text of a step ends with in which the memory acts, and no process does.
pub(super) const REACHES_MEMORY: &str = " reaches memory";

impl Line {
    /// Whether a buffered write reaches the memory in this step: the process runs no code.
    pub fn is_of_memory(&self) -> bool {
        self.what.ends_with(REACHES_MEMORY)
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "P{} {}", self.process, self.what)?;
        if self.enters { write!(f, ", enters") } else { Ok(()) }
    }
}

/// The steps with these positions as lines, and the state that they lead to.
pub(super) fn schedule(model: &ProcessModel<'_>, from: &Row, steps: &[u32]) -> (Vec<Line>, Row) {
    let mut row = *from;
    let mut lines = Vec::new();
    for ordinal in steps {
        let step = model.describe_steps(&row).swap_remove(*ordinal as usize);
        let (line, next) = line(model, &row, step);
        lines.push(line);
        row = next;
    }
    (lines, row)
}

/// The steps of process `i` from outside to outside, while all others stay outside.
fn round_alone(model: &ProcessModel<'_>, from: &Row, i: usize) -> (Vec<PlacedLine>, Row) {
    let mut row = *from;
    let mut lines = Vec::new();
    loop {
        let step = model.describe_steps(&row).into_iter().find(|(process, ..)| *process == i);
        let (line, next) = line(model, &row, step.expect("a process that is alone can go on"));
        lines.push(PlacedLine { place: model.place(&row, i), line });
        row = next;
        if model.section(&row, i) == Section::Outside {
            return (lines, row);
        }
    }
}

/// A step as told, and the state after it.
pub(super) fn line(
    model: &ProcessModel<'_>,
    row: &Row,
    (process, what, next): (usize, String, Row),
) -> (Line, Row) {
    let inside = |row: &Row| model.section(row, process) == Section::Inside;
    let enters = !inside(row) && inside(&next);
    let (section, values) = (model.section(&next, process), values(model, &next));
    (Line { process, what, enters, section, values }, next)
}

/// The values of all registers.
pub(super) fn values(model: &ProcessModel<'_>, row: &Row) -> Vec<Word> {
    model.registers(row).into_iter().map(|(_, value)| value).collect()
}

/// A step of a schedule, and where the process is when it takes the step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedLine {
    /// The place, with what the process remembers there.
    pub place: String,
    /// The step.
    pub line: Line,
}

impl Check {
    /// The steps by which the last of the processes enters and leaves in its second round, while
    /// all others stay outside: those that [`alone`](super::alone) counts.
    ///
    /// ```
    /// use doorway_threads::{algorithms::peterson::Peterson, check::Check};
    ///
    /// let steps = Check::of::<Peterson>(2).alone_steps();
    /// let texts: Vec<String> =
    ///     steps.iter().map(|step| format!("{}: {}", step.place, step.line.what)).collect();
    /// assert_eq!(
    ///     texts,
    ///     [
    ///         "Outside: flag[1] := 1, fence a",
    ///         "GiveTurn: turn := 0, fence b",
    ///         "Look: reads flag[0] = 0",
    ///         "Inside: flag[1] := 0",
    ///     ]
    /// );
    /// ```
    pub fn alone_steps(&self) -> Vec<PlacedLine> {
        let model = self.model();
        let last = self.n - 1;
        let (_, row) = round_alone(&model, &model.first_row(), last);
        round_alone(&model, &row, last).0
    }
}
