//! Explores everything that can happen to the two ends of a link.
//!
//! Messages go in both directions, connections are cut and made again, frames are lost, duplicated
//! or reordered, and either end restarts at any time.

mod choice;
mod world;

use std::collections::VecDeque;

use choice::{Budget, Bug};
use rustc_hash::FxHashSet;
use world::World;

/// Explore all worlds, breadth first. Returns how many there are, or the shortest way to a wrong
/// one.
fn check(budget: Budget, bug: Option<Bug>) -> Result<usize, String> {
    let first = World::new(budget, bug);
    let mut known = FxHashSet::from_iter([first.clone()]);
    let mut queue = VecDeque::from([(first, Vec::new())]);
    while let Some((world, way)) = queue.pop_front() {
        world.check_end().map_err(|wrong| format!("{wrong} at the end of {way:?}"))?;
        for choice in world.choices() {
            let mut next = world.clone();
            let mut way = way.clone();
            way.push(choice);
            next.apply(choice).map_err(|wrong| format!("{wrong} after {way:?}"))?;
            if known.insert(next.clone()) {
                queue.push_back((next, way));
            }
        }
    }
    Ok(known.len())
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
const SCOPES: &[(Budget, usize)] = &[
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
        assert_eq!(check(*budget, None), Ok(*worlds), "{budget:?}");
    }
}

#[test]
fn every_mistake_is_found() {
    for bug in Bug::ALL {
        let found = SCOPES.iter().find_map(|(budget, _)| check(*budget, Some(*bug)).err());
        println!("{bug:?}: {}", found.unwrap_or_else(|| panic!("{bug:?} was not noticed")));
    }
}
