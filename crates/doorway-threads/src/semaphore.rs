//! Semaphores on which threads sleep. A unit goes to the thread that has slept longest.
#![allow(unsafe_code, reason = "threads are parked on the address of the semaphore's word")]

use core::sync::atomic::{AtomicUsize, Ordering};

use parking_lot_core::{DEFAULT_PARK_TOKEN, DEFAULT_UNPARK_TOKEN, UnparkResult, park, unpark_one};

/// A number of units that threads take and give back.
///
/// A unit that is given back while threads sleep goes to the one that has slept longest, and no
/// other thread can take it first. A thread that has called `down` but does not sleep yet has no
/// place in that order yet.
///
/// ```
/// # use doorway_threads::Semaphore;
/// let units = Semaphore::new(2);
/// units.down();
/// units.down();
/// assert!(!units.try_down());
/// units.up();
/// assert!(units.try_down());
/// ```
#[derive(Debug)]
pub struct Semaphore(AtomicUsize);

impl Semaphore {
    /// The most units of a semaphore.
    pub const MOST: usize = LETTER >> 2;

    /// Make a semaphore with this number of units.
    ///
    /// # Panics
    ///
    /// If there are more than [`Semaphore::MOST`].
    pub const fn new(units: usize) -> Self {
        assert!(units <= Self::MOST, "more units than a semaphore can count");
        Self(AtomicUsize::new(units))
    }

    /// Take a unit. Sleep until there is one.
    pub fn down(&self) {
        down(&self.0);
    }

    /// Take a unit if there is one.
    pub fn try_down(&self) -> bool {
        take(&self.0)
    }

    /// Give a unit back, or add a new one. If there are [`Semaphore::MOST`] already, the count does
    /// not change.
    pub fn up(&self) {
        up(&self.0);
    }
}

// A word holds two numbers as their sum. The lower half is the balance: the number of units, or,
// below zero, the number of threads that wait for one. A thread that finds no unit has joined the
// waiting threads, even if it does not sleep yet, and units that are given from then on are for
// them. A unit that comes when a thread waits but none sleeps yet is a letter: the upper half
// counts the letters.

/// The value of one letter in the word.
const LETTER: usize = 1 << (usize::BITS / 2);

/// The number of units, less the number of waiting threads.
const fn balance(word: usize) -> isize {
    let unused = usize::BITS / 2;
    (word << unused).cast_signed() >> unused
}

/// The number of letters.
const fn letters(word: usize) -> usize {
    word.wrapping_sub(balance(word).cast_unsigned()) / LETTER
}

/// Take a unit if there is one.
pub(crate) fn take(word: &AtomicUsize) -> bool {
    let one_less = |word: usize| (balance(word) > 0).then(|| word.wrapping_sub(1));
    word.fetch_update(Ordering::Acquire, Ordering::Relaxed, one_less).is_ok()
}

/// Take a unit. Sleep until there is one.
#[inline]
pub(crate) fn down(word: &AtomicUsize) {
    if balance(word.fetch_sub(1, Ordering::Acquire)) <= 0 {
        sleep(word);
    }
}

/// Take a letter, or sleep until a unit is handed over.
fn sleep(word: &AtomicUsize) {
    let one_less = |word: usize| (letters(word) > 0).then(|| word.wrapping_sub(LETTER));
    // Letters come and go only while the queue of sleepers is locked, as it is here.
    let no_letter = || word.fetch_update(Ordering::Acquire, Ordering::Relaxed, one_less).is_err();
    // SAFETY: the address is that of our own word, and the closures neither panic nor park.
    unsafe {
        park(word.as_ptr() as usize, no_letter, || {}, |_, _| {}, DEFAULT_PARK_TOKEN, None);
    }
}

/// Give a unit: to a waiting thread, if there is any.
#[inline]
pub(crate) fn up(word: &AtomicUsize) {
    match balance(word.fetch_add(1, Ordering::Release)) {
        ..0 => hand_over(word),
        // The count may exceed the most for a moment, until the surplus is taken away again.
        units if units.cast_unsigned() >= Semaphore::MOST => {
            word.fetch_sub(1, Ordering::Relaxed);
        }
        _ => {}
    }
}

/// Wake the thread that has slept longest, or leave a letter for one that is about to sleep.
fn hand_over(word: &AtomicUsize) {
    let leave_letter = |result: UnparkResult| {
        if result.unparked_threads == 0 {
            word.fetch_add(LETTER, Ordering::Release);
        }
        DEFAULT_UNPARK_TOKEN
    };
    // SAFETY: the address is that of our own word, and the closure neither panics nor parks.
    unsafe { unpark_one(word.as_ptr() as usize, leave_letter) };
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn both_numbers_are_read_back() {
        for (there, lying) in
            [(0_isize, 0), (7, 0), (-1, 0), (-1, 1), (0, 2), (3, 1), (-1024, 1024)]
        {
            let word = there.cast_unsigned().wrapping_add(lying * LETTER);
            assert_eq!((balance(word), letters(word)), (there, lying));
        }
        assert_eq!(balance(Semaphore::MOST).cast_unsigned(), Semaphore::MOST);
    }

    /// Two threads have found no unit and do not sleep yet when two units come: none may be lost,
    /// and no other thread may get them.
    #[test]
    fn a_thread_about_to_sleep_gets_a_letter() {
        let units = Semaphore::new(0);
        units.0.fetch_sub(2, Ordering::Acquire);
        units.up();
        units.up();
        assert!(!units.try_down());
        assert_eq!(letters(units.0.load(Ordering::Relaxed)), 2);
        in_time(move || {
            sleep(&units.0);
            sleep(&units.0);
            assert_eq!(units.0.into_inner(), 0);
        });
    }

    /// A unit that comes while a thread waits, asleep or not yet, cannot be taken by another
    /// thread.
    #[test]
    fn a_thread_that_did_not_wait_cannot_take_the_unit() {
        in_time(|| {
            for _ in 0..100 {
                let units = Semaphore::new(0);
                thread::scope(|scope| {
                    scope.spawn(|| units.down());
                    while balance(units.0.load(Ordering::Relaxed)) == 0 {
                        thread::yield_now();
                    }
                    units.up();
                    assert!(!units.try_down());
                });
                assert_eq!(units.0.into_inner(), 0);
            }
        });
    }

    /// Fail if `run` does not end.
    fn in_time(run: impl FnOnce() + Send + 'static) {
        let (ended, end) = mpsc::channel();
        let thread = thread::spawn(move || {
            run();
            let _ = ended.send(());
        });
        let patience = Duration::from_mins(1);
        let slept_on = end.recv_timeout(patience) == Err(mpsc::RecvTimeoutError::Timeout);
        assert!(!slept_on, "a thread sleeps for ever");
        thread.join().expect("what it says itself");
    }
}
