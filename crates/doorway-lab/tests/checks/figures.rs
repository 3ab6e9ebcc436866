//! The quorums of the papers' figures, and random runs over them.

#![allow(dead_code, unreachable_pub, reason = "each test takes what it needs")]

use doorway_core::Phase;
pub use doorway_lab::flaws::sets::*;
use doorway_lab::{Choice, Step, World};

/// Let `choice` happen, which must violate nothing.
pub fn apply(world: &mut World, choice: Choice) -> Step {
    let step = world.apply(choice);
    assert_eq!(step.violation, None, "{}: {step:?}", world.info().name);
    step
}

/// Make random choices until there are none. Returns the steps.
pub fn run(world: &mut World, mut seed: u64) -> Vec<Step> {
    let mut steps = Vec::new();
    loop {
        let choices = world.choices();
        if choices.is_empty() {
            assert_eq!(world.live_in(Phase::Waiting), [], "{} with seed {seed}", world.info().name);
            return steps;
        }
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        steps.push(apply(world, choices[seed as usize % choices.len()]));
    }
}
