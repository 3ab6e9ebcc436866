//! How many states a search will find in all, estimated from those that it has found.

use doorway_lab::check::Progress;

/// The number of states at each distance from the first one.
///
/// These numbers first grow and then shrink, and their logarithms are close to a parabola. The
/// estimate continues the parabola through the last distances.
#[derive(Debug, Default)]
pub(crate) struct Estimate {
    /// The number of states at each distance that was completed.
    layers: Vec<u64>,
    /// The distance at which the search is.
    depth: u32,
    /// The states known when the last distance was completed.
    completed: u64,
    /// The states known at the last report.
    known: u64,
}

/// How many distances the parabola spans, at most.
const SPAN: usize = 16;

/// The fewest distances for an estimate.
const FEWEST: usize = 6;

/// A parabola that has not come down after this many distances tells nothing.
const FARTHEST: u32 = 1000;

impl Estimate {
    /// Take note of how far the search is.
    pub(crate) fn learn(&mut self, progress: &Progress) {
        if progress.depth != self.depth {
            // The last report was made when the last distance was complete.
            self.layers.push(self.known - self.completed);
            (self.depth, self.completed) = (progress.depth, self.known);
        }
        self.known = progress.states;
    }

    /// The number of states in all, or `None` if that cannot be told yet.
    pub(crate) fn total(&self) -> Option<u64> {
        let last = self.layers.len().checked_sub(1)?;
        let step = last.min(SPAN) / 2;
        if self.layers.len() < FEWEST {
            return None;
        }
        let log = |at: usize| (self.layers[at].max(1) as f64).ln();
        let (first, middle, end) = (log(last - 2 * step), log(last - step), log(last));
        let width = step as f64;
        let bend = (end - 2.0 * middle + first) / (width * width);
        let slope = (end - middle) / width + bend * width / 2.0;
        let mut total = self.completed as f64;
        for ahead in 1..=FARTHEST {
            let x = f64::from(ahead);
            let layer = end + slope * x + bend * x * x / 2.0;
            if layer < 0.0 {
                return Some(total.max(self.known as f64) as u64);
            }
            total += layer.exp();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The estimates of a search with these layers, after each of them.
    fn estimates(layers: &[u64]) -> Vec<Option<u64>> {
        let mut estimate = Estimate::default();
        let mut progress = Progress { states: 1, ..Progress::default() };
        estimate.learn(&progress);
        let mut totals = Vec::new();
        for (depth, layer) in (0..).zip(layers) {
            progress.depth = depth;
            // Each distance is reported in the middle and at its end.
            for part in [layer / 2, layer - layer / 2] {
                progress.states += part;
                estimate.learn(&progress);
            }
            totals.push(estimate.total());
        }
        totals
    }

    #[test]
    fn the_rest_is_estimated_when_the_middle_is_reached() {
        let bell = |x: i32| (3_000.0 * (-f64::from(x * x) / 50.0).exp()) as u64;
        let layers: Vec<u64> = (-15..=15).map(bell).collect();
        let all: u64 = 1 + layers.iter().sum::<u64>();
        let totals = estimates(&layers);
        assert_eq!(totals[..5], [None; 5]);
        for total in &totals[15..] {
            let total = total.unwrap();
            assert!(total > all / 2 && total < all * 2, "{total} of {all}: {totals:?}");
        }
        assert!(totals[30].unwrap().abs_diff(all) < all / 20, "{totals:?}");
    }

    #[test]
    fn layers_that_only_grow_tell_nothing() {
        let layers: Vec<u64> = (0..30).map(|depth| 1 << depth).collect();
        assert_eq!(estimates(&layers).last(), Some(&None));
    }
}
