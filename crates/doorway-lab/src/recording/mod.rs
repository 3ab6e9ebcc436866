//! Recordings of the nodes of a real group, merged and checked.
//!
//! Every node writes its own file, by its own clock. The files are merged by cause: each node's own
//! order is kept, a message is received after it was sent, and a view begins after everything of
//! the view before. Messages carry no numbers for this, because links neither lose nor reorder: of
//! the messages from one node to another about one lock in one view, the first that arrives is the
//! first that was sent. Messages of a view that has ended are lost.
//!
//! Then the algorithm is stepped through everything that happened, as in every other driver. A node
//! that did something else than its algorithm does is a violation, and so are two nodes inside
//! together.

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
    /// Its name, for error messages.
    pub name: String,
    /// Its contents.
    pub text: String,
}

/// What happened to one lock.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// The events, ordered by cause.
    pub trace: Trace,
    /// The first violation in it.
    pub violation: Option<Violation>,
}

/// Why some files are not a recording of a group.
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

/// Read what the nodes of one group have recorded about a lock. The lock may be left out if there
/// is only one.
pub fn read(files: &[File], lock: Option<&str>) -> Result<Recording, Problem> {
    let recorded = files::read(files, lock)?;
    let steps = merge::merge(&recorded)?;
    // Where the lock was in use before, what its nodes knew is not known, and nothing follows.
    let found = if recorded.partial { None } else { replay::replay(&recorded, &steps) };
    let trace = tell::tell(&recorded, &steps, found.as_ref());
    Ok(Recording { trace, violation: found.map(|(_, violation)| violation) })
}
