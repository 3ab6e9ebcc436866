//! Limits how often a line is logged, so that a flood of events does not flood the log.

use std::sync::atomic::{AtomicU64, Ordering};

use doorway_protocol::Moment;

/// Does something at most once a second.
#[derive(Debug)]
pub(crate) struct LogLimit(AtomicU64);

impl LogLimit {
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Do something, unless it was done less than a second ago.
    pub(crate) fn then(&self, act: impl FnOnce()) {
        let (now, last) = (Moment::now().0, self.0.load(Ordering::Relaxed));
        let due = last == 0 || now.saturating_sub(last) > 1_000_000_000;
        let exchange = || self.0.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed);
        if due && exchange().is_ok() {
            act();
        }
    }
}
