//! The clock of leases, which runs on while the machine sleeps.

use std::time::Duration;

use rustix::fd::AsFd;
use rustix::time::{
    ClockId, Itimerspec, TimerfdTimerFlags, Timespec, clock_gettime, timerfd_settime,
};

/// A moment on a clock that never goes back and that counts the time asleep, in nanoseconds since
/// some beginning. Only moments of one machine compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub u64);

impl Moment {
    /// A moment that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// Now, by `CLOCK_BOOTTIME`.
    pub fn now() -> Self {
        let time = clock_gettime(ClockId::Boottime);
        Self(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }

    /// So much later.
    pub fn after(self, span: Duration) -> Self {
        let span = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(span))
    }

    /// How long it is from `earlier` to this moment; nothing if that is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Let a timer of that clock run out at this moment, also if the machine sleeps until then.
    pub(crate) fn set(self, timer: impl AsFd) {
        let at = self.0.clamp(1, i64::MAX as u64).cast_signed();
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = Timespec { tv_sec: at / 1_000_000_000, tv_nsec: at % 1_000_000_000 };
        let once = Itimerspec { it_interval: zero, it_value: value };
        let set = timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &once);
        debug_assert!(set.is_ok(), "any time can be set: {set:?}");
    }
}
