//! What the nodes of a real group have recorded, put together and judged.
//!
//! Every node writes its own file, by its own clock. The files of all of them are merged by cause:
//! each node's own order is kept, a message is received after it was sent, and a view begins after
//! all of the one before. No message carries a number for that, since links lose and reorder
//! nothing: of those from one node to another about one lock in one view, the first that arrives
//! is the first that was sent. Messages of a view that was left are lost.
//!
//! Then the algorithm is stepped through all that happened, as in every other driver: a node that
//! did anything else than its algorithm does, and two inside together, are violations.

mod files;
mod lines;
mod merge;
mod replay;
mod steps;
mod tell;

use std::fmt;

use crate::{Trace, Violation};

/// A file that a node has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name, for what there is to say about it.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// What happened to one lock.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// All that happened, ordered by cause.
    pub trace: Trace,
    /// The first thing in it that must never happen.
    pub violation: Option<Violation>,
}

/// Why files are no recording of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem(String);

impl Problem {
    fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    fn at(file: &str, line: usize, reason: impl fmt::Display) -> Self {
        Self(format!("{file}, line {line}: {reason}"))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Problem {}

/// Read what the nodes of one group have recorded of a lock; of the only one, if none is named.
pub fn read(files: &[File], lock: Option<&str>) -> Result<Recording, Problem> {
    let recorded = files::read(files, lock)?;
    let steps = merge::merge(&recorded)?;
    let found = replay::replay(&recorded, &steps);
    let trace = tell::tell(&recorded, &steps, found.as_ref());
    Ok(Recording { trace, violation: found.map(|(_, violation)| violation) })
}
