//! Measured times.

use std::time::Duration;

/// The samples of one measurement, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    pub(crate) const NONE: Self = Self(Vec::new());

    pub(crate) fn push(&mut self, time: Duration) {
        self.push_each(time, 1);
    }

    /// Add a sample: this many operations took this time together.
    pub(crate) fn push_each(&mut self, time: Duration, count: u32) {
        self.0.push(time.as_nanos() as f64 / f64::from(count));
    }

    pub(crate) fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn median(&self) -> f64 {
        self.share(0.5)
    }

    /// The quantile: the time below which this share of the samples lies.
    pub(crate) fn share(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let at = (sorted.len() as f64 * share) as usize;
        sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
    }
}
