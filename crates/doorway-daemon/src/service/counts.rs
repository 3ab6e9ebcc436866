//! What the service counts beside the grants, for those who draw curves.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::events::EventKind;

/// The upper ends of the spans by which waits are counted, in seconds.
pub(crate) const WAITS: [f64; 10] = [0.0001, 0.001, 0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 600.0];

/// Numbers that only grow.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) released: AtomicU64,
    pub(crate) lost: AtomicU64,
    /// Grants that had to be waited for, by how long; the last for those that took longest. Those
    /// that were made at once are all others.
    pub(crate) waited: [AtomicU64; WAITS.len() + 1],
    /// All those waits together, in microseconds.
    pub(crate) waited_us: AtomicU64,
}

impl Counts {
    /// A grant has ended.
    pub(crate) fn ended(&self, kind: EventKind) {
        match kind {
            EventKind::Granted => {}
            EventKind::Released => drop(self.released.fetch_add(1, Ordering::Relaxed)),
            EventKind::Lost => drop(self.lost.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// A grant was made after so long.
    pub(crate) fn waited(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        let span = WAITS.iter().position(|end| seconds <= *end).unwrap_or(WAITS.len());
        self.waited[span].fetch_add(1, Ordering::Relaxed);
        self.waited_us.fetch_add(time.as_micros() as u64, Ordering::Relaxed);
    }
}
