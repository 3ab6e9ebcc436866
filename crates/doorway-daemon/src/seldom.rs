//! Lines of a log that a flood must not multiply.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock::Moment;

/// Something that is done at most once a second.
#[derive(Debug)]
pub(crate) struct Seldom(AtomicU64);

impl Seldom {
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Do it, unless it was done a moment ago.
    pub(crate) fn then(&self, act: impl FnOnce()) {
        let (now, last) = (Moment::now().0, self.0.load(Ordering::Relaxed));
        let due = last == 0 || now.saturating_sub(last) > 1_000_000_000;
        let exchange = || self.0.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed);
        if due && exchange().is_ok() {
            act();
        }
    }
}
