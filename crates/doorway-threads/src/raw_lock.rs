//! Any of the locks as a `lock_api::Mutex`: a thread takes a free seat for as long as it needs one.
#![allow(unsafe_code, reason = "a seat belongs to the thread that has set its bit")]

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::boxed::Box;
use std::sync::OnceLock;

use lock_api::RawMutex;

use crate::atomics::{Line, Registers};
use crate::walk::{enter, leave};
use crate::{Algorithm, DefaultRelax, Exclusive, Process, Relax};

/// Set while a thread enters by `try_lock`: threads that come meanwhile wait until it is inside.
const CLOSED: usize = 1 << (usize::BITS - 1);

/// A lock without a value, for [`lock_api::Mutex`]. Threads hold no seats: a thread takes one for
/// as long as it wants in, is inside, or leaves.
///
/// While all seats are taken, further threads wait for one, and the algorithm does not decide which
/// of them gets it: its promises about order hold among the threads that have a seat. Taking a seat
/// needs an atomic exchange, even if the algorithm does not.
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
/// A number of seats that the algorithm does not serve, or that needs more bits than a word has,
/// does not compile:
///
/// ```compile_fail,E0080
/// # use doorway_threads::{RawLock, algorithms::peterson::Peterson};
/// let mutex: lock_api::Mutex<RawLock<Peterson, 3>, u32> = lock_api::Mutex::new(0);
/// ```
pub struct RawLock<A: Exclusive, const SEATS: usize, R = DefaultRelax> {
    /// A bit for each seat that is taken, and [`CLOSED`].
    taken: AtomicUsize,
    /// Made at the first use, because they are allocated and `new` is a `const fn`.
    seats: OnceLock<Seats<A>>,
    relax: PhantomData<fn() -> R>,
}

/// The registers, and the place of the process of each seat. It is kept also outside, since a
/// process may remember something there.
struct Seats<A: Algorithm> {
    registers: Registers,
    places: Box<[Line<UnsafeCell<A::At>>]>,
}

// SAFETY: a place is reached only by the thread that has taken its seat. Everything that the thread
// before it did there happened before, since the seat's bit is released and acquired.
unsafe impl<A: Algorithm> Sync for Seats<A> {}

/// The number of the seat that the thread inside has taken.
#[derive(Debug)]
pub struct TakenSeat {
    i: usize,
}

impl<A: Exclusive, const SEATS: usize, R: Relax> RawLock<A, SEATS, R> {
    /// The number of processes: never fewer than the algorithm needs, even if they never come.
    const N: usize = if SEATS < A::INFO.fewest { A::INFO.fewest } else { SEATS };

    const ALL_TAKEN: usize = (1 << SEATS) - 1;

    /// Make a lock that is free.
    pub const fn new() -> Self {
        const {
            assert!(SEATS > 0, "a lock needs at least one seat");
            assert!(SEATS < usize::BITS as usize, "more seats than a word has bits, less one");
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

    /// Wait for a free seat and take it.
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

    /// Change which seats are taken, and see all that the threads have done that have left.
    fn replace(&self, old: usize, new: usize) -> bool {
        self.taken.compare_exchange(old, new, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Let the process of a seat take steps, by `way`.
    ///
    /// # Safety
    ///
    /// The caller has taken the seat.
    unsafe fn walk(&self, i: usize, way: fn(&Registers, Process, A::At) -> A::At) {
        let seats = self.seats();
        let place = seats.places[i].0.get();
        // SAFETY: no other thread has taken the seat, so no other thread reaches this place.
        unsafe { *place = way(&seats.registers, Process { i, n: Self::N }, *place) };
    }
}

// SAFETY: the threads that have a seat are the processes of an algorithm that is `Exclusive`, and
// each process is used by one thread at a time.
unsafe impl<A: Exclusive, const SEATS: usize, R: Relax> RawMutex for RawLock<A, SEATS, R> {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait demands a constant")]
    const INIT: Self = Self::new();

    type Guard = TakenSeat;

    fn lock(&self) -> TakenSeat {
        let TakenSeat { i } = self.take();
        // SAFETY: the seat was taken just now.
        unsafe { self.walk(i, enter::<A, R>) };
        TakenSeat { i }
    }

    /// Enter if no seat is taken. The lock is closed to others meanwhile, so the thread meets no
    /// other. A process that is alone enters without waiting by any algorithm, even by one in which
    /// a process cannot give up.
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
        // SAFETY: the caller has got the seat from `lock` or `try_lock`.
        unsafe { self.walk(i, leave::<A, R>) };
        self.taken.fetch_and(!(1 << i), Ordering::Release);
    }

    /// Whether a seat is taken, by a thread that is inside, on its way in, or on its way out.
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
