//! Scripts: a text file of commands, each followed by what it made the nodes do.
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
//! A block of commands ends with a line `----`. Below it are the effects of these commands, up to a
//! blank line. An effect names the acting node first: `1 -> 2 M` is a message sent by 1, `2 <- 1 M`
//! is a message received by 2. A file without effects is a script too. [`Outcome::text`] is the
//! script with its effects filled in; a test compares that with the file.
//!
//! | command | what happens |
//! |---|---|
//! | `run NAME n=3 [OPTION=VALUE ...]` | the group begins; [`OPTIONS`] lists the options |
//! | `quorum 7 = 2 7 10 13` | sets the quorum of a node; directly below `run`, one line for every node |
//! | `acquire 1 [shared]` | a client of node 1 requests the lock |
//! | `release 1` | the client inside at node 1 releases the lock |
//! | `withdraw 1` | the waiting client of node 1 gives up |
//! | `deliver 1 2 [WHICH]` | a message from 1 arrives at 2: the oldest one, the oldest one of kind or text WHICH, or the WHICH-th |
//! | `drop`, `duplicate` | like `deliver`, but the message is lost; or it arrives and a copy stays under way |
//! | `crash 3`, `detect 1 3` | node 3 crashes; node 1 learns of the crash of node 3 |
//! | `forget 1` | an idle node forgets the lock and starts again from its floor |
//! | `stabilize [quietly]` | deliver everything, oldest first, until nothing is under way; `quietly` leaves out the line of each message |
//! | `show`, `show 2` | print the messages under way; print the state of node 2 |
//! | `count` | print how many messages have been sent |
//! | `round`, `again` | repeat the commands between them forever; `again` prints which nodes then never enter |

mod parse;
mod setup;
mod stage;
mod tell;

use std::fmt;
use std::ops::Range;

use crate::check::History;
use crate::{Choice, Trace, Violation, World};
pub use setup::{MAX_NODES, OPTIONS};
pub(crate) use stage::describe;
pub use tell::{compose, tell};

/// The result of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The script with its actual effects.
    pub text: String,
    /// Each command and what it did.
    pub steps: Vec<ScriptStep>,
    /// What happened, step by step, for diagrams.
    pub trace: Trace,
    /// The violation at the end of the script.
    pub violation: Option<Violation>,
    /// The history that the nodes keep, if any.
    pub history: Option<History>,
    /// The group of the script: `run` without that word, and the `quorum` lines below it.
    pub setup: String,
    /// Every choice that was made, in order.
    pub choices: Vec<Choice>,
    /// The comments, each with the number of choices made before it.
    pub notes: Vec<(usize, String)>,
    /// Which of the choices are repeated forever, if the script has a round.
    pub round: Option<Range<usize>>,
}

/// A command of a script, and what it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptStep {
    /// The command as written.
    pub command: String,
    /// Its effects, one per line.
    pub effects: Vec<String>,
}

/// Why a script cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong, and how to correct it.
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

/// The first world of a group that is described as in a script: the words after `run`, and `quorum`
/// lines below them. Returned beside it is the history that its nodes keep, if any.
pub(crate) fn world(setup: &str) -> Result<(World, Option<History>), ScriptError> {
    let text = format!("run {setup}");
    let script = parse::parse(&text)?;
    if let Some(line) = script.lines.iter().find_map(parse::Line::command_beside_setup) {
        let what = "a group is described by the words after 'run' and by 'quorum' lines alone";
        return Err(ScriptError::new(line, what));
    }
    Ok((script.setup.world()?, script.setup.history))
}

/// Run a script.
pub fn run(text: &str) -> Result<Outcome, ScriptError> {
    stage::play(parse::parse(text)?)
}
