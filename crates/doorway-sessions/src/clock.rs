//! Times as they are told and written.

use std::time::Duration;

/// Whole milliseconds, as they are told.
pub fn ms(time: Duration) -> u64 {
    time.as_millis() as u64
}
