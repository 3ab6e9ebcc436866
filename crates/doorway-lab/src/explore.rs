//! Every world that can be reached, breadth first: the shortest way to a violation, or none.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use doorway_core::Algorithm;

use crate::{Choice, Violation, World};

/// What an exploration found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No reachable world violates anything.
    Holds {
        /// How many worlds there are.
        worlds: usize,
    },
    /// A shortest way to a violation.
    Violated {
        /// What happens, in order.
        trace: Vec<Choice>,
        /// What goes wrong at its end.
        violation: Violation,
    },
    /// More worlds than the limit: this says nothing.
    NotExhausted,
}

/// Look at every world reachable from `first`, giving up beyond `limit` of them.
///
/// Worlds are told apart by a 64-bit hash: below ten million of them, a mix-up that hides a
/// violation has a chance of one in 300,000.
pub fn explore<A: Algorithm>(first: World<A>, limit: usize) -> Verdict {
    let mut seen = BTreeMap::from([(fingerprint(&first), None)]);
    let mut layer = vec![first];
    while !layer.is_empty() {
        let mut next = Vec::new();
        for world in layer {
            let here = fingerprint(&world);
            if let Some(violation) = world.stuck() {
                return Verdict::Violated { trace: trace(&seen, here), violation };
            }
            for choice in world.choices() {
                let mut successor = world.clone();
                let step = successor.apply(choice);
                if let Some(violation) = step.violation {
                    let mut trace = trace(&seen, here);
                    trace.push(choice);
                    return Verdict::Violated { trace, violation };
                }
                let there = fingerprint(&successor);
                if !seen.contains_key(&there) {
                    if seen.len() >= limit {
                        return Verdict::NotExhausted;
                    }
                    seen.insert(there, Some((here, choice)));
                    next.push(successor);
                }
            }
        }
        layer = next;
    }
    Verdict::Holds { worlds: seen.len() }
}

type Seen = BTreeMap<u64, Option<(u64, Choice)>>;

fn trace(seen: &Seen, mut at: u64) -> Vec<Choice> {
    let mut trace = Vec::new();
    while let Some((before, choice)) = seen[&at] {
        trace.push(choice);
        at = before;
    }
    trace.reverse();
    trace
}

pub(crate) fn fingerprint<A: Algorithm>(world: &World<A>) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}
