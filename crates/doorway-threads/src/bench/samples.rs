//! Figures of several runs, and the order of the runs.

use core::hash::{BuildHasher as _, Hasher as _};
use std::hash::RandomState;
use std::vec::Vec;

/// One figure of each run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples(Vec<f64>);

/// The median of some figures, the least and the greatest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The median of the figures.
    pub median: f64,
    /// The least of the figures.
    pub least: f64,
    /// The greatest of the figures.
    pub most: f64,
}

impl Samples {
    pub(super) fn push(&mut self, figure: f64) {
        self.0.push(figure);
    }

    /// The spread of the figures, if there are any.
    pub fn spread(&self) -> Option<Spread> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        let (below, above) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Spread { median: f64::midpoint(below, above), least, most })
    }
}

/// Shuffle the items, differently each time.
pub(super) fn shuffle<T>(things: &mut [T]) {
    let dice = RandomState::new();
    for end in (1..things.len()).rev() {
        let mut roll = dice.build_hasher();
        roll.write_usize(end);
        things.swap(end, (roll.finish() % (end as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_its_median_in_the_middle() {
        assert_eq!(Samples::default().spread(), None);
        let odd = Samples(std::vec![3.0, 1.0, 9.0]).spread();
        assert_eq!(odd, Some(Spread { median: 3.0, least: 1.0, most: 9.0 }));
        let even = Samples(std::vec![4.0, 1.0, 9.0, 2.0]).spread();
        assert_eq!(even, Some(Spread { median: 3.0, least: 1.0, most: 9.0 }));
    }

    #[test]
    fn a_shuffle_keeps_everything_and_moves_something() {
        let first: Vec<u32> = (0..100).collect();
        let mut things = first.clone();
        shuffle(&mut things);
        assert_ne!(things, first, "once in 100! times");
        things.sort_unstable();
        assert_eq!(things, first);
    }
}
