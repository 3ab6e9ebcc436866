//! The graph of a search: every state and every step, by number.

use super::model::Tag;

/// The target of a step that was not followed.
pub const NOWHERE: u32 = u32::MAX;

/// All states, numbered from 0 in the order in which they were found, and all steps between them.
#[derive(Debug, Default)]
pub struct Graph {
    /// For each state, the end of its steps in `targets` and `tags`.
    ends: Vec<u32>,
    targets: Vec<u32>,
    tags: Vec<Tag>,
}

impl Graph {
    /// The ends of the steps of each state, and the target and the tag of each step.
    pub(super) fn parts(&self) -> (&[u32], &[u32], &[Tag]) {
        (&self.ends, &self.targets, &self.tags)
    }

    /// The graph that has these [parts](Self::parts).
    pub(super) fn of_parts(ends: Vec<u32>, targets: Vec<u32>, tags: Vec<Tag>) -> Self {
        Self { ends, targets, tags }
    }

    /// Make room for more states and steps.
    pub(super) fn reserve(&mut self, states: usize, steps: usize) {
        self.ends.reserve(states);
        self.targets.reserve(steps);
        self.tags.reserve(steps);
    }

    /// Append the next states: the number of steps of each, then the target and the tag of each
    /// step.
    pub fn extend(&mut self, degrees: &[u32], targets: &[u32], tags: &[Tag]) {
        let mut end = self.targets.len() as u32;
        for degree in degrees {
            end += degree;
            self.ends.push(end);
        }
        self.targets.extend_from_slice(targets);
        self.tags.extend_from_slice(tags);
    }

    /// The number of states.
    pub fn states(&self) -> u32 {
        self.ends.len() as u32
    }

    fn begin(&self, state: u32) -> usize {
        if state == 0 { 0 } else { self.ends[state as usize - 1] as usize }
    }

    /// The number of steps of a state, followed or not.
    pub fn degree(&self, state: u32) -> u32 {
        (self.ends[state as usize] as usize - self.begin(state)) as u32
    }

    /// The target and the tag of one step of a state, by its position.
    pub fn step(&self, state: u32, ordinal: u32) -> (u32, Tag) {
        let at = self.begin(state) + ordinal as usize;
        (self.targets[at], self.tags[at])
    }

    /// The steps of a state that were followed, each as its position, target and tag.
    pub fn steps(&self, state: u32) -> impl Iterator<Item = (u32, u32, Tag)> {
        let range = self.begin(state)..self.ends[state as usize] as usize;
        let steps = self.targets[range.clone()].iter().zip(&self.tags[range]);
        let numbered = (0..).zip(steps).map(|(ordinal, (&target, &tag))| (ordinal, target, tag));
        numbered.filter(|(_, target, _)| *target != NOWHERE)
    }

    /// The memory that the graph takes, in bytes.
    pub fn bytes(&self) -> u64 {
        (self.ends.capacity() * 4 + self.targets.capacity() * 4 + self.tags.capacity() * 2) as u64
    }
}
