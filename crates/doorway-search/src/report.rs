//! What an exploration has found, and how it is shown to people.

use std::fmt;
use std::fmt::{Debug, Display, Formatter};

/// What an exploration has found. Displayed, it says how the search ended, with the numbered
/// actions of the counterexample if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report<Action, Violation> {
    /// How the search ended.
    pub outcome: Outcome<Action, Violation>,
    /// The number of different states found.
    pub states: u64,
    /// The number of actions applied, including those that led to known states.
    pub steps: u64,
    /// The number of actions from the first state to the farthest one found.
    pub depth: usize,
}

/// How an exploration ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<Action, Violation> {
    /// Every state was visited. There is no violation, and a goal is reachable from every state.
    Holds,
    /// There is a violation. The last of these actions causes it, and no path to any violation is
    /// shorter.
    Violated(Violation, Vec<Action>),
    /// There is no violation, but these actions lead to a state from which no goal is reachable. No
    /// path to such a state is shorter.
    Stuck(Vec<Action>),
    /// There are more states than the limit, or the search was stopped. Nothing is wrong with the
    /// states that were found, except that goals were not considered.
    NotExhausted,
}

impl<Action, Violation> Report<Action, Violation> {
    /// The actions of the counterexample; none if there is no counterexample.
    pub fn path(&self) -> &[Action] {
        match &self.outcome {
            Outcome::Violated(_, path) | Outcome::Stuck(path) => path,
            Outcome::Holds | Outcome::NotExhausted => &[],
        }
    }
}

impl<Action: Debug, Violation: Debug> Report<Action, Violation> {
    /// The number of states, for a test that expects [`Outcome::Holds`].
    ///
    /// # Panics
    ///
    /// Panics with the report as its message if the search ended otherwise.
    #[track_caller]
    pub fn expect_holds(&self) -> u64 {
        assert!(matches!(self.outcome, Outcome::Holds), "{self}");
        self.states
    }
}

impl<Action: Debug, Violation: Debug> Display for Report<Action, Violation> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { outcome, states, steps, depth } = self;
        let length = self.path().len();
        match outcome {
            Outcome::Holds => write!(f, "holds in every state")?,
            Outcome::Violated(violation, _) => write!(f, "{violation:?} after {length} actions")?,
            Outcome::Stuck(_) => write!(f, "no goal is reachable after {length} actions")?,
            Outcome::NotExhausted => write!(f, "not exhausted: nothing wrong with these states")?,
        }
        write!(f, " ({states} states, {steps} steps, depth {depth})")?;
        for (nth, action) in (1..).zip(self.path()) {
            write!(f, "\n{nth:>4}. {action:?}")?;
        }
        Ok(())
    }
}
