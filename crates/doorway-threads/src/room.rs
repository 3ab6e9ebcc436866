//! A value behind a lock, and the seats through which threads reach it.
#![allow(unsafe_code, reason = "a guard lends out the value that the lock protects")]

use core::cell::{Cell, UnsafeCell};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use crate::atomics::{Atomics, Registers};
use crate::walk::{enter, leave};
use crate::{Algorithm, DefaultRelax, Exclusive, Loop, Place, Process, Relax, Section, Withdraws};

/// Why a room or its seats could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RoomError {
    /// A room without seats was asked for.
    NoSeats,
    /// More seats were asked for than the algorithm serves.
    TooManySeats {
        /// The number that was asked for.
        asked: usize,
        /// The most seats that the algorithm serves.
        most: usize,
    },
    /// More seats were asked for than the room has.
    Exhausted {
        /// The number that was asked for.
        asked: usize,
        /// The number of seats of the room.
        seats: usize,
    },
}

impl fmt::Display for RoomError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSeats => write!(f, "0 seats asked for, and a room needs at least one"),
            Self::TooManySeats { asked, most } => {
                write!(f, "{asked} seats asked for, and this algorithm serves at most {most}")
            }
            Self::Exhausted { asked, seats } => {
                write!(f, "{asked} seats asked for, and the room has {seats}")
            }
        }
    }
}

impl core::error::Error for RoomError {}

/// A value behind a lock: an algorithm keeps all threads but one from it at a time.
pub struct Room<A, T: ?Sized, R = DefaultRelax> {
    seats: usize,
    registers: Registers,
    rules: PhantomData<fn() -> (A, R)>,
    value: UnsafeCell<T>,
}

// SAFETY: threads reach the value only through guards, and `A: Exclusive` lets no two guards live
// at the same time. So sharing a room moves the value between threads and never shares it.
unsafe impl<A: Exclusive, T: ?Sized + Send, R> Sync for Room<A, T, R> {}

impl<A: Exclusive, T, R: Relax> Room<A, T, R> {
    /// Make a room with this number of seats.
    pub fn new(seats: usize, value: T) -> Result<Self, RoomError> {
        match seats {
            0 => return Err(RoomError::NoSeats),
            asked if asked > A::INFO.most => {
                return Err(RoomError::TooManySeats { asked, most: A::INFO.most });
            }
            _ => {}
        }
        // A single seat needs no lock, but the algorithm may need a second process that never
        // comes.
        let registers = Registers::new::<A>(seats.max(A::INFO.fewest));
        Ok(Self { seats, registers, rules: PhantomData, value: UnsafeCell::new(value) })
    }

    /// Unwrap the value. The room is consumed, so no seat can reach it any more.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }

    /// Turn the room into its seats, each of which keeps the room alive: for threads that outlive
    /// this one.
    #[cfg(target_has_atomic = "ptr")]
    pub fn into_seats(mut self) -> impl ExactSizeIterator<Item = OwnedSeat<A, T, R>> {
        self.registers.reset::<A>();
        let seats = self.seats;
        let room = alloc::sync::Arc::new(self);
        // SAFETY: the room was moved in here, so there are no seats but these.
        (0..seats).map(move |i| unsafe { Seat::new(alloc::sync::Arc::clone(&room), i) })
    }
}

impl<A: Exclusive, T: ?Sized, R: Relax> Room<A, T, R> {
    /// Borrow all seats of the room. This needs nothing but loads and stores. Earlier seats do not
    /// exist any more, and a lock that one of them has left held is free again.
    pub fn seats(&mut self) -> impl ExactSizeIterator<Item = Seat<&Self, A>> {
        self.registers.reset::<A>();
        let room = &*self;
        // SAFETY: the room is borrowed for as long as these seats live, so there are no others.
        (0..room.seats).map(move |i| unsafe { Seat::new(room, i) })
    }

    /// Borrow the first `N` seats, one variable for each: `let [mut left, mut right] =
    /// room.split()?`.
    pub fn split<const N: usize>(&mut self) -> Result<[Seat<&Self, A>; N], RoomError> {
        if N > self.seats {
            return Err(RoomError::Exhausted { asked: N, seats: self.seats });
        }
        self.registers.reset::<A>();
        let room = &*self;
        // SAFETY: the room is borrowed for as long as these seats live, so there are no others.
        Ok(core::array::from_fn(|i| unsafe { Seat::new(room, i) }))
    }

    /// Borrow the value without locking: the mutable borrow shows that no seat exists.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<A: Algorithm, T: ?Sized, R> fmt::Debug for Room<A, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room")
            .field("algorithm", &A::INFO.name)
            .field("seats", &self.seats)
            .finish_non_exhaustive()
    }
}

/// The seat of one participant, from which it locks the room. It can be sent to another thread, but
/// neither shared nor cloned: two threads on one seat would break every one of these algorithms.
///
/// ```compile_fail,E0499
/// # use doorway_threads::{Room, algorithms::peterson::Peterson};
/// let mut room: Room<Peterson, u32> = Room::new(2, 0).unwrap();
/// let [mut left, _right] = room.split().unwrap();
/// let one = left.lock();
/// let two = left.lock(); // The same seat twice: does not compile.
/// drop((one, two));
/// ```
pub struct Seat<H, A: Algorithm> {
    room: H,
    me: Process,
    at: A::At,
    /// Makes the seat unusable by two threads at once.
    alone: PhantomData<Cell<()>>,
}

/// A seat that keeps its room alive.
#[cfg(target_has_atomic = "ptr")]
pub type OwnedSeat<A, T, R = DefaultRelax> = Seat<alloc::sync::Arc<Room<A, T, R>>, A>;

impl<H, A, T, R> Seat<H, A>
where
    H: Deref<Target = Room<A, T, R>>,
    A: Exclusive,
    T: ?Sized,
    R: Relax,
{
    /// Make the seat with number `i`.
    ///
    /// # Safety
    ///
    /// `i` is below the number of seats, and there is no other seat with it.
    unsafe fn new(room: H, i: usize) -> Self {
        let me = Process { i, n: room.seats.max(A::INFO.fewest) };
        Self { room, me, at: A::outside(me), alone: PhantomData }
    }

    /// Wait until no other seat is inside, and enter.
    ///
    /// If a guard is forgotten with `mem::forget`, its seat stays inside: all others wait, and the
    /// seat itself may lock again.
    #[inline]
    pub fn lock(&mut self) -> Guard<'_, A, T, R> {
        self.at = enter::<A, R>(&self.room.registers, self.me, self.at);
        self.guard()
    }

    /// Lock, and tell `seen` after each step in which section the process is, for measurements.
    #[cfg(feature = "bench")]
    pub(crate) fn lock_step_by_step(
        &mut self,
        mut seen: impl FnMut(Section),
    ) -> Guard<'_, A, T, R> {
        let mut memory = Atomics::<R>::new(&self.room.registers);
        while self.at.section() != Section::Inside {
            self.at = A::step(self.at, self.me, &mut memory);
            seen(self.at.section());
        }
        self.guard()
    }

    /// Enter if no wait is needed; otherwise give up at once.
    pub fn try_lock(&mut self) -> Option<Guard<'_, A, T, R>>
    where
        A: Withdraws,
    {
        let mut memory = Atomics::<Loop>::new(&self.room.registers);
        while self.at.section() != Section::Inside {
            self.at = A::step(self.at, self.me, &mut memory);
            if memory.waited {
                let at = A::withdraw(self.at);
                self.at = leave::<A, R>(&self.room.registers, self.me, at);
                return None;
            }
        }
        Some(self.guard())
    }

    #[inline]
    fn guard(&mut self) -> Guard<'_, A, T, R> {
        Guard { room: &self.room, me: self.me, at: &mut self.at, lent: PhantomData }
    }
}

impl<H, A: Algorithm> fmt::Debug for Seat<H, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat")
            .field("algorithm", &A::INFO.name)
            .field("number", &self.me.i)
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

/// Access to the value of a [`Room`] that its seat has locked. Dropping the guard releases the
/// lock.
#[must_use = "the lock is held only as long as the guard lives"]
pub struct Guard<'s, A: Algorithm, T: ?Sized, R: Relax> {
    room: &'s Room<A, T, R>,
    me: Process,
    at: &'s mut A::At,
    /// The guard is `Send` and `Sync` only if the reference that it lends is.
    lent: PhantomData<&'s mut T>,
}

impl<A: Algorithm, T: ?Sized, R: Relax> Deref for Guard<'_, A, T, R> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: a guard is made only when its seat is inside, where the algorithm lets no other
        // seat be, and this guard is borrowed for as long as the reference lives.
        unsafe { &*self.room.value.get() }
    }
}

impl<A: Algorithm, T: ?Sized, R: Relax> DerefMut for Guard<'_, A, T, R> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed mutably.
        unsafe { &mut *self.room.value.get() }
    }
}

impl<A: Algorithm, T: ?Sized, R: Relax> Drop for Guard<'_, A, T, R> {
    #[inline]
    fn drop(&mut self) {
        *self.at = leave::<A, R>(&self.room.registers, self.me, *self.at);
    }
}

impl<A: Algorithm, T: ?Sized + fmt::Debug, R: Relax> fmt::Debug for Guard<'_, A, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<A: Algorithm, T: ?Sized + fmt::Display, R: Relax> fmt::Display for Guard<'_, A, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}
