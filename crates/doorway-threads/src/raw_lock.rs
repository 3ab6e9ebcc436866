//! Any of the locks where a `lock_api::Mutex` goes: who comes takes a seat, if there is one.
#![allow(unsafe_code, reason = "a seat belongs to whoever has set its bit")]

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::boxed::Box;
use std::sync::OnceLock;

use lock_api::RawMutex;

use crate::atomics::{Line, Registers};
use crate::walk::{enter, leave};
use crate::{Algorithm, Exclusive, Patient, Process, Relax};

/// Set while somebody enters who only tries: newcomers wait until it has.
const CLOSED: usize = 1 << (usize::BITS - 1);

/// A lock without a value, for [`lock_api::Mutex`]: threads need not hold seats, but take one for
/// as long as they want in, are inside, or leave.
///
/// While all seats are taken, newcomers wait for one, and who gets it is not for the algorithm to
/// say: what it promises about order, it promises to those who sit. Taking a seat needs an exchange
/// that nothing comes between, also where the algorithm does without.
///
/// ```
/// use doorway_threads::{RawLock, algorithms::dijkstra::Dijkstra};
///
/// static TOTAL: lock_api::Mutex<RawLock<Dijkstra, 4>, u32> = lock_api::Mutex::new(0);
///
/// std::thread::scope(|scope| {
///     for _ in 0..8 {
///         scope.spawn(|| *TOTAL.lock() += 1);
///     }
/// });
/// assert_eq!(*TOTAL.lock(), 8);
/// ```
///
/// A number of seats that the algorithm does not serve, or one of more than a word has bits, does
/// not compile:
///
/// ```compile_fail,E0080
/// # use doorway_threads::{RawLock, algorithms::peterson::Peterson};
/// let mutex: lock_api::Mutex<RawLock<Peterson, 3>, u32> = lock_api::Mutex::new(0);
/// ```
pub struct RawLock<A: Exclusive, const SEATS: usize, R = Patient> {
    /// A bit for each seat that is taken, and [`CLOSED`].
    taken: AtomicUsize,
    /// Made when they are needed first, since that cannot be done before the program runs.
    seats: OnceLock<Seats<A>>,
    relax: PhantomData<fn() -> R>,
}

/// The registers, and where the process of each seat is: also who is outside may have something to
/// remember.
struct Seats<A: Algorithm> {
    registers: Registers,
    places: Box<[Line<UnsafeCell<A::At>>]>,
}

// SAFETY: a place is reached only by the thread that has taken its seat, which comes after
// everything that the one before did there, since the bit is released and acquired.
unsafe impl<A: Algorithm> Sync for Seats<A> {}

/// A seat that was taken by who is inside.
#[derive(Debug)]
pub struct TakenSeat {
    i: usize,
}

impl<A: Exclusive, const SEATS: usize, R: Relax> RawLock<A, SEATS, R> {
    /// Never fewer than the algorithm needs, though the others may not come.
    const N: usize = if SEATS < A::INFO.fewest { A::INFO.fewest } else { SEATS };

    const ALL_TAKEN: usize = (1 << SEATS) - 1;

    /// A lock that is free.
    pub const fn new() -> Self {
        const {
            assert!(SEATS > 0, "a lock needs at least one seat");
            assert!(SEATS < usize::BITS as usize, "more seats than bits in a word, but for one");
            assert!(SEATS <= A::INFO.most, "more seats than the algorithm serves");
        }
        Self { taken: AtomicUsize::new(0), seats: OnceLock::new(), relax: PhantomData }
    }

    fn seats(&self) -> &Seats<A> {
        self.seats.get_or_init(|| {
            let outside = |i| Line(UnsafeCell::new(A::outside(Process { i, n: Self::N })));
            Seats {
                registers: Registers::new::<A>(Self::N),
                places: (0..SEATS).map(outside).collect(),
            }
        })
    }

    /// Wait for a seat.
    fn take(&self) -> TakenSeat {
        let mut relax = R::default();
        loop {
            let taken = self.taken.load(Ordering::Relaxed);
            if taken & CLOSED != 0 || taken == Self::ALL_TAKEN {
                relax.relax();
                continue;
            }
            let i = taken.trailing_ones() as usize;
            if self.replace(taken, taken | 1 << i) {
                return TakenSeat { i };
            }
        }
    }

    /// Change who sits, and see all that those have done who have left.
    fn replace(&self, old: usize, new: usize) -> bool {
        self.taken.compare_exchange(old, new, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Take the process of a seat from where it is to somewhere else.
    ///
    /// # Safety
    ///
    /// The seat was taken by the caller.
    unsafe fn walk(&self, i: usize, way: fn(&Registers, Process, A::At) -> A::At) {
        let seats = self.seats();
        let place = seats.places[i].0.get();
        // SAFETY: nobody else has taken the seat, so nobody else is here.
        unsafe { *place = way(&seats.registers, Process { i, n: Self::N }, *place) };
    }
}

// SAFETY: those who sit are the processes of an algorithm that is `Exclusive`, each of them only
// once at a time.
unsafe impl<A: Exclusive, const SEATS: usize, R: Relax> RawMutex for RawLock<A, SEATS, R> {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait has it so")]
    const INIT: Self = Self::new();

    type Guard = TakenSeat;

    fn lock(&self) -> TakenSeat {
        let TakenSeat { i } = self.take();
        // SAFETY: the seat was taken just now.
        unsafe { self.walk(i, enter::<A, R>) };
        TakenSeat { i }
    }

    /// Enter if nobody sits anywhere. The door is closed meanwhile, so nobody is met, and who is
    /// alone enters without waiting by any algorithm, also by one that would not let go of who has
    /// begun to ask.
    fn try_lock(&self) -> Option<TakenSeat> {
        let i = 0;
        if !self.replace(0, CLOSED | 1 << i) {
            return None;
        }
        // SAFETY: the seat was taken just now.
        unsafe { self.walk(i, enter::<A, R>) };
        self.taken.fetch_and(!CLOSED, Ordering::Release);
        Some(TakenSeat { i })
    }

    unsafe fn unlock(&self, TakenSeat { i }: TakenSeat) {
        // SAFETY: the caller has been given the seat by one of the two above.
        unsafe { self.walk(i, leave::<A, R>) };
        self.taken.fetch_and(!(1 << i), Ordering::Release);
    }

    /// Somebody sits: inside, on the way in, or on the way out.
    fn is_locked(&self) -> bool {
        self.taken.load(Ordering::Relaxed) != 0
    }
}

impl<A: Exclusive, const SEATS: usize, R: Relax> Default for RawLock<A, SEATS, R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Exclusive, const SEATS: usize, R> fmt::Debug for RawLock<A, SEATS, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taken = self.taken.load(Ordering::Relaxed) & !CLOSED;
        f.debug_struct("RawLock")
            .field("algorithm", &A::INFO.name)
            .field("seats", &SEATS)
            .field("taken", &taken.count_ones())
            .finish_non_exhaustive()
    }
}
