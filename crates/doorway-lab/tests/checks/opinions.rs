//! The results of two model checkers for one world: our own, and Stateright.
//!
//! Shipped: `World`.

#![allow(dead_code, reason = "each test takes what it needs")]

use std::hash::{Hash, Hasher};
use std::mem::{Discriminant, discriminant};

use doorway_lab::check::{Check, Verdict};
use doorway_lab::{Choice, Violation, World};
use stateright::{Checker, Model, Property};

/// A checker's result for a world and all worlds that can be reached from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Opinion {
    /// No violation in any of the worlds, of which this is the number.
    Holds(usize),
    /// The number of steps of the shortest way to a violation, and the violation.
    Violated(usize, Discriminant<Violation>),
}

/// The result of our own checker on this number of threads, and how many bytes it used.
pub(crate) fn ours_on(threads: usize, world: &World) -> (Opinion, u64) {
    let report = Check { threads, ..Check::safety(world, u64::MAX) }.run();
    let opinion = match report.verdict {
        Verdict::Holds => Opinion::Holds(report.progress.states as usize),
        Verdict::Violated { trace, violation, .. } => {
            Opinion::Violated(trace.len(), discriminant(&violation))
        }
        verdict => unreachable!("no limit and no settling, but {verdict:?}"),
    };
    (opinion, report.progress.bytes)
}

/// The result of our own checker.
pub(crate) fn ours(world: &World) -> Opinion {
    ours_on(1, world).0
}

/// The result of Stateright, searching breadth first on one thread.
pub(crate) fn stateright(world: World) -> Opinion {
    let checker = Worlds(world).checker().spawn_bfs().join();
    match checker.discovery(SOUND) {
        None => Opinion::Holds(checker.unique_state_count()),
        Some(path) => {
            let violation = path.last_state().wrong().expect("the path ends where it goes wrong");
            Opinion::Violated(path.into_actions().len(), discriminant(&violation))
        }
    }
}

/// The name of the only property. With several properties Stateright goes on while any of them
/// holds, and reports the latest way to break each, so only a single one is reported with its
/// shortest way.
const SOUND: &str = "exclusion, the contract, no refusals, and nobody stuck";

/// All worlds that can be reached from a world.
struct Worlds(World);

/// A world, and the violation in the step that led to it.
#[derive(Clone, Debug, PartialEq)]
struct ReachedWorld {
    world: World,
    violation: Option<Violation>,
}

impl Hash for ReachedWorld {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.world.hash(state);
        self.violation.is_some().hash(state);
    }
}

impl ReachedWorld {
    fn wrong(&self) -> Option<Violation> {
        self.violation.clone().or_else(|| self.world.stuck())
    }
}

impl Model for Worlds {
    type State = ReachedWorld;
    type Action = Choice;

    fn init_states(&self) -> Vec<ReachedWorld> {
        vec![ReachedWorld { world: self.0.clone(), violation: None }]
    }

    fn actions(&self, state: &ReachedWorld, actions: &mut Vec<Choice>) {
        actions.extend(state.world.choices());
    }

    fn next_state(&self, state: &ReachedWorld, choice: Choice) -> Option<ReachedWorld> {
        let mut world = state.world.clone();
        let violation = world.apply(choice).violation;
        Some(ReachedWorld { world, violation })
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always(SOUND, |_, state: &ReachedWorld| state.wrong().is_none())]
    }
}
