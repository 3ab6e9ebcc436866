//! Every state and every step of a finished search, by number.

use super::model::Tag;

/// The number of a step that is not followed.
pub const NOWHERE: u32 = u32::MAX;

/// The steps of states 0, 1, 2, ... in the order of their expansion.
#[derive(Debug, Default)]
pub struct Graph {
    /// Where the steps of each state end.
    ends: Vec<u32>,
    targets: Vec<u32>,
    tags: Vec<Tag>,
}

impl Graph {
    /// Make room for so many more states and steps.
    pub(super) fn reserve(&mut self, states: usize, steps: usize) {
        self.ends.reserve(states);
        self.targets.reserve(steps);
        self.tags.reserve(steps);
    }

    /// Append the steps of the next states: how many each has, where they lead, what they did.
    pub fn extend(&mut self, degrees: &[u32], targets: &[u32], tags: &[Tag]) {
        let mut end = self.targets.len() as u32;
        for degree in degrees {
            end += degree;
            self.ends.push(end);
        }
        self.targets.extend_from_slice(targets);
        self.tags.extend_from_slice(tags);
    }

    /// How many states there are.
    pub fn states(&self) -> u32 {
        self.ends.len() as u32
    }

    fn begin(&self, state: u32) -> usize {
        if state == 0 { 0 } else { self.ends[state as usize - 1] as usize }
    }

    /// How many steps leave a state, followed or not.
    pub fn degree(&self, state: u32) -> u32 {
        (self.ends[state as usize] as usize - self.begin(state)) as u32
    }

    /// The step of an ordinal.
    pub fn step(&self, state: u32, ordinal: u32) -> (u32, Tag) {
        let at = self.begin(state) + ordinal as usize;
        (self.targets[at], self.tags[at])
    }

    /// Where the followed steps of a state lead, and their tags, each with its ordinal.
    pub fn steps(&self, state: u32) -> impl Iterator<Item = (u32, u32, Tag)> {
        let range = self.begin(state)..self.ends[state as usize] as usize;
        let steps = self.targets[range.clone()].iter().zip(&self.tags[range]);
        let numbered = (0..).zip(steps).map(|(ordinal, (&target, &tag))| (ordinal, target, tag));
        numbered.filter(|(_, target, _)| *target != NOWHERE)
    }

    /// How many bytes it takes.
    pub fn bytes(&self) -> u64 {
        (self.ends.capacity() * 4 + self.targets.capacity() * 4 + self.tags.capacity() * 2) as u64
    }
}
