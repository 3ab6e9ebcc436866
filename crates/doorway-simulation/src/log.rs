//! The log of a run: the same for the same seed, to the last byte.

use std::fmt::{Arguments, Write as _};

/// The lines of a run, or nothing if nobody wants to read them.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) text: Option<String>,
}

impl Log {
    pub(crate) fn line(&mut self, now: u64, what: Arguments<'_>) {
        if let Some(text) = &mut self.text {
            let _ = writeln!(text, "{:>12.6} {what}", now as f64 / 1e9);
        }
    }
}
