//! Shorthands for the results of the checker.

#![allow(dead_code, unreachable_pub, reason = "each test takes what it needs")]

use doorway_lab::check::{Check, Report, SearchTargets, Verdict};
use doorway_lab::{Choice, Violation, World};

/// Only too many nodes inside. The search goes on past rejected messages and deadlocks.
pub const TOGETHER: SearchTargets = SearchTargets { together: true, refusals: false, stuck: false };
/// Only deadlocks.
pub const STUCK: SearchTargets = SearchTargets { together: false, refusals: false, stuck: true };

/// More worlds than any test has.
const LIMIT: u64 = 2_000_000;

/// Search for these targets only. Starvation is not looked for.
pub fn seek(world: &World, targets: SearchTargets) -> Report {
    Check { targets, ..Check::safety(world, LIMIT) }.run()
}

/// Check that no single world or step violates anything. Returns how many worlds there are.
#[track_caller]
pub fn holds(world: &World) -> u64 {
    let report = seek(world, SearchTargets::default());
    assert_eq!(report.verdict, Verdict::Holds, "{} {:?}", world.info().name, world.limits());
    report.progress.states
}

/// The shortest way to one of the targets; `None` if none can be reached.
#[track_caller]
pub fn way_to(world: &World, targets: SearchTargets) -> Option<(Vec<Choice>, Violation)> {
    match seek(world, targets).verdict {
        Verdict::Holds => None,
        Verdict::Violated { trace, violation, .. } => Some((trace, violation)),
        verdict => panic!("{}: {verdict:?}", world.info().name),
    }
}

/// The length of the shortest way to a violation, and the violation.
#[track_caller]
pub fn violation(world: &World) -> (usize, Violation) {
    let found = way_to(world, SearchTargets::default());
    let (trace, violation) = found.unwrap_or_else(|| panic!("{} holds", world.info().name));
    (trace.len(), violation)
}

/// The length of the shortest way to too many nodes inside, if there is one.
#[track_caller]
pub fn together(world: &World) -> Option<usize> {
    way_to(world, TOGETHER).map(|(trace, _)| trace.len())
}
