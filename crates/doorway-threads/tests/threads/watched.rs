//! The value that a lock protects in a test on real threads.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicUsize, Ordering};

/// If two threads are inside at once, both notice it.
pub(crate) struct WatchedValue {
    owner: AtomicUsize,
    entries: usize,
}

impl WatchedValue {
    const NOBODY: usize = usize::MAX;

    pub(crate) const fn new() -> Self {
        Self { owner: AtomicUsize::new(Self::NOBODY), entries: 0 }
    }

    /// Visit the value. The lock must be held.
    pub(crate) fn visit(&mut self, i: usize) {
        assert_eq!(self.owner.swap(i, Ordering::Relaxed), Self::NOBODY, "two are inside");
        let entries = self.entries;
        (0..20).for_each(|_| spin_loop());
        self.entries = black_box(entries + 1);
        assert_eq!(self.owner.swap(Self::NOBODY, Ordering::Relaxed), i, "two are inside");
    }

    /// The number of visits.
    pub(crate) fn entries(&self) -> usize {
        self.entries
    }
}
