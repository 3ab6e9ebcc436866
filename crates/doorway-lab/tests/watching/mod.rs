//! The checker with a claim: a predicate that is asked about every world.

use std::sync::Arc;

use doorway_core::{Algorithm, Mode, Shape, Start};
use doorway_lab::check::{Check, Verdict};
use doorway_lab::{Limits, World};

/// More worlds than any of these groups has.
const LIMIT: u64 = 2_000_000;

/// A fresh group in which node i asks `asks[i]` times, exclusively, and nothing fails.
pub(crate) fn world<A: Algorithm>(shape: &Shape, asks: &[u32]) -> World<A> {
    let group = Arc::new(A::INFO.group(asks.len(), shape).expect("the shape fits"));
    let acquires = asks.iter().map(|times| (*times, Mode::Exclusive)).collect();
    let limits = Limits { acquires, ..Limits::reliable(&group, 0) };
    World::new(group, &Start::default(), A::INFO.channel, limits)
}

/// Does `claim` complain of no world that can be reached from `first`, and is nothing else wrong?
/// A closure lives long enough whatever it calls; the type of a generic function does not.
pub(crate) fn search<A: Algorithm>(
    first: &World<A>,
    claim: impl Fn(&World<A>) -> Option<String> + Sync + 'static,
) -> Verdict {
    Check { judge: Some(&claim), ..Check::safety(first, LIMIT) }.run().verdict
}
