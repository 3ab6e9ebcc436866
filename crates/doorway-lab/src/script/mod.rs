//! Stories in text: a file of commands, each answered by what it made the nodes do.
//!
//! ```text
//! # Ricart & Agrawala 1981, section 2: a node that is asked replies at once.
//! run ricart-agrawala n=2
//! ----
//!
//! acquire 1
//! deliver 1 2
//! ----
//! 1 waits
//! 1 -> 2 Request(1)
//! 2 <- 1 Request(1)
//! 2 -> 1 Reply
//! ```
//!
//! Commands stand together up to a line `----`; below it, up to a blank line, stand their effects.
//! The acting node is always named first: `1 -> 2 M` is a message sent, `2 <- 1 M` one received.
//! A script is run for its effects, so a file without any is a script too, and [`Outcome::text`] is
//! the same script with its effects filled in. A test compares the two.
//!
//! | command | what happens |
//! |---|---|
//! | `run NAME n=3 [OPTION=VALUE ...]` | the group begins; options as in [`OPTIONS`] |
//! | `quorum 7 = 2 7 10 13` | below `run`, for every node: its quorum, instead of a construction |
//! | `acquire 1 [shared]` | a client of node 1 wants in |
//! | `release 1` | it leaves |
//! | `deliver 1 2 [WHICH]` | a message of 1 arrives at 2: the oldest, or the oldest called WHICH, or number WHICH |
//! | `drop`, `duplicate` | likewise, but the message is lost, or arrives and stays under way |
//! | `crash 3`, `detect 1 3` | node 3 stops for ever; node 1 learns it |
//! | `forget 1` | an idle node forgets the lock and starts again from its floor |
//! | `stabilize [quietly]` | deliver everything, oldest first, until nothing is under way; quietly: without a line for each message |
//! | `show`, `show 2` | what is under way; the state of a node |
//! | `count` | how many messages have been sent |
//! | `round`, `again` | what stands between them goes on for ever: `again` says who then never gets in |

mod parse;
mod setup;
mod stage;
mod tell;

use std::fmt;

use crate::{Trace, Violation};
pub use setup::{MAX_NODES, OPTIONS};
pub use tell::{compose, tell};

/// What became of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The script with the effects that it really had.
    pub text: String,
    /// Each command and what it did.
    pub steps: Vec<ScriptStep>,
    /// What happened, step by step, for every printer of diagrams.
    pub trace: Trace,
    /// What is wrong where the script ends.
    pub violation: Option<Violation>,
}

/// A command of a script, and what it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptStep {
    /// The command as written.
    pub command: String,
    /// What it did, a line each.
    pub effects: Vec<String>,
}

/// Why a script cannot be played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// Where, counted from 1.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl ScriptError {
    fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ScriptError {}

/// Play a script.
pub fn run(text: &str) -> Result<Outcome, ScriptError> {
    stage::play(parse::parse(text)?)
}
