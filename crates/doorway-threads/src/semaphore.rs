//! Semaphores that make a thread sleep, and hand over to the one that has slept longest.
#![allow(unsafe_code, reason = "threads are parked on the address of the semaphore's word")]

use core::sync::atomic::{AtomicUsize, Ordering};

use parking_lot_core::{DEFAULT_PARK_TOKEN, DEFAULT_UNPARK_TOKEN, UnparkResult, park, unpark_one};

/// A number of units that threads take and give back.
///
/// A unit that is given back while threads wait goes to one of them and to nobody else: a thread
/// that comes by cannot snatch it.
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
    /// The most units there can be.
    pub const MOST: usize = ASLEEP - 1;

    /// A semaphore with so many units.
    ///
    /// # Panics
    ///
    /// If there are more than [`Semaphore::MOST`].
    pub const fn new(units: usize) -> Self {
        assert!(units <= Self::MOST, "more units than a semaphore can count");
        Self(AtomicUsize::new(units))
    }

    /// Take a unit; sleep until there is one.
    pub fn down(&self) {
        down(&self.0);
    }

    /// Take a unit if there is one.
    pub fn try_down(&self) -> bool {
        take(&self.0)
    }

    /// Give a unit back, or a new one.
    pub fn up(&self) {
        up(&self.0);
    }
}

/// Set while threads sleep, or have slept a moment ago; the units are none then. From then on the
/// word changes only while the queue of sleepers is locked.
const ASLEEP: usize = 1 << (usize::BITS - 1);

/// Take a unit if there is one.
pub(crate) fn take(word: &AtomicUsize) -> bool {
    let one_less = |units: usize| (units & ASLEEP == 0).then(|| units.checked_sub(1)).flatten();
    word.fetch_update(Ordering::Acquire, Ordering::Relaxed, one_less).is_ok()
}

/// Take a unit; sleep until there is one.
pub(crate) fn down(word: &AtomicUsize) {
    while !take(word) {
        let asleep = word.compare_exchange(0, ASLEEP, Ordering::Relaxed, Ordering::Relaxed);
        if asleep.is_err_and(|units| units != ASLEEP) {
            continue;
        }
        // SAFETY: the address is that of our own word, and the closures neither panic nor park.
        let woken = unsafe {
            park(
                word.as_ptr() as usize,
                || word.load(Ordering::Relaxed) == ASLEEP,
                || {},
                |_, _| {},
                DEFAULT_PARK_TOKEN,
                None,
            )
        };
        // Whoever wakes us leaves us the unit instead of putting it back.
        if woken.is_unparked() {
            return;
        }
    }
}

/// Give a unit: to one who sleeps, if there is any.
pub(crate) fn up(word: &AtomicUsize) {
    let one_more = |units: usize| (units & ASLEEP == 0).then_some(units + 1);
    if word.fetch_update(Ordering::Release, Ordering::Relaxed, one_more).is_ok() {
        return;
    }
    let give = |result: UnparkResult| {
        if result.unparked_threads == 0 {
            word.store(1, Ordering::Release);
        } else if !result.have_more_threads {
            word.store(0, Ordering::Release);
        }
        DEFAULT_UNPARK_TOKEN
    };
    // SAFETY: the address is that of our own word, and the closure neither panics nor parks.
    unsafe { unpark_one(word.as_ptr() as usize, give) };
}
