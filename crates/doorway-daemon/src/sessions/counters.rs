//! What the sessions have counted.

use std::time::Duration;

use super::event::EventKind;

/// The upper bounds of the buckets in which waits are counted, in seconds.
pub(crate) const WAITS: [f64; 10] = [0.0001, 0.001, 0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 600.0];

/// What the sessions have counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    /// Grants that are held now.
    pub(crate) held: u64,
    /// Requests that wait now.
    pub(crate) waiting: u64,
    /// All grants.
    pub(crate) grants: u64,
    pub(crate) released: u64,
    pub(crate) lost: u64,
    /// How many grants had to wait, by the bounds in [`WAITS`]; the last count is for longer waits.
    pub(crate) waited: [u64; WAITS.len() + 1],
    /// All those waits together, in microseconds.
    pub(crate) waited_us: u64,
}

impl Counters {
    /// Count the end of a grant.
    pub(super) fn ended(&mut self, kind: EventKind) {
        self.held -= 1;
        match kind {
            EventKind::Granted => {}
            EventKind::Released => self.released += 1,
            EventKind::Lost => self.lost += 1,
        }
    }

    /// Count a grant that was made after this wait.
    pub(super) fn waited(&mut self, time: Duration) {
        let seconds = time.as_secs_f64();
        let bucket = WAITS.iter().position(|end| seconds <= *end).unwrap_or(WAITS.len());
        self.waited[bucket] += 1;
        self.waited_us += time.as_micros() as u64;
    }
}
