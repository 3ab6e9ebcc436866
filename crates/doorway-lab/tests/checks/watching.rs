//! Checks with a claim: a predicate that must hold in every world.

use std::sync::Arc;

use doorway_core::{Mode, Shape, Start};
use doorway_lab::check::{Check, Verdict};
use doorway_lab::{AnyAlgorithm, Limits, World};

/// More worlds than any of these groups has.
const LIMIT: u64 = 2_000_000;

/// A fresh group in which node i asks `asks[i]` times, exclusively, and nothing fails.
pub(crate) fn world(algorithm: AnyAlgorithm, shape: &Shape, asks: &[u32]) -> World {
    let info = algorithm.info();
    let group = Arc::new(info.group(asks.len(), shape).expect("the shape fits"));
    let acquires = asks.iter().map(|times| (*times, Mode::Exclusive)).collect();
    let limits = Limits { acquires, ..Limits::reliable(&group, 0) };
    World::new(algorithm, group, &Start::default(), info.channel, limits)
}

/// Check that `claim` accepts every world that can be reached from `first`, and that nothing else
/// is violated.
pub(crate) fn search(
    first: &World,
    claim: impl Fn(&World) -> Option<String> + Sync + 'static,
) -> Verdict {
    Check { judge: Some(&claim), ..Check::safety(first, LIMIT) }.run().verdict
}
