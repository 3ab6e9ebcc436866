//! What the sessions have counted.

use std::time::Duration;

use doorway_protocol::{Name, Window};

use super::event::EventKind;

/// The upper bounds of the buckets in which waits are counted, in seconds.
pub const WAITS: [f64; 10] = [0.0001, 0.001, 0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 600.0];

/// What the sessions have counted.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Grants that are held now.
    pub held: u64,
    /// Those of them that are locks of windows, which nobody is going to release.
    pub windows: u64,
    /// Requests that wait now.
    pub waiting: u64,
    /// All grants.
    pub grants: u64,
    /// Grants that their clients released, or that ended with their clients.
    pub released: u64,
    /// Grants that were taken from their clients.
    pub lost: u64,
    /// How many grants had to wait, by the bounds in [`WAITS`]; the last count is for longer waits.
    pub waited: [u64; WAITS.len() + 1],
    /// All those waits together, in microseconds.
    pub waited_us: u64,
}

impl Counters {
    /// Count a grant of this lock.
    pub(super) fn began(&mut self, lock: &Name) {
        self.held += 1;
        self.windows += u64::from(Window::of(lock).is_some());
        self.grants += 1;
    }

    /// How many grants a node that is drained waits for. The ledger and the group remember the
    /// windows that were taken.
    pub fn in_use(&self) -> u64 {
        self.held - self.windows
    }

    /// Count the end of a grant of this lock.
    pub(super) fn ended(&mut self, lock: &Name, kind: EventKind) {
        self.held -= 1;
        self.windows -= u64::from(Window::of(lock).is_some());
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
