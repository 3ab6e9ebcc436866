//! Reading the clock and setting timers, on Linux.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

use crate::{ClockReading, LeaseClock, Moment};

/// A timer that is this close, in nanoseconds, is not set too early.
const CLOSE: u64 = 5_000_000;

const SECOND: u64 = 1_000_000_000;

/// The clocks of this process: those of a client, and of a node.
static CLIENT: Mutex<LeaseClock> = Mutex::new(LeaseClock::faster());
static NODE: Mutex<LeaseClock> = Mutex::new(LeaseClock::slower());

impl ClockReading {
    /// Read both clocks, which costs no system call. Linux only; needs the feature `clock`.
    pub fn now() -> Self {
        Self { boot: nanoseconds(ClockId::Boottime), raw: nanoseconds(ClockId::MonotonicRaw) }
    }
}

impl Moment {
    /// The current time of a client, which holds leases: see [`LeaseClock::faster`]. Linux only;
    /// needs the feature `clock`.
    pub fn now() -> Self {
        read(&CLIENT)
    }

    /// The current time by `CLOCK_BOOTTIME` alone. It must not be compared with moments of other
    /// clocks. Linux only; needs the feature `clock`.
    pub fn boot() -> Self {
        Self(nanoseconds(ClockId::Boottime))
    }

    /// The current time by `CLOCK_MONOTONIC_RAW` alone, which no time service adjusts, but which
    /// stands still while the machine is suspended. It must not be compared with moments of other
    /// clocks. Linux only; needs the feature `clock`.
    pub fn raw() -> Self {
        Self(nanoseconds(ClockId::MonotonicRaw))
    }

    /// The current time of a node, which ends leases: see [`LeaseClock::slower`]. It must not be
    /// compared with moments of [`Moment::now`]. Linux only; needs the feature `clock`.
    pub fn now_at_node() -> Self {
        read(&NODE)
    }
}

fn nanoseconds(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * SECOND + now.tv_nsec as u64
}

fn read(clock: &Mutex<LeaseClock>) -> Moment {
    // The clocks are read while the mutex is locked: moments never go back.
    let mut clock = clock.lock().unwrap_or_else(PoisonError::into_inner);
    clock.read(ClockReading::now())
}

/// A timer that runs out at a [`Moment`] of a client, also if the machine is suspended until then.
///
/// It is a descriptor for `poll` or `epoll`, which becomes readable when the timer has run out. The
/// system knows only one of the clocks of which moments are made, so the timer may run out a little
/// too early. Then look at the clock, and set it again. Linux only; needs the feature `clock`.
///
/// ```
/// use doorway_protocol::{Moment, Timer};
///
/// let timer = Timer::new()?;
/// timer.set(Moment::now().after(std::time::Duration::from_secs(1)));
/// // Wait with `poll` until the timer is readable, and then:
/// timer.clear();
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Timer(OwnedFd);

impl Timer {
    /// Create a timer that is not set.
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self(timerfd_create(TimerfdClockId::Boottime, flags)?))
    }

    /// Let the timer run out at this moment or a twelfth of the time before, at once if the moment
    /// has passed. For [`Moment::NEVER`] the timer is switched off.
    pub fn set(&self, at: Moment) {
        // To the system, zero means off.
        self.set_boot_time(if at == Moment::NEVER { 0 } else { early(at).max(1) });
    }

    /// Let the timer run out after this time.
    pub fn set_after(&self, time: Duration) {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.set_boot_time(nanoseconds(ClockId::Boottime).saturating_add(time));
    }

    /// Let the timer run out at this time of `CLOCK_BOOTTIME`, in nanoseconds.
    fn set_boot_time(&self, at: u64) {
        let at = at.min(i64::MAX as u64);
        let value =
            Timespec { tv_sec: (at / SECOND).cast_signed(), tv_nsec: (at % SECOND).cast_signed() };
        let once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let setting = Itimerspec { it_interval: once, it_value: value };
        let set = timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &setting);
        debug_assert!(set.is_ok(), "the timer takes every moment: {set:?}");
    }

    /// Make a timer that has run out unreadable again. It stays so until it is set and runs
    /// out once more.
    pub fn clear(&self) {
        // Reading fails only if the timer has not run out.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

/// When the system has to wake a process for this moment, by `CLOCK_BOOTTIME`. That clock may be
/// slower than the clock of moments by a twelfth.
fn early(at: Moment) -> u64 {
    let mut left = at.since(Moment::now()).as_nanos() as u64;
    if left > CLOSE {
        left -= left / 12;
    }
    ClockReading::now().boot.saturating_add(left)
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    /// Does the timer run out within this time?
    fn runs_out(timer: &Timer, within: Duration) -> bool {
        let timeout = Timespec::try_from(within).unwrap();
        poll(&mut [PollFd::new(timer, PollFlags::IN)], Some(&timeout)).unwrap() == 1
    }

    #[test]
    fn a_timer_runs_out_once_and_can_be_switched_off() {
        let (soon, long) = (Duration::from_millis(20), Duration::from_secs(30));
        let timer = Timer::new().unwrap();
        assert!(!runs_out(&timer, Duration::ZERO), "it is not set");
        let at = Moment::now().after(soon);
        let mut early = 0;
        while Moment::now() < at {
            timer.set(at);
            assert!(runs_out(&timer, long));
            timer.clear();
            early += 1;
        }
        assert!(early < 5, "it has run out too early {early} times");
        assert!(!runs_out(&timer, soon), "it has run out only once");
        timer.set(Moment(0));
        assert!(runs_out(&timer, long), "the moment has passed");
        timer.set(Moment::NEVER);
        assert!(!runs_out(&timer, soon), "it is switched off");
        timer.set_after(long);
        assert!(!runs_out(&timer, soon));
        timer.set_after(soon);
        assert!(runs_out(&timer, long));
        timer.set_after(Duration::MAX);
        assert!(!runs_out(&timer, soon), "a time that never comes");
    }
}
