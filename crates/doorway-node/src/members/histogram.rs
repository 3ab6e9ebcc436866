//! How long something took, each time, counted in buckets.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds of the buckets of a [`Histogram`], in seconds.
pub const BUCKETS: [f64; 13] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Counts times in buckets. Several threads may count at the same time.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS.len() + 1],
    sum_us: AtomicU64,
}

/// What a [`Histogram`] has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeCounts {
    /// How many times were in each bucket of [`BUCKETS`]; the last count is for longer times.
    pub buckets: [u64; BUCKETS.len() + 1],
    /// The sum of all times.
    pub sum: Duration,
}

impl Histogram {
    /// Count a time in its bucket, and add it to the sum.
    pub fn count(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        let bucket = BUCKETS.iter().position(|end| seconds <= *end).unwrap_or(BUCKETS.len());
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(time.as_micros() as u64, Ordering::Relaxed);
    }

    /// The counts of all times so far, and their sum.
    pub fn counts(&self) -> TimeCounts {
        TimeCounts {
            buckets: std::array::from_fn(|at| self.buckets[at].load(Ordering::Relaxed)),
            sum: Duration::from_micros(self.sum_us.load(Ordering::Relaxed)),
        }
    }
}

impl TimeCounts {
    /// How many times were counted.
    pub fn total(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_counts_in_the_first_bucket_that_is_not_shorter() {
        let histogram = Histogram::default();
        for micros in [0, 1_000, 1_001, 10_000_000, 10_000_001] {
            histogram.count(Duration::from_micros(micros));
        }
        let counts = histogram.counts();
        let filled: Vec<(usize, u64)> =
            counts.buckets.into_iter().enumerate().filter(|(_, count)| *count > 0).collect();
        assert_eq!(filled, [(0, 2), (1, 1), (12, 1), (13, 1)]);
        assert_eq!(counts.total(), 5);
        assert_eq!(counts.sum, Duration::from_micros(20_002_002));
    }
}
