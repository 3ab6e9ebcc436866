//! Explores every state that a system can reach, breadth first, and finds states from which rest is
//! unreachable.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};

use rustc_hash::FxHashMap;

/// A system that is searched.
pub(crate) trait System: Hash + Sized {
    /// What can happen.
    type Event: Copy + Debug;
    /// What must not happen.
    type Wrong: Debug + PartialEq;

    /// Everything that can happen now.
    fn events(&self) -> Vec<Self::Event>;

    /// Apply one event.
    fn apply(&self, event: Self::Event) -> Result<Self, Self::Wrong>;

    /// Is everything done?
    fn rests(&self) -> bool;

    /// May reaching rest depend on this event? Not if no one has to cause it.
    fn is_duty(event: Self::Event) -> bool;
}

/// How a search ended.
#[derive(Debug, PartialEq)]
pub(crate) enum End<E, W> {
    /// Nothing goes wrong, and from every state a state at rest can be reached.
    Holds,
    /// The shortest way to a violation.
    Wrong(W, Vec<E>),
    /// The shortest way to a state from which no state at rest can be reached.
    Stuck(Vec<E>),
}

/// Where each state was reached from, and by what.
type Parents<E> = Vec<Option<(u32, E)>>;

/// Search all states and count them, up to a limit.
pub(crate) fn search<S: System>(first: S, limit: usize) -> (usize, End<S::Event, S::Wrong>) {
    let mut numbers: FxHashMap<u64, u32> = FxHashMap::default();
    let mut parents: Parents<S::Event> = vec![None];
    let mut resting = vec![first.rests()];
    let mut duties: Vec<(u32, u32)> = Vec::new();
    numbers.insert(print(&first), 0);
    let mut layer = vec![first];
    let mut begin = 0;
    while !layer.is_empty() {
        let mut next = Vec::new();
        for (from, state) in (begin..).zip(&layer) {
            for event in state.events() {
                let successor = match state.apply(event) {
                    Ok(successor) => successor,
                    Err(wrong) => {
                        let mut way = way(&parents, from);
                        way.push(event);
                        return (parents.len(), End::Wrong(wrong, way));
                    }
                };
                let to = *numbers.entry(print(&successor)).or_insert(parents.len() as u32);
                if S::is_duty(event) {
                    duties.push((to, from));
                }
                if to as usize == parents.len() {
                    parents.push(Some((from, event)));
                    resting.push(successor.rests());
                    next.push(successor);
                }
            }
        }
        assert!(parents.len() <= limit, "more than {limit} states: not exhausted");
        begin += layer.len() as u32;
        layer = next;
    }
    let end = match stuck(resting, duties) {
        Some(state) => End::Stuck(way(&parents, state)),
        None => End::Holds,
    };
    (parents.len(), end)
}

/// Equal states have equal fingerprints, and different states almost certainly have different ones.
fn print(state: &impl Hash) -> u64 {
    let mut mixer = Mixer(0);
    state.hash(&mut mixer);
    mixer.0
}

/// A hash that is fast on the many small numbers of a state.
struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let word = chunk.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
            self.write_u64(word);
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        // The shift makes it more than a polynomial, of which small numbers could be roots.
        let product = (self.0 ^ number ^ 0x5851_f42d).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 29;
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }
}

fn way<E: Copy>(parents: &Parents<E>, mut state: u32) -> Vec<E> {
    let mut way = Vec::new();
    while let Some((from, event)) = parents[state as usize] {
        way.push(event);
        state = from;
    }
    way.reverse();
    way
}

/// The nearest state from which none at rest is reached, by the steps given as (to, from).
fn stuck(mut reaches: Vec<bool>, mut steps: Vec<(u32, u32)>) -> Option<u32> {
    steps.sort_unstable();
    let mut work: Vec<u32> = (0..).zip(&reaches).filter(|(_, r)| **r).map(|(at, _)| at).collect();
    while let Some(to) = work.pop() {
        let begin = steps.partition_point(|step| step.0 < to);
        for (_, from) in steps[begin..].iter().take_while(|step| step.0 == to) {
            if !std::mem::replace(&mut reaches[*from as usize], true) {
                work.push(*from);
            }
        }
    }
    reaches.iter().position(|reaches| !reaches).map(|state| state as u32)
}
