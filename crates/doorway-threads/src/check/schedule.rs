//! A schedule as a person reads it: one line for each step.

use core::fmt;
use std::string::String;
use std::vec::Vec;

use super::memory::Row;
use super::model::ProcessModel;
use crate::{Algorithm, Section};

/// A step of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Who takes it, from 0.
    pub process: usize,
    /// What it does.
    pub what: String,
    /// Does it enter with this step?
    pub enters: bool,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "P{} {}", self.process, self.what)?;
        if self.enters { write!(f, ", enters") } else { Ok(()) }
    }
}

impl<A: Algorithm> ProcessModel<'_, A> {
    /// The state in the beginning.
    pub(super) fn first_row(&self) -> Row {
        self.layout.first::<A>()
    }

    /// The steps with these numbers, in words, and where they lead.
    pub(super) fn schedule(&self, from: &Row, steps: &[u32]) -> (Vec<Line>, Row) {
        let mut row = *from;
        let mut lines = Vec::new();
        for ordinal in steps {
            let (process, what, next) = self.take(&row, *ordinal);
            let inside = |row: &Row| self.section(row, process) == Section::Inside;
            let enters = !inside(&row) && inside(&next);
            lines.push(Line { process, what, enters });
            row = next;
        }
        (lines, row)
    }
}
