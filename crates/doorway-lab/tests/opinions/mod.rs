//! Two opinions on the same world: that of our own checker, and that of Stateright, a model
//! checker that others wrote.

#![allow(dead_code, reason = "each test takes what it needs")]

use std::hash::{Hash, Hasher};
use std::mem::{Discriminant, discriminant};

use doorway_lab::check::{Check, Verdict};
use doorway_lab::{Choice, Violation, World};
use stateright::{Checker, Model, Property};

/// What a checker says of a world and all that can become of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Opinion {
    /// Nothing goes wrong in any of so many worlds.
    Holds(usize),
    /// The shortest way to something wrong has so many steps, and ends in this.
    Violated(usize, Discriminant<Violation>),
}

/// The opinion of our own checker, on so many threads, and how many bytes it kept for it.
pub(crate) fn ours_on(threads: usize, world: &World) -> (Opinion, u64) {
    let report = Check { threads, ..Check::safety(world, u64::MAX) }.run();
    let opinion = match report.verdict {
        Verdict::Holds => Opinion::Holds(report.progress.states as usize),
        Verdict::Violated { trace, violation, .. } => {
            Opinion::Violated(trace.len(), discriminant(&violation))
        }
        Verdict::NotExhausted => unreachable!("there is no limit"),
    };
    (opinion, report.progress.bytes)
}

/// The opinion of our own checker.
pub(crate) fn ours(world: &World) -> Opinion {
    ours_on(1, world).0
}

/// The opinion of Stateright, searching breadth first on one thread.
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

/// The name of the one property. Stateright goes on while any property still holds and then keeps
/// the latest way to break another, so that only a single one has its shortest way told.
const SOUND: &str = "exclusion, the contract, no refusals, and nobody stuck";

/// Everything that can become of a world.
struct Worlds(World);

/// A world, and what went wrong in the step that led to it.
#[derive(Clone, Debug, PartialEq)]
struct Reached {
    world: World,
    violation: Option<Violation>,
}

impl Hash for Reached {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.world.hash(state);
        self.violation.is_some().hash(state);
    }
}

impl Reached {
    fn wrong(&self) -> Option<Violation> {
        self.violation.clone().or_else(|| self.world.stuck())
    }
}

impl Model for Worlds {
    type State = Reached;
    type Action = Choice;

    fn init_states(&self) -> Vec<Reached> {
        vec![Reached { world: self.0.clone(), violation: None }]
    }

    fn actions(&self, state: &Reached, actions: &mut Vec<Choice>) {
        actions.extend(state.world.choices());
    }

    fn next_state(&self, state: &Reached, choice: Choice) -> Option<Reached> {
        let mut world = state.world.clone();
        let violation = world.apply(choice).violation;
        Some(Reached { world, violation })
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always(SOUND, |_, state: &Reached| state.wrong().is_none())]
    }
}
