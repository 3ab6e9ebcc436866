//! Moments on the clock that leases are measured with.
//!
//! A [`Moment`] is a plain number, so a state machine that is told the time needs no clock, and its
//! tests need not wait. Only the feature `clock` can read the clock and set timers.

use std::time::Duration;

/// A point in time, in nanoseconds since the machine was started.
///
/// The clock never goes back, and it goes on while the machine is suspended: a lease that ends
/// during the night has ended in the morning. Moments of different machines must not be compared.
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
