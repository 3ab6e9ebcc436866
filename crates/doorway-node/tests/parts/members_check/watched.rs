//! Long searches: how many states they may visit, and a line about their progress now and then.

use std::cell::Cell;
use std::time::{Duration, Instant};

use doorway_search::System;

/// The most states of one search, if the environment names no other limit. The largest searches are
/// not exhausted within it.
const LIMIT: u64 = 6_000_000;

/// The environment variable with another limit.
const VARIABLE: &str = "DOORWAY_SEARCH_STATES";

/// How often a search tells how far it is.
const PAUSE: Duration = Duration::from_secs(30);

/// The most states of one search.
pub(super) fn limit() -> u64 {
    let Ok(asked) = std::env::var(VARIABLE) else { return LIMIT };
    let digits = asked.replace(['_', ','], "");
    digits.parse().unwrap_or_else(|_| panic!("{VARIABLE} is not a number of states: {asked}"))
}

/// A system that tells how many of its states a search has gone on from.
pub(super) struct Watched<'a, S> {
    system: &'a S,
    what: &'a str,
    begin: Instant,
    states: Cell<u64>,
    told: Cell<Instant>,
}

impl<'a, S> Watched<'a, S> {
    pub(super) fn new(what: &'a str, system: &'a S) -> Self {
        let begin = Instant::now();
        Self { system, what, begin, states: Cell::new(0), told: Cell::new(begin) }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }

    /// The search goes on from another state.
    fn count(&self) {
        let states = self.states.get() + 1;
        self.states.set(states);
        if states.is_multiple_of(1000) && self.told.get().elapsed() >= PAUSE {
            self.told.set(Instant::now());
            println!("{}: went on from {states} states in {:.0?}", self.what, self.elapsed());
        }
    }
}

impl<S: System> System for Watched<'_, S> {
    type State = S::State;
    type Action = S::Action;
    type Violation = S::Violation;

    fn first(&self) -> S::State {
        self.system.first()
    }

    fn actions(&self, state: &S::State) -> Vec<S::Action> {
        self.count();
        self.system.actions(state)
    }

    fn apply(&self, state: &mut S::State, action: S::Action) -> Result<(), S::Violation> {
        self.system.apply(state, action)
    }

    fn check(&self, state: &S::State) -> Result<(), S::Violation> {
        self.system.check(state)
    }

    fn is_goal(&self, state: &S::State) -> bool {
        self.system.is_goal(state)
    }

    fn is_expected(&self, action: &S::Action) -> bool {
        self.system.is_expected(action)
    }
}
