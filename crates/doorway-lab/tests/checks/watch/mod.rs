//! Fences, the order of requests and the cost of each, for every algorithm.

mod charge;
mod fence;
mod order;

use doorway_core::Info;
use doorway_core::algorithms::ALL;
use doorway_lab::check::Verdict;

/// The algorithms that are correct.
fn sound() -> impl Iterator<Item = &'static Info> {
    ALL.iter().map(|entry| &entry.info).filter(|info| info.refuted.is_none())
}

/// Algorithms with too many worlds if three nodes ask twice. Here each node asks once.
const LARGE: [&str; 3] = ["lamport", "majority", "weighted-majority"];

/// How many requests each of two, and each of three, nodes makes.
fn asks(name: &str) -> [&'static [u32]; 2] {
    [&[2, 2], if LARGE.contains(&name) { &[1, 1, 1] } else { &[2, 2, 2] }]
}

/// The length of the shortest counterexample, if there is one.
#[track_caller]
fn steps(verdict: &Verdict) -> Option<usize> {
    match verdict {
        Verdict::Holds => None,
        Verdict::Violated { trace, .. } => Some(trace.len()),
        verdict => panic!("no answer, but {verdict:?}"),
    }
}

/// The claim that is violated at the end of the shortest counterexample.
#[track_caller]
fn complaint(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Violated { violation, .. } => violation.to_string(),
        verdict => panic!("no complaint, but {verdict:?}"),
    }
}
