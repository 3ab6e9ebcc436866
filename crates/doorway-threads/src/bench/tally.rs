//! The critical section of the measurements, which notices if another thread is inside.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

/// The counters that the threads of a run change inside. They are loaded and stored, never
/// exchanged, so without exclusion entries are lost. A lock that fails is noticed without undefined
/// behaviour.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Tally {
    /// The thread that is inside, from 1; 0 if none is.
    inside: AtomicUsize,
    /// The number of entries.
    entered: AtomicU64,
    /// The number of exits.
    left: AtomicU64,
    /// How often a thread was not alone inside.
    met: AtomicU64,
}

/// What a thread has seen just after it asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    entered: u64,
    occupied: bool,
}

impl Tally {
    /// Enter as number `me`, do something, and leave. The lock must be held.
    pub(super) fn visit(&self, me: usize, inside: impl FnOnce()) {
        let before = self.inside.load(Ordering::Relaxed);
        self.inside.store(me + 1, Ordering::Relaxed);
        let entered = self.entered.load(Ordering::Relaxed) + 1;
        self.entered.store(entered, Ordering::Release);
        inside();
        if before != 0 || self.inside.load(Ordering::Relaxed) != me + 1 {
            self.met.fetch_add(1, Ordering::Relaxed);
        }
        self.inside.store(0, Ordering::Relaxed);
        self.left.store(entered, Ordering::Release);
    }

    /// Whether every thread was alone inside during all of these entries.
    pub(super) fn is_sound(&self, entries: u64) -> bool {
        self.met.load(Ordering::Relaxed) == 0 && self.entered.load(Ordering::Relaxed) == entries
    }

    /// Look at the counters, just after having asked.
    pub(super) fn look(&self) -> Look {
        // Others see what the lock has written for this thread before this thread reads the
        // counters.
        fence(Ordering::SeqCst);
        let entered = self.entered.load(Ordering::Acquire);
        let left = self.left.load(Ordering::Acquire);
        Look { entered, occupied: entered == left + 1 }
    }

    /// The least number of threads that have entered since the look. The lock must be held, and the
    /// visit not begun.
    ///
    /// The thread that was inside at the time of the look has entered before it, so it does not
    /// count. If none was seen inside, one may have been about to count itself; it is not counted
    /// then either.
    pub(super) fn overtaken_since(&self, look: Look) -> u64 {
        let entered = self.entered.load(Ordering::Relaxed) - look.entered;
        if look.occupied { entered } else { entered.saturating_sub(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_after_another_is_sound() {
        let tally = Tally::default();
        tally.visit(0, || ());
        tally.visit(1, || ());
        assert!(tally.is_sound(2));
        assert!(!tally.is_sound(3), "an entry was lost");
    }

    #[test]
    fn one_during_another_is_not() {
        let tally = Tally::default();
        tally.visit(0, || tally.visit(1, || ()));
        assert!(!tally.is_sound(2));
    }

    #[test]
    fn only_who_is_known_to_have_come_later_has_overtaken() {
        let tally = Tally::default();
        let look = tally.look();
        tally.visit(1, || ());
        assert_eq!(tally.overtaken_since(look), 0, "it may have been inside before");
        tally.visit(1, || ());
        assert_eq!(tally.overtaken_since(look), 1);
        let mut look = look;
        tally.visit(1, || look = tally.look());
        assert_eq!(tally.overtaken_since(look), 0);
        tally.visit(1, || ());
        assert_eq!(tally.overtaken_since(look), 1);
    }
}
