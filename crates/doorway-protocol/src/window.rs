//! Windows of time, in each of which `doorway run --once-per` runs a command once.
//!
//! A window is the time from `k * period` until the next one, counted from 1970 in UTC. It has a
//! lock of its own, whose name is that of the command's lock, the period and the start of the
//! window: `backup@1h@2026-11-17T18:00:00Z`. That lock is taken once and held beyond the end of the
//! window, so nobody takes it a second time.

use std::fmt::{self, Write as _};
use std::time::Duration;

use crate::{Name, NameError};

/// What separates the name of the command's lock, the period and the start of the window.
const MARK: char = '@';

const DAY_MS: u64 = 86_400_000;

/// The first moment that cannot be written with a year of four digits.
const END_MS: u64 = 253_402_300_800_000;

/// A window of time.
///
/// ```
/// use std::time::Duration;
/// use doorway_protocol::{Name, Window};
///
/// let window = Window::at(90_000_000, Duration::from_hours(1))?;
/// assert_eq!(window.to_string(), "1970-01-02T01:00:00Z/1970-01-02T02:00:00Z");
/// let lock = window.lock(&Name::new("backup").unwrap())?;
/// assert_eq!(lock.as_str(), "backup@1h@1970-01-02T01:00:00Z");
/// assert_eq!(Window::of(&lock), Some((Name::new("backup").unwrap(), window)));
/// # Ok::<(), doorway_protocol::WindowError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    period_ms: u64,
    start_ms: u64,
}

/// Why there is no such window.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WindowError {
    /// The period is too short, too long, or not a whole number of milliseconds.
    #[error("a period has 1 s to 31 d, in whole milliseconds, not {}", humane(*.0))]
    Period(Duration),
    /// The clock shows a year after 9999.
    #[error("the clock is wrong: it shows a year after 9999")]
    Clock,
    /// The name is too long for a lock of a window.
    #[error(
        "the name of a lock that is used once per {period} has at most {most} bytes, not {length}"
    )]
    Name {
        /// The period.
        period: String,
        /// How many bytes the name may have.
        most: usize,
        /// How many bytes it has.
        length: usize,
    },
    /// The name is that of a window's lock.
    #[error("`{0}` is the lock of a window, and has no windows of its own")]
    Nested(Name),
}

/// A time in seconds, for a message.
fn humane(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

impl Window {
    /// The shortest period that a window may have.
    pub const SHORTEST: Duration = Duration::from_secs(1);

    /// The longest period that a window may have.
    pub const LONGEST: Duration = Duration::from_hours(31 * 24);

    /// The window of this period at this moment, in milliseconds since 1970.
    pub fn at(now_ms: u64, period: Duration) -> Result<Self, WindowError> {
        let whole = period.subsec_nanos().is_multiple_of(1_000_000);
        if !whole || !(Self::SHORTEST..=Self::LONGEST).contains(&period) {
            return Err(WindowError::Period(period));
        }
        let period_ms = period.as_millis() as u64;
        let window = Self { period_ms, start_ms: now_ms - now_ms % period_ms };
        if now_ms >= END_MS || window.end_ms() >= END_MS {
            return Err(WindowError::Clock);
        }
        Ok(window)
    }

    /// The period: how long the window lasts.
    pub fn period(&self) -> Duration {
        Duration::from_millis(self.period_ms)
    }

    /// The first moment of the window, in milliseconds since 1970.
    pub fn start_ms(&self) -> u64 {
        self.start_ms
    }

    /// The first moment after the window, in milliseconds since 1970.
    pub fn end_ms(&self) -> u64 {
        self.start_ms + self.period_ms
    }

    /// By how much the clocks of two nodes may differ: a tenth of the period.
    pub fn tolerance(period: Duration) -> Duration {
        period / 10
    }

    /// How long the lock of the window is held after the end of the window.
    ///
    /// It has to be longer than the clocks of two nodes may differ, because a node whose clock is
    /// behind takes the window for the current one all that time. It is a whole period, at most a
    /// day, so that a clock that was set back does not make a past window current again.
    fn margin(&self) -> Duration {
        let period = self.period();
        let day = Duration::from_millis(DAY_MS);
        (Self::tolerance(period) * 2).max(period.min(day)) + Duration::from_secs(1)
    }

    /// How long the lock of the window is held by a client that takes it at this moment.
    pub fn hold(&self, now_ms: u64) -> Duration {
        let left = self.end_ms().saturating_sub(now_ms).min(self.period_ms);
        Duration::from_millis(left) + self.margin()
    }

    /// The longest time for which the lock of the window is held.
    pub fn longest_hold(&self) -> Duration {
        self.hold(self.start_ms)
    }

    /// The lock of this window.
    pub fn lock(&self, name: &Name) -> Result<Name, WindowError> {
        if Self::of(name).is_some() {
            return Err(WindowError::Nested(name.clone()));
        }
        self.name(name.as_str()).map_err(|_| {
            let length = name.as_str().len();
            let most = Name::MAX - self.suffix().len();
            WindowError::Name { period: self.shown_period(), most, length }
        })
    }

    fn name(&self, name: &str) -> Result<Name, NameError> {
        Name::new(&format!("{name}{}", self.suffix()))
    }

    fn suffix(&self) -> String {
        format!("{MARK}{}{MARK}{}", self.shown_period(), Utc(self.start_ms))
    }

    /// The period in the largest unit of which it is a multiple, such as `90s` or `1h`.
    pub fn shown_period(&self) -> String {
        let units = UNITS.iter().rev().find(|(_, ms)| self.period_ms.is_multiple_of(*ms));
        let (unit, ms) = units.unwrap_or(&UNITS[0]);
        format!("{}{unit}", self.period_ms / ms)
    }

    /// The name and the window whose lock this is; none if it is not a lock of a window.
    pub fn of(lock: &Name) -> Option<(Name, Self)> {
        let (rest, start) = lock.as_str().rsplit_once(MARK)?;
        let (name, period) = rest.rsplit_once(MARK)?;
        let window = Self::at(read_time(start)?, read_period(period)?).ok()?;
        // Only the spelling that [`Self::lock`] makes counts.
        let name = Name::new(name).ok()?;
        (window.name(name.as_str()).as_ref() == Ok(lock)).then_some((name, window))
    }

    /// What the names of the locks of all windows of this lock begin with.
    pub fn prefix(name: &Name) -> String {
        format!("{name}{MARK}")
    }
}

/// The interval of ISO 8601: the start, a slash and the end.
impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Utc(self.start_ms), Utc(self.end_ms()))
    }
}

/// The units of periods, in milliseconds.
const UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", DAY_MS)];

/// Read what [`Window::shown_period`] writes.
fn read_period(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let (_, ms) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*ms).map(Duration::from_millis)
}

/// A moment in milliseconds since 1970, as RFC 3339 writes it in UTC.
struct Utc(u64);

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, ms) = (self.0 / DAY_MS, self.0 % DAY_MS);
        let (year, month, day) = date(days);
        let (seconds, ms) = (ms / 1000, ms % 1000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if ms > 0 {
            write!(f, ".{ms:03}")?;
        }
        f.write_char('Z')
    }
}

/// Read what [`Utc`] writes.
fn read_time(text: &str) -> Option<u64> {
    let text = text.strip_suffix('Z').filter(|text| text.is_ascii())?;
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let ms = if text.len() > 19 { number(20, 23)? } else { 0 };
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    Some(seconds * 1000 + ms)
}

/// The date of a day, counted from 1 January 1970 in the Gregorian calendar: year, month and day.
///
/// Years are taken to begin in March, so that the day that a leap year adds is their last one.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // From 1 March of the year 0.
    let (era, day) = (days / 146_097, days % 146_097); // Eras have 400 years.
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153; // March is 0.
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, after) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + after, month, day)
}

/// The day with this date, counted from 1 January 1970: the reverse of [`date`].
fn days(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year) = (year / 400, year % 400);
    let day = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + 365 * year + year / 4 - year / 100 + day - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_795_104_000, "2026-11-19T16:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(Utc(seconds * 1000).to_string(), text);
            assert_eq!(read_time(text), Some(seconds * 1000));
        }
        assert_eq!(Utc(1500).to_string(), "1970-01-01T00:00:01.500Z");
        // Every day of the calendar is read as it was written.
        for day in 0..END_MS / DAY_MS {
            let (year, month, of_month) = date(day);
            assert_eq!(days(year, month, of_month), day, "{year}-{month}-{of_month}");
        }
    }

    #[test]
    fn a_window_has_one_name_and_no_other_name_is_one() {
        for (period, now_ms, lock) in [
            (HOUR, 3_599_999, "a@1h@1970-01-01T00:00:00Z"),
            (HOUR, 3_600_000, "a@1h@1970-01-01T01:00:00Z"),
            (Duration::from_secs(90), 100_000, "a@90s@1970-01-01T00:01:30Z"),
            (Duration::from_millis(1500), 4000, "a@1500ms@1970-01-01T00:00:03Z"),
            (Duration::from_millis(1500), 1600, "a@1500ms@1970-01-01T00:00:01.500Z"),
            (Duration::from_hours(48), 0, "a@2d@1970-01-01T00:00:00Z"),
        ] {
            let window = Window::at(now_ms, period).unwrap();
            assert!(window.start_ms() <= now_ms && now_ms < window.end_ms());
            let made = window.lock(&name("a")).unwrap();
            assert_eq!(made.as_str(), lock);
            assert_eq!(Window::of(&made), Some((name("a"), window)));
            assert!(made.as_str().starts_with(&Window::prefix(&name("a"))));
        }
        for other in [
            "a",
            "a@b",
            "a@1h",
            "@1h@1970-01-01T00:00:00Z",      // No name.
            "a@60m@1970-01-01T00:00:00Z",    // Another spelling of an hour.
            "a@01h@1970-01-01T00:00:00Z",    // And another one.
            "a@1h@1970-01-01T00:30:00Z",     // Not the start of a window.
            "a@1h@1970-01-01 00:00:00Z",     // Not RFC 3339.
            "a@1h@1970-01-01T00:00:00.000Z", // Not the shortest spelling.
            "a@1h@1970-00-01T00:00:00Z",
            "a@1h@1970-02-30T00:00:00Z",
            "a@1h@1969-12-31T23:00:00Z",
            "a@1h@+970-01-01T00:00:00Z",
            "a@0s@1970-01-01T00:00:00Z",
            "a@99d@1970-01-01T00:00:00Z",
            "a@18446744073709551615d@1970-01-01T00:00:00Z",
            "a@1h@",
            "a@@",
            "a@1h@é970-01-01T00:00:00Z",
        ] {
            assert_eq!(Window::of(&name(other)), None, "{other}");
        }
    }

    #[test]
    fn periods_and_names_have_bounds() {
        for period in [
            Duration::ZERO,
            Duration::from_millis(999),
            Window::LONGEST + Duration::from_millis(1),
            Duration::from_micros(1_000_500),
        ] {
            assert_eq!(Window::at(0, period), Err(WindowError::Period(period)));
        }
        for period in [Window::SHORTEST, Window::LONGEST] {
            assert!(Window::at(1_800_000_000_000, period).is_ok());
        }
        assert_eq!(Window::at(END_MS, HOUR), Err(WindowError::Clock));
        assert_eq!(Window::at(u64::MAX, HOUR), Err(WindowError::Clock));
        let window = Window::at(0, HOUR).unwrap();
        assert!(window.lock(&name(&"x".repeat(176))).is_ok());
        let error = window.lock(&name(&"x".repeat(177))).unwrap_err().to_string();
        assert!(error.contains("once per 1h has at most 176 bytes, not 177"), "{error}");
        let nested = window.lock(&window.lock(&name("a")).unwrap()).unwrap_err();
        assert!(matches!(nested, WindowError::Nested(_)), "{nested}");
    }

    #[test]
    fn a_window_is_held_until_no_clock_within_the_tolerance_shows_it() {
        let second = Duration::from_secs(1);
        let week = Duration::from_hours(7 * 24);
        for period in [second, HOUR, Duration::from_hours(24), week, Window::LONGEST] {
            let window = Window::at(1_795_104_000_123, period).unwrap();
            for now_ms in [window.start_ms(), window.end_ms() - 1] {
                let end = Duration::from_millis(now_ms) + window.hold(now_ms);
                let after = end.saturating_sub(Duration::from_millis(window.end_ms()));
                assert!(after > Window::tolerance(period) * 2 + second / 2, "{period:?}");
                assert!(window.hold(now_ms) <= window.longest_hold());
            }
            let most = Duration::from_millis(u32::MAX.into());
            assert!(window.longest_hold() < most, "a lease can be that long");
            assert_eq!(window.hold(0), window.longest_hold(), "whatever the clock shows");
        }
    }
}
