//! Runs in which nothing can be chosen: those of the simulator, recordings, and counterexamples of
//! mistakes that were built into a copy of an algorithm.
//!
//! What such a run is named by is enough to tell it again, so nothing is remembered for its export.

use doorway_lab::Trace;
use doorway_lab::flaws::{self, Finding, Flaw};
use doorway_lab::story::{self, StoryView, ViolationView};
use serde::{Deserialize, Serialize};

use super::compare::Comparison;
use super::problem::Problem;
use super::recordings::Recordings;
use crate::server::First;

/// What names a run.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PastRun {
    /// The run of the simulator behind a point of a comparison.
    Run(Comparison),
    /// A recording that the live page has handed over, by its number.
    Recorded(String),
    /// The counterexample of a flaw.
    Flaw(String),
    /// What the command line asked for.
    First,
}

impl PastRun {
    /// Whether the run takes a while to be made.
    pub(crate) fn is_long(&self) -> bool {
        matches!(self, Self::Run(_) | Self::Flaw(_))
    }

    /// What happened.
    pub(crate) fn trace(self, recordings: &Recordings, first: &First) -> Result<Trace, Problem> {
        match (self, first) {
            (Self::Run(comparison), _) => Ok(comparison.plan()?.trace()?),
            (Self::Recorded(number), _) => Ok(Trace::clone(&*recordings.get(&number)?)),
            (Self::Flaw(name), _) => Ok(search(&name)?.1.trace),
            (Self::First, First::Recording(trace)) => Ok(Trace::clone(trace)),
            (Self::First, _) => Err(Problem::bad("the command line names no recording")),
        }
    }
}

/// A flaw of the shelf, and its shortest counterexample.
pub(crate) fn search(name: &str) -> Result<(Flaw, Finding), Problem> {
    let flaw = flaws::all().into_iter().find(|flaw| flaw.name == name);
    let flaw = flaw.ok_or_else(|| Problem::bad(format!("the shelf has no story '{name}'")))?;
    let found = (flaw.wrong)();
    Ok((flaw, found))
}

/// A story in which nothing can be chosen.
#[derive(Serialize)]
pub(crate) struct PastStory {
    #[serde(flatten)]
    story: StoryView,
    /// Why there is nothing to choose.
    past: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<(usize, String)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ends: Option<ViolationView>,
}

impl PastStory {
    fn of(trace: &Trace, past: &'static str) -> Self {
        Self { story: story::recorded(trace), past, notes: Vec::new(), ends: None }
    }

    /// A run of the simulator.
    pub(crate) fn simulated(trace: &Trace) -> Self {
        Self::of(trace, "A run of the simulator: its seed decides what happens.")
    }

    /// What real nodes have done.
    pub(crate) fn recorded(trace: &Trace) -> Self {
        Self::of(trace, "A recording: what happened has happened.")
    }

    /// The counterexample of a flaw.
    pub(crate) fn flaw(flaw: &Flaw, found: &Finding) -> Self {
        let past = "The shortest counterexample that the checker finds. Its algorithm has a \
                    mistake that was built in to show what the rules are for, so nothing else can \
                    be chosen here.";
        Self {
            notes: vec![(0, flaw.story.to_owned())],
            ends: found.violation().map(ViolationView::of),
            ..Self::of(&found.trace, past)
        }
    }
}
