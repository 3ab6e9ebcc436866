//! Every world that can be reached, with a predicate that is asked about each of them.

use std::collections::HashMap;
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

impl Found {
    /// The length of the shortest counterexample, if there is one.
    #[track_caller]
    pub(crate) fn steps(&self) -> Option<usize> {
        match self {
            Self::Holds { .. } => None,
            Self::Broken { trace, .. } => Some(trace.len()),
            Self::NotExhausted => panic!("too many worlds to tell"),
        }
    }
}

/// A fresh group in which node i asks `asks[i]` times, exclusively, and nothing fails.
pub(crate) fn world<A: Algorithm>(shape: &Shape, asks: &[u32]) -> World<A> {
    let group = Arc::new(A::INFO.group(asks.len(), shape).expect("the shape fits"));
    let acquires = asks.iter().map(|times| (*times, Mode::Exclusive)).collect();
    let limits = Limits { acquires, ..Limits::reliable(&group, 0) };
    World::new(group, &Start::default(), A::INFO.channel, limits)
}

/// Look at every world reachable from `first`, breadth first, giving up beyond `limit` of them.
/// What a driver calls a violation is as wrong as what `check` complains of.
pub(crate) fn search<A: Algorithm>(
    first: World<A>,
    limit: usize,
    check: impl Fn(&World<A>) -> Option<String>,
) -> Found {
    let mut seen: HashMap<u64, Option<(u64, Choice)>> = HashMap::new();
    let way = |seen: &HashMap<u64, Option<(u64, Choice)>>, mut at: u64| {
        let mut trace = Vec::new();
        while let Some((before, choice)) = seen[&at] {
            trace.push(choice);
            at = before;
        }
        trace.reverse();
        trace
    };
    seen.insert(fingerprint(&first), None);
    let mut layer = vec![first];
    while !layer.is_empty() {
        let mut next = Vec::new();
        for world in layer {
            let here = fingerprint(&world);
            if let Some(why) = check(&world).or_else(|| Some(world.stuck()?.to_string())) {
                return Found::Broken { trace: way(&seen, here), why };
            }
            for choice in world.choices() {
                let mut successor = world.clone();
                if let Some(violation) = successor.apply(choice).violation {
                    let mut trace = way(&seen, here);
                    trace.push(choice);
                    return Found::Broken { trace, why: violation.to_string() };
                }
                let there = fingerprint(&successor);
                if !seen.contains_key(&there) {
                    if seen.len() >= limit {
                        return Found::NotExhausted;
                    }
                    seen.insert(there, Some((here, choice)));
                    next.push(successor);
                }
            }
        }
        layer = next;
    }
    Found::Holds { worlds: seen.len() }
}

fn fingerprint<A: Algorithm>(world: &World<A>) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}
