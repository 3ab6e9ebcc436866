//! The worlds in which flaws are looked for, and the counterexamples that are found.

use std::sync::Arc;

use crate::check::{Check, Report, SearchTargets, Verdict};
use crate::trace::EventKind;
use crate::{AnyAlgorithm, Limits, Trace, Violation, World};
use doorway_core::{Algorithm, Channel, Mode, Needs, NodeId, Phase, Shape, Start};

use super::{Finding, sets};

/// Only too many nodes inside. The search goes on past rejected messages and deadlocks.
pub(super) const TOGETHER: SearchTargets =
    SearchTargets { together: true, refusals: false, stuck: false };

/// Only deadlocks.
pub(super) const STUCK: SearchTargets =
    SearchTargets { together: false, refusals: false, stuck: true };

/// More worlds than any of these groups has.
const LIMIT: u64 = 2_000_000;

/// A world in which node i asks `asks[i]` times, nothing fails, and channels are as the algorithm
/// assumes.
pub(super) fn plain<A: Algorithm>(asks: &[u32]) -> World {
    shaped::<A>(&Shape::default(), asks)
}

/// A world like that of [`plain`], for a group of this shape.
pub(super) fn shaped<A: Algorithm>(shape: &Shape, asks: &[u32]) -> World {
    let group = Arc::new(A::INFO.group(asks.len(), shape).expect("small groups exist"));
    let mut limits = Limits::reliable(&group, 0);
    limits.acquires = asks.iter().map(|times| (*times, Mode::Exclusive)).collect();
    World::new(AnyAlgorithm::of::<A>(), group, &Start::default(), A::INFO.channel, limits)
}

/// A world like that of [`plain`], for a group with these quorums.
pub(super) fn voting<A: Algorithm>(sets: &[&[u32]], asks: &[u32]) -> World {
    let group = sets::group(sets);
    let limits = sets::limits(&group, asks);
    World::new(AnyAlgorithm::of::<A>(), group, &Start::default(), A::INFO.channel, limits)
}

/// A copy of the world with unordered channels.
pub(super) fn unordered(world: &World) -> World {
    over(Channel::Unordered, world)
}

/// A copy of the world with these channels.
pub(super) fn over(channel: Channel, world: &World) -> World {
    let (group, limits) = (world.group().clone(), world.limits().clone());
    World::new(world.algorithm(), group, &Start::default(), channel, limits)
}

/// A copy of the world in which a node begins inside.
pub(super) fn begun_by(node: NodeId, world: &World) -> World {
    let (group, limits) = (world.group().clone(), world.limits().clone());
    World::new(world.algorithm(), group, &Start::with_holder(node), world.channel(), limits)
}

/// Allow that one message arrives twice.
pub(super) fn doubling(mut world: World) -> World {
    world.limits_mut().duplicates = 1;
    world
}

/// Allow that one message is lost.
pub(super) fn losing(mut world: World) -> World {
    world.limits_mut().losses = 1;
    world
}

/// The shortest story that ends with one of the targets.
pub(super) fn seek(world: &World, targets: SearchTargets) -> Finding {
    finding(world, Check { targets, ..Check::safety(world, LIMIT) }.run())
}

/// The shortest story to a world that `claim` rejects.
pub(super) fn claim(world: &World, claim: fn(&World) -> Option<String>) -> Finding {
    finding(world, Check { judge: Some(&claim), ..Check::safety(world, LIMIT) }.run())
}

/// The shortest counterexample to any property, including starvation.
pub(super) fn judge(world: &World) -> Finding {
    finding(world, Check::new(world, LIMIT).run())
}

fn finding(world: &World, report: Report) -> Finding {
    Finding { setting: setting(world), trace: story(world, &report), report, world: world.clone() }
}

/// The counterexample as a trace.
fn story(first: &World, report: &Report) -> Trace {
    let mut drawn = Trace::new(first.info().name, first.group().size());
    for step in first.opening() {
        drawn.record(0.0, step);
    }
    let Verdict::Violated { trace, violation, .. } = &report.verdict else { return drawn };
    let mut world = first.clone();
    for (time, choice) in (1..).zip(trace) {
        drawn.record(f64::from(time), &world.apply(*choice));
        drawn.note_state(&world);
    }
    // A watch adds its note to each message; one that notes nothing adds nothing to read.
    for event in &mut drawn.events {
        if let EventKind::Send { message, .. } = &mut event.what {
            *message = message.replace(" with ()", "");
        }
    }
    // The step itself tells of the other violations.
    let at = match violation {
        Violation::Stuck(waiting) => waiting.first().copied(),
        Violation::Claim(_) => drawn.events.last().map(|event| event.node),
        _ => None,
    };
    if let Some(node) = at {
        drawn.push(trace.len() as f64, node, EventKind::Violate(violation.clone()));
    }
    drawn
}

/// A world in words.
fn setting(world: &World) -> String {
    let (group, limits) = (world.group(), world.limits());
    let mut words = vec![format!("{} nodes", group.size())];
    if world.info().needs == Needs::Quorums {
        let set = |node| {
            let names = group.quorum(node, 0).iter().map(ToString::to_string);
            format!("{{{}}}", names.collect::<Vec<_>>().join(","))
        };
        let sets: Vec<_> = group.nodes().map(set).collect();
        words.push(format!("quorums {}", sets.join(" ")));
    }
    if group.permits() > 1 {
        words.push(format!("{} permits", group.permits()));
    }
    for node in world.live_in(Phase::Inside) {
        words.push(format!("node {node} begins inside"));
    }
    let asks: Vec<_> = limits.acquires.iter().map(|(times, _)| times.to_string()).collect();
    words.push(format!("asking {} times", asks.join(", ")));
    let order = if world.channel() == Channel::Fifo { "FIFO" } else { "unordered" };
    words.push(format!("{order} channels"));
    if limits.losses > 0 {
        words.push("one message lost".to_owned());
    }
    if limits.duplicates > 0 {
        words.push("one message doubled".to_owned());
    }
    words.join("; ")
}
