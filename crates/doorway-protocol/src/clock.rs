//! Moments on the clock that leases are measured with.
//!
//! A [`Moment`] is a plain number, so a state machine that is told the time needs no clock, and its
//! tests need not wait. Only the feature `clock` can read the clock and set timers.
//!
//! A lease must end for its holder before it ends for the node, whose clock may run at another
//! rate. A machine has two clocks, and each of them has a flaw:
//!
//! - `CLOCK_BOOTTIME` counts the time in which the machine is suspended. But a time service may
//!   slew it: chrony by up to 8.3 %.
//! - `CLOCK_MONOTONIC_RAW` is never slewed, and runs at most 0.1 % wrong. But it stands still while
//!   the machine is suspended.
//!
//! So the holder counts with the [faster](LeaseClock::faster) of the two, and the node with the
//! [slower](LeaseClock::slower). The holder then counts at least 99.9 % of the time that really
//! passes, and the node at most 100.1 %.

use std::time::Duration;

/// A point in time on the clock of a process, in nanoseconds.
///
/// The clock never goes back. That of a client goes on while the machine is suspended: a lease that
/// ends during the night has ended in the morning. Moments of different processes must not be
/// compared.
///
/// ```
/// use std::time::Duration;
///
/// use doorway_protocol::Moment;
///
/// let sent = Moment(5_000_000_000);
/// let deadline = sent.after(Duration::from_secs(10));
/// assert_eq!(deadline.since(sent), Duration::from_secs(10));
/// assert!(deadline < Moment::NEVER);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub u64);

impl Moment {
    /// A moment that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// The moment `span` later, or [`Moment::NEVER`] if that is beyond the end of the clock.
    pub fn after(self, span: Duration) -> Self {
        let span = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(span))
    }

    /// The time from `earlier` to this moment; zero if `earlier` is in fact later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// What the two clocks of a machine show, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockReading {
    /// The clock that counts suspended time (`CLOCK_BOOTTIME`).
    pub boot: u64,
    /// The clock that nobody adjusts (`CLOCK_MONOTONIC_RAW`).
    pub raw: u64,
}

/// A clock that is made of the two clocks of a machine, and that leases are measured with.
///
/// ```
/// use std::time::Duration;
///
/// use doorway_protocol::{ClockReading, LeaseClock};
///
/// let second = Duration::from_secs(1);
/// let mut holder = LeaseClock::faster();
/// let mut node = LeaseClock::slower();
/// let start = ClockReading { boot: 0, raw: 0 };
/// let (sent, heard) = (holder.read(start), node.read(start));
/// // A second later, in which the clock that is slewed has lost 83 ms.
/// let later = ClockReading { boot: 917_000_000, raw: 1_000_000_000 };
/// assert_eq!(holder.read(later).since(sent), second);
/// assert_eq!(node.read(later).since(heard), second - Duration::from_millis(83));
/// ```
#[derive(Clone, Debug)]
pub struct LeaseClock {
    choose: fn(u64, u64) -> u64,
    /// The reading from which time is counted, and the moment of that reading.
    from: Option<(ClockReading, Moment)>,
}

impl LeaseClock {
    /// Time is counted from a new reading after this long. A span that begins and ends between
    /// such readings is wrong by 8.3 % of this time at most. Readings are not exact, and each new
    /// one adds its error, so there must not be too many of them.
    const STEP: u64 = 1_000_000;

    /// The clock of the holder of a lease: it counts as much time as the faster of the two clocks.
    pub const fn faster() -> Self {
        Self { choose: greater, from: None }
    }

    /// The clock of the node: it counts as much time as the slower of the two clocks.
    pub const fn slower() -> Self {
        Self { choose: lesser, from: None }
    }

    /// The moment at which the two clocks show this. The first one is that of `CLOCK_BOOTTIME`.
    pub fn read(&mut self, now: ClockReading) -> Moment {
        let (then, moment) = *self.from.get_or_insert((now, Moment(now.boot)));
        let boot = now.boot.saturating_sub(then.boot);
        let raw = now.raw.saturating_sub(then.raw);
        let moment = moment.after(Duration::from_nanos((self.choose)(boot, raw)));
        if boot.max(raw) >= Self::STEP {
            self.from = Some((now, moment));
        }
        moment
    }
}

const fn greater(one: u64, other: u64) -> u64 {
    if one > other { one } else { other }
}

const fn lesser(one: u64, other: u64) -> u64 {
    if one < other { one } else { other }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Read a clock every 20 ms for 10 s, while the first clock runs at these rates in turns, in
    /// thousandths: how much time the clock counts.
    fn counted(clock: &mut LeaseClock, rates: &[u64]) -> Duration {
        let mut now = ClockReading { boot: 5, raw: 7 };
        let start = clock.read(now);
        for rate in rates.iter().cycle().take(500) {
            now = ClockReading { boot: now.boot + 20 * MS * rate / 1000, raw: now.raw + 20 * MS };
            clock.read(now);
        }
        clock.read(now).since(start)
    }

    #[test]
    fn a_slewed_clock_never_slows_a_holder_and_never_hurries_a_node() {
        let real = Duration::from_secs(10);
        for rates in [&[917][..], &[1083], &[917, 1083], &[1000, 900, 1100]] {
            let holder = counted(&mut LeaseClock::faster(), rates);
            let node = counted(&mut LeaseClock::slower(), rates);
            assert!(holder >= real && node <= real, "{rates:?}: {holder:?}, {node:?}");
        }
        assert_eq!(counted(&mut LeaseClock::faster(), &[1000]), real);
    }

    #[test]
    fn only_a_holder_counts_the_time_in_which_its_machine_is_suspended() {
        let hour = 3_600_000 * MS;
        let (before, after) =
            (ClockReading { boot: 1, raw: 1 }, ClockReading { boot: 1 + hour, raw: 1 });
        for (mut clock, expected) in [(LeaseClock::faster(), hour), (LeaseClock::slower(), 0)] {
            let start = clock.read(before);
            assert_eq!(clock.read(after).since(start), Duration::from_nanos(expected));
        }
    }

    #[test]
    fn spans_shorter_than_a_step_are_counted_too() {
        let mut clock = LeaseClock::faster();
        let readings = (0..10_000).map(|at| ClockReading { boot: at * 917, raw: at * 1000 });
        let moments: Vec<_> = readings.map(|reading| clock.read(reading)).collect();
        assert!(moments.is_sorted());
        assert_eq!(moments[9999].since(moments[0]), Duration::from_micros(9999));
    }
}
