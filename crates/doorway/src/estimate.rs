//! How many states a search will find in all, estimated from those that it has found.

use doorway_lab::check::Progress;

/// The number of states at each distance from the first one.
///
/// These numbers first grow and then shrink, and their logarithms are close to a parabola. The
/// estimate continues the parabola through the last distances. While the numbers grow, or have only
/// just begun to shrink, the parabola says too little about their end, so there is no estimate.
#[derive(Debug, Default)]
pub(crate) struct Estimate {
    /// The number of states at each distance that was completed.
    layers: Vec<u64>,
    /// The distance at which the search is; `None` before the first report.
    depth: Option<u32>,
    /// The states known when the last distance was completed.
    completed: u64,
    /// The states known at the last report.
    known: u64,
    /// Whether an earlier run has found some of the states at this distance.
    is_partial: bool,
}

/// How many distances the parabola spans, at most.
const SPAN: usize = 16;

/// The fewest distances for an estimate.
const FEWEST: usize = 6;

/// The number of states must have shrunk over this many distances, to this part of its largest
/// value.
const SHRUNK_OVER: usize = 4;
const SHRUNK_TO: f64 = 0.7;

/// A parabola that has not come down after this many distances tells nothing.
const FARTHEST: u32 = 1000;

impl Estimate {
    /// Take note of how far the search is.
    pub(crate) fn learn(&mut self, progress: &Progress) {
        match self.depth {
            None => {
                self.is_partial = progress.depth > 0;
                self.completed = if self.is_partial { progress.states } else { 0 };
            }
            Some(depth) if depth != progress.depth => {
                // The last report was made when the last distance was complete.
                if !std::mem::take(&mut self.is_partial) {
                    self.layers.push(self.known - self.completed);
                }
                self.completed = self.known;
            }
            Some(_) => {}
        }
        self.depth = Some(progress.depth);
        self.known = progress.states;
    }

    /// Whether the numbers have been shrinking for so long that their end can be told.
    fn shrinks(&self) -> bool {
        let last = self.layers.len().saturating_sub(SHRUNK_OVER + 1);
        let shrinking = self.layers[last..].is_sorted_by(|one, next| one > next);
        let ends = (self.layers.last(), self.layers.iter().max());
        let (Some(end), Some(most)) = ends else { return false };
        shrinking && *end as f64 <= SHRUNK_TO * *most as f64
    }

    /// The number of states in all, or `None` if that cannot be told yet.
    pub(crate) fn total(&self) -> Option<u64> {
        let last = self.layers.len().checked_sub(1)?;
        let step = last.min(SPAN) / 2;
        if self.layers.len() < FEWEST || !self.shrinks() {
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
    use doorway_core::Shape;
    use doorway_core::algorithms::ALL;
    use doorway_lab::AnyAlgorithm;
    use doorway_lab::check::Case;

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
    fn the_rest_is_estimated_when_the_middle_is_behind() {
        let bell = |x: i32| (3_000.0 * (-f64::from(x * x) / 50.0).exp()) as u64;
        let layers: Vec<u64> = (-15..=15).map(bell).collect();
        let all: u64 = 1 + layers.iter().sum::<u64>();
        let totals = estimates(&layers);
        // The last distance that is complete is one before that of the report.
        assert_eq!(totals[..21], [None; 21], "{totals:?}");
        for total in &totals[21..] {
            let total = total.unwrap();
            assert!(total.abs_diff(all) < all / 10, "{total} of {all}: {totals:?}");
        }
    }

    /// No estimate of a real search is far off.
    #[test]
    fn estimates_of_real_searches_are_sound() {
        for (name, times) in
            [("ricart-agrawala", 1), ("maekawa", 1), ("naimi-trehel", 2), ("raymond-k", 1)]
        {
            let entry = ALL.iter().find(|entry| entry.info.name == name).expect("a name");
            let group = entry.info.group(3, &Shape::default()).unwrap();
            let mut estimate = Estimate::default();
            let mut totals = Vec::new();
            let case = Case::new(AnyAlgorithm::from(entry), group, times);
            let report = case.run(&mut |progress| {
                estimate.learn(progress);
                totals.extend(estimate.total());
                true
            });
            let all = report.progress.states;
            assert!(totals.len() > 4, "{name}: {totals:?}");
            for total in &totals {
                assert!(total.abs_diff(all) < all / 3, "{name}: {total} of {all}: {totals:?}");
            }
        }
    }

    /// After `--resume`, the number at the first distance is not known.
    #[test]
    fn what_an_earlier_run_has_found_is_not_taken_for_one_distance() {
        let mut estimate = Estimate::default();
        for (depth, states) in (20..).zip([1_000_000, 1_000_500, 1_001_500, 1_003_500]) {
            estimate.learn(&Progress { states, depth, ..Progress::default() });
        }
        assert_eq!(estimate.layers, [500, 1_000]);
    }

    #[test]
    fn layers_that_only_grow_tell_nothing() {
        let layers: Vec<u64> = (0..30).map(|depth| 1 << depth).collect();
        assert_eq!(estimates(&layers).last(), Some(&None));
    }
}
