//! Every world that can be reached, with a predicate that is asked about each of them.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use doorway_core::{Algorithm, Mode, Shape, Start};
use doorway_lab::{Choice, Limits, World};

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// All worlds satisfy the predicate.
    Holds { worlds: usize },
    /// A shortest way to one that does not, and what is wrong there.
    Broken { trace: Vec<Choice>, why: String },
    /// More worlds than the limit; none of those seen is wrong.
    NotExhausted,
}

/// A fresh group in which node i asks `asks[i]` times, exclusively, and nothing fails.
pub(crate) fn world<A: Algorithm>(shape: &Shape, asks: &[u32]) -> World<A> {
    let group = Arc::new(A::INFO.group(asks.len(), shape).expect("the shape fits"));
    let acquires = asks.iter().map(|times| (*times, Mode::Exclusive)).collect();
    let limits = Limits { acquires, ..Limits::reliable(&group, 0) };
    World::new(group, &Start::default(), A::INFO.channel, limits)
}

/// How each world was first reached, by fingerprints.
type Seen = BTreeMap<u64, Option<(u64, Choice)>>;

/// Look at every world reachable from `first`, breadth first, giving up beyond `limit` of them.
/// What a driver calls a violation is as wrong as what `check` complains of.
pub(crate) fn search<A: Algorithm>(
    first: World<A>,
    limit: usize,
    check: impl Fn(&World<A>) -> Option<String>,
) -> Found {
    let wrong = |world: &World<A>| check(world).or_else(|| Some(world.stuck()?.to_string()));
    if let Some(why) = wrong(&first) {
        return Found::Broken { trace: Vec::new(), why };
    }
    let mut seen: Seen = BTreeMap::from([(fingerprint(&first), None)]);
    let mut layer = vec![first];
    while !layer.is_empty() {
        let mut next = Vec::new();
        for world in layer {
            let here = fingerprint(&world);
            for choice in world.choices() {
                let mut successor = world.clone();
                let step = successor.apply(choice);
                let there = fingerprint(&successor);
                if step.violation.is_none() && seen.contains_key(&there) {
                    continue;
                }
                let violation = step.violation.map(|violation| violation.to_string());
                if let Some(why) = violation.or_else(|| wrong(&successor)) {
                    let mut trace = way(&seen, here);
                    trace.push(choice);
                    return Found::Broken { trace, why };
                }
                if seen.len() >= limit {
                    return Found::NotExhausted;
                }
                seen.insert(there, Some((here, choice)));
                next.push(successor);
            }
        }
        layer = next;
    }
    Found::Holds { worlds: seen.len() }
}

fn way(seen: &Seen, mut at: u64) -> Vec<Choice> {
    let mut trace = Vec::new();
    while let Some((before, choice)) = seen[&at] {
        trace.push(choice);
        at = before;
    }
    trace.reverse();
    trace
}

fn fingerprint<A: Algorithm>(world: &World<A>) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}
