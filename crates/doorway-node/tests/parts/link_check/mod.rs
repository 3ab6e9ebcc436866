//! Explores everything that can happen to the two ends of a link.
//!
//! Messages go in both directions, connections are cut and made again, frames are lost, duplicated
//! or reordered, and either end restarts at any time.
//!
//! Shipped: `Outbox`, `Inbox`.

mod choice;
mod world;

use choice::{Budget, Bug, Choice};
use doorway_search::{Outcome, Report, System, explore};
use world::World;

/// More states than any of the searches has.
const LIMIT: u64 = 1_000_000;

/// A link to which everything within a budget happens, and perhaps a planted mistake.
struct Link {
    budget: Budget,
    bug: Option<Bug>,
}

impl System for Link {
    type State = World;
    type Action = Choice;
    type Violation = String;

    fn first(&self) -> World {
        World::new(self.budget, self.bug)
    }

    fn actions(&self, world: &World) -> Vec<Choice> {
        world.choices()
    }

    fn apply(&self, world: &mut World, choice: Choice) -> Result<(), String> {
        world.apply(choice)
    }

    fn check(&self, world: &World) -> Result<(), String> {
        world.check_end()
    }
}

fn check(budget: Budget, bug: Option<Bug>) -> Report<Choice, String> {
    explore(&Link { budget, bug }, LIMIT)
}

const NONE: Budget = Budget {
    messages: [0, 0],
    dials: 1,
    cuts: 0,
    losses: 0,
    doubles: 0,
    swaps: 0,
    restarts: [0, 0],
};

/// Small budgets, each with its exact number of worlds, so that a checker that explores less is
/// noticed.
const SCOPES: &[(Budget, u64)] = &[
    (Budget { messages: [3, 2], ..NONE }, 15_733),
    (Budget { messages: [2, 0], dials: 3, cuts: 2, ..NONE }, 28_857),
    (Budget { messages: [1, 1], dials: 3, cuts: 1, ..NONE }, 5_630),
    (Budget { messages: [2, 1], dials: 2, losses: 1, swaps: 1, ..NONE }, 8_883),
    (Budget { messages: [0, 2], dials: 2, doubles: 1, cuts: 1, ..NONE }, 10_198),
    (Budget { messages: [1, 1], dials: 2, losses: 1, swaps: 1, doubles: 1, ..NONE }, 23_794),
    (Budget { messages: [2, 1], dials: 3, restarts: [1, 0], ..NONE }, 25_329),
    (Budget { messages: [1, 2], dials: 3, restarts: [0, 1], ..NONE }, 5_207),
    (Budget { messages: [1, 1], dials: 3, restarts: [1, 1], ..NONE }, 21_616),
    (
        Budget { messages: [1, 1], dials: 2, losses: 1, doubles: 1, restarts: [1, 0], ..NONE },
        93_684,
    ),
    (Budget { messages: [1, 1], dials: 2, swaps: 1, cuts: 1, restarts: [0, 1], ..NONE }, 23_683),
];

#[test]
fn every_message_arrives_once_and_in_order_unless_an_end_restarts() {
    for (budget, worlds) in SCOPES {
        assert_eq!(check(*budget, None).expect_holds(), *worlds, "{budget:?}");
    }
}

/// The least number of steps to a violation, in the first scope that has one.
fn steps_to_notice(bug: Bug) -> usize {
    let mut reports = SCOPES.iter().map(|(budget, _)| check(*budget, Some(bug)));
    let found = reports.find(|report| matches!(report.outcome, Outcome::Violated(..)));
    let found = found.unwrap_or_else(|| panic!("{bug:?} was not noticed"));
    println!("{bug:?}: {found}");
    found.path().len()
}

#[test]
fn every_mistake_is_found() {
    let found: Vec<_> = Bug::ALL.iter().map(|(bug, _)| (*bug, steps_to_notice(*bug))).collect();
    assert_eq!(found, Bug::ALL);
}
