//! Flaws of published texts, misreadings of them, and broken assumptions: for each, a search that
//! finds a shortest counterexample, and one that finds nothing wrong with the version without the
//! flaw.
//!
//! `docs/flaws.md` and its pictures are written from this table, and `doorway story` plays the
//! counterexamples.

pub mod any_reply;
mod drowsy;
mod permissions;
mod quorums;
pub mod served;
pub mod sets;
mod tokens;
mod worlds;

use crate::check::{Property, Report, Verdict};
use crate::{Trace, Violation};

/// A flaw, and the searches that refute it.
#[derive(Clone, Debug)]
pub struct Flaw {
    /// The name on the page and on the command line.
    pub name: &'static str,
    /// The algorithm that has the flaw, or into which it is built.
    pub algorithm: &'static str,
    /// What is wrong.
    pub what: &'static str,
    /// What happens in the counterexample, for readers.
    pub story: &'static str,
    /// The version without the flaw.
    pub cure: &'static str,
    /// The property that it violates.
    pub breaks: Property,
    /// The number of steps of a shortest counterexample.
    pub steps: usize,
    /// Searches the wrong version for the violation.
    pub wrong: fn() -> Finding,
    /// Searches the right version for any violation.
    pub right: fn() -> Finding,
}

/// The answer of the checker about a world.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The result of the search.
    pub report: Report,
    /// The world in words.
    pub setting: String,
    /// The counterexample; only the opening if there is no violation.
    pub trace: Trace,
}

impl Finding {
    /// The violation, if one was found.
    pub fn violation(&self) -> Option<&Violation> {
        match &self.report.verdict {
            Verdict::Violated { violation, .. } => Some(violation),
            Verdict::Holds | Verdict::NotExhausted => None,
        }
    }
}

/// All flaws, in the order of the page.
pub fn all() -> Vec<Flaw> {
    [quorums::flaws(), permissions::flaws(), tokens::flaws()].concat()
}
