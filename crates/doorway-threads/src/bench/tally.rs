//! What is done inside: enough to see whether anyone else is there.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

/// What the threads of a run leave behind inside. Everything is loaded and stored and nothing is
/// exchanged, so without exclusion entries are lost; and a lock that fails is seen to fail without
/// undefined behaviour.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Tally {
    /// Who is inside, from 1; 0 if nobody is.
    inside: AtomicUsize,
    /// How often somebody has entered.
    entered: AtomicU64,
    /// How often somebody has left.
    left: AtomicU64,
    /// How often somebody was not alone.
    met: AtomicU64,
}

/// What one who has just asked sees.
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

    /// Was everyone alone, all of these entries long?
    pub(super) fn is_sound(&self, entries: u64) -> bool {
        self.met.load(Ordering::Relaxed) == 0 && self.entered.load(Ordering::Relaxed) == entries
    }

    /// Look around, after having asked.
    pub(super) fn look(&self) -> Look {
        // What the lock wrote for the asking is seen by others before this is read.
        fence(Ordering::SeqCst);
        let entered = self.entered.load(Ordering::Acquire);
        let left = self.left.load(Ordering::Acquire);
        Look { entered, occupied: entered == left + 1 }
    }

    /// How many have entered since, at least. The lock must be held, and the visit not begun.
    ///
    /// Whoever was inside when the look was taken has entered before it. If nobody was to be seen
    /// there, one may have been about to count himself, who is not counted then.
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
