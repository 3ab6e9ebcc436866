//! The clock of all deadlines, which is never too fast: see [`doorway_protocol::LeaseClock`].

use std::time::Duration;

pub use doorway_protocol::Moment;

/// Whole milliseconds, as they are told.
pub fn ms(time: Duration) -> u64 {
    time.as_millis() as u64
}
