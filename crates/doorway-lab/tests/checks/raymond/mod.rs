//! Raymond's algorithms and voting: the papers' claims, checked exhaustively in small groups.

mod echo;
mod entries;
mod tree;
mod voting;

use std::sync::Arc;

use doorway_core::{Algorithm, Channel, Mode, NodeId, Shape, Start};
use doorway_lab::{AnyAlgorithm, Choice, Limits, World};

use crate::verdicts;

/// A world in which node i asks `acquires[i]` times, and idle nodes may forget the lock.
pub(crate) fn world<A: Algorithm>(
    shape: &Shape,
    start: &Start,
    channel: Channel,
    acquires: &[u32],
) -> World {
    let group = Arc::new(A::INFO.group(acquires.len(), shape).expect("the shape fits"));
    let mut limits = Limits::reliable(&group, 0);
    limits.acquires = acquires.iter().map(|times| (*times, Mode::Exclusive)).collect();
    limits.forgetting = true;
    World::new(AnyAlgorithm::of::<A>(), group, start, channel, limits)
}

/// Check that no world violates anything. Returns how many worlds there are.
#[track_caller]
pub(crate) fn worlds<A: Algorithm>(
    shape: &Shape,
    start: &Start,
    channel: Channel,
    acquires: &[u32],
) -> u64 {
    verdicts::holds(&world::<A>(shape, start, channel, acquires))
}

/// Deliver everything under way, in a fixed order. Returns how many messages were sent.
pub(crate) fn settle(world: &mut World) -> usize {
    let mut sent = 0;
    let deliver = |choice: &Choice| matches!(choice, Choice::Deliver(_));
    while let Some(choice) = world.choices().into_iter().find(deliver) {
        sent += apply(world, choice);
    }
    sent
}

/// Make one choice. Returns how many messages were sent.
pub(crate) fn apply(world: &mut World, choice: Choice) -> usize {
    let step = world.apply(choice);
    assert_eq!(step.violation, None);
    step.sends.len()
}

pub(crate) fn acquire(node: NodeId) -> Choice {
    Choice::Acquire(node, Mode::Exclusive)
}
