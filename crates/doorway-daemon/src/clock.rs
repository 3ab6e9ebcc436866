//! The clock of all deadlines: it also runs while the machine sleeps.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A moment since the machine was started, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub u64);

impl Moment {
    /// Now. It costs no system call.
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::Boottime);
        Self(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
    }

    /// How long ago that was; nothing if it lies ahead.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// So much later.
    pub fn after(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time.as_nanos() as u64))
    }
}

/// Whole milliseconds, as they are told.
pub(crate) fn ms(time: Duration) -> u64 {
    time.as_millis() as u64
}
