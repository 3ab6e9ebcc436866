//! A layer of a search: the states that are equally far from the first one.

use std::ops::Range;

use super::GROUP;

/// States that are equally far from the first, in the order of their numbers.
#[derive(Default)]
pub(super) struct Layer {
    /// What each shard has found in each round. It is too much to be copied into one piece.
    pub(super) parts: Vec<Part>,
}

/// States with consecutive numbers, as rows and fingerprints.
#[derive(Default)]
pub(super) struct Part {
    pub(super) begin: u32,
    pub(super) rows: Vec<u32>,
    pub(super) prints: Vec<u64>,
}

impl Part {
    fn end(&self) -> u32 {
        self.begin + self.prints.len() as u32
    }
}

impl Layer {
    pub(super) fn numbers(&self) -> Range<u32> {
        let begin = self.parts.first().map_or(0, |part| part.begin);
        begin..self.parts.last().map_or(begin, Part::end)
    }

    /// The states with these numbers in groups, each as its first number, its rows and its
    /// fingerprints.
    pub(super) fn groups(
        &self,
        width: usize,
        numbers: Range<u32>,
    ) -> impl Iterator<Item = (u32, &[u32], &[u64])> {
        let first = self.parts.partition_point(|part| part.end() <= numbers.start);
        let parts = self.parts[first..].iter().take_while(move |part| part.begin < numbers.end);
        parts.flat_map(move |part| {
            let from = numbers.start.max(part.begin);
            let to = numbers.end.min(part.end());
            (from..to).step_by(GROUP).map(move |begin| {
                let end = to.min(begin + GROUP as u32) - part.begin;
                let group = (begin - part.begin) as usize..end as usize;
                let rows = &part.rows[group.start * width..group.end * width];
                (begin, rows, &part.prints[group])
            })
        })
    }

    /// Forget the states below this number: they have been expanded.
    pub(super) fn forget(&mut self, number: u32) {
        let expanded = self.parts.partition_point(|part| part.end() <= number);
        self.parts.drain(..expanded);
    }

    pub(super) fn bytes(&self) -> usize {
        let parts = self.parts.iter();
        parts.map(|part| part.rows.capacity() * 4 + part.prints.capacity() * 8).sum()
    }
}
