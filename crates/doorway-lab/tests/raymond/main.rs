//! Raymond's algorithms and voting: what the papers claim, exhaustively where it is small enough.

mod echo;
mod entries;
#[path = "../spoiled/mod.rs"]
mod spoiled;
mod tree;
mod voting;

use std::sync::Arc;

use doorway_core::{Algorithm, Channel, Mode, NodeId, Shape, Start};
use doorway_lab::explore::{Verdict, explore};
use doorway_lab::{Choice, Limits, Violation, World};

/// A world in which node i asks `acquires[i]` times and forgets when it may.
pub(crate) fn world<A: Algorithm>(
    shape: &Shape,
    start: &Start,
    channel: Channel,
    acquires: &[u32],
) -> World<A> {
    let group = Arc::new(A::INFO.group(acquires.len(), shape).expect("the shape fits"));
    let mut limits = Limits::reliable(&group, 0);
    limits.acquires = acquires.iter().map(|times| (*times, Mode::Exclusive)).collect();
    limits.forgetting = true;
    World::new(group, start, channel, limits)
}

pub(crate) fn check<A: Algorithm>(
    shape: &Shape,
    start: &Start,
    channel: Channel,
    acquires: &[u32],
) -> Verdict {
    explore(world::<A>(shape, start, channel, acquires), 2_000_000)
}

/// How many worlds there are, none of which violates anything.
pub(crate) fn worlds<A: Algorithm>(
    shape: &Shape,
    start: &Start,
    channel: Channel,
    acquires: &[u32],
) -> usize {
    match check::<A>(shape, start, channel, acquires) {
        Verdict::Holds { worlds } => worlds,
        verdict => panic!("{} {shape:?} {channel:?} {acquires:?}: {verdict:?}", A::INFO.name),
    }
}

/// The length of the shortest way to a violation, and the violation.
pub(crate) fn shortest<A: Algorithm>(first: World<A>) -> (usize, Violation) {
    match explore(first, 2_000_000) {
        Verdict::Violated { trace, violation } => (trace.len(), violation),
        verdict => panic!("{}: {verdict:?}", A::INFO.name),
    }
}

/// Let everything under way arrive, in a fixed order; returns how many messages were sent.
pub(crate) fn settle<A: Algorithm>(world: &mut World<A>) -> usize {
    let mut sent = 0;
    let deliver = |choice: &Choice| matches!(choice, Choice::Deliver(_));
    while let Some(choice) = world.choices().into_iter().find(deliver) {
        sent += apply(world, choice);
    }
    sent
}

/// Let one thing happen; returns how many messages were sent.
pub(crate) fn apply<A: Algorithm>(world: &mut World<A>, choice: Choice) -> usize {
    let step = world.apply(choice);
    assert_eq!(step.violation, None);
    step.sends.len()
}

pub(crate) fn acquire(node: NodeId) -> Choice {
    Choice::Acquire(node, Mode::Exclusive)
}
