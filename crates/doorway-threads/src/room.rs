//! A value behind a lock, and the seats from which it is reached.
#![allow(unsafe_code, reason = "what a lock protects is lent out to whoever is inside")]

use core::cell::{Cell, UnsafeCell};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use crate::atomics::{Atomics, Registers};
use crate::walk::{enter, leave};
use crate::{Algorithm, Exclusive, Loop, Patient, Place, Process, Relax, Section, Withdraws};

/// Why there is no room, or no seat in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RoomError {
    /// A room for nobody was asked for.
    NoSeats,
    /// More seats were asked for than the algorithm serves.
    TooManySeats {
        /// So many were asked for.
        asked: usize,
        /// So many there can be.
        most: usize,
    },
    /// More seats were asked for than the room has.
    Exhausted {
        /// So many were asked for.
        asked: usize,
        /// So many there are.
        seats: usize,
    },
}

impl fmt::Display for RoomError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSeats => write!(f, "a room needs at least one seat"),
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

/// A value that one thread at a time may touch, by the rules of an algorithm.
pub struct Room<A, T: ?Sized, R = Patient> {
    seats: usize,
    registers: Registers,
    rules: PhantomData<fn() -> (A, R)>,
    value: UnsafeCell<T>,
}

// SAFETY: threads reach the value only through guards, and `A: Exclusive` lets no two of them live
// at the same time, so sharing a room moves the value between threads and never shares it.
unsafe impl<A: Exclusive, T: ?Sized + Send, R> Sync for Room<A, T, R> {}

impl<A: Exclusive, T, R: Relax> Room<A, T, R> {
    /// A room with so many seats.
    pub fn new(seats: usize, value: T) -> Result<Self, RoomError> {
        match seats {
            0 => return Err(RoomError::NoSeats),
            asked if asked > A::INFO.most => {
                return Err(RoomError::TooManySeats { asked, most: A::INFO.most });
            }
            _ => {}
        }
        // Who is alone needs no lock, but the algorithm may need a second process that never comes.
        let registers = Registers::new::<A>(seats.max(A::INFO.fewest));
        Ok(Self { seats, registers, rules: PhantomData, value: UnsafeCell::new(value) })
    }

    /// The value, now that nobody can reach it any more.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }

    /// The seats, owned by whoever takes them: for threads that outlive this one.
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
    /// All seats of the room. Nothing but loads and stores is needed for it. Earlier seats are
    /// gone, and so are their claims: a lock that was left held is free again.
    pub fn seats(&mut self) -> impl ExactSizeIterator<Item = Seat<&Self, A>> {
        self.registers.reset::<A>();
        let room = &*self;
        // SAFETY: the room is borrowed for as long as these seats live, so there are no others.
        (0..room.seats).map(move |i| unsafe { Seat::new(room, i) })
    }

    /// So many of the seats, one variable for each: `let [mut left, mut right] = room.split()?`.
    pub fn split<const N: usize>(&mut self) -> Result<[Seat<&Self, A>; N], RoomError> {
        if N > self.seats {
            return Err(RoomError::Exhausted { asked: N, seats: self.seats });
        }
        self.registers.reset::<A>();
        let room = &*self;
        // SAFETY: the room is borrowed for as long as these seats live, so there are no others.
        Ok(core::array::from_fn(|i| unsafe { Seat::new(room, i) }))
    }

    /// The value: nobody else can reach the room now.
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

/// The place of one participant. It can be sent to another thread, but neither shared nor doubled:
/// two threads on one seat would break every one of these algorithms.
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
    /// Not to be used by two threads at once.
    alone: PhantomData<Cell<()>>,
}

/// A seat that keeps its room alive.
#[cfg(target_has_atomic = "ptr")]
pub type OwnedSeat<A, T, R = Patient> = Seat<alloc::sync::Arc<Room<A, T, R>>, A>;

impl<H, A, T, R> Seat<H, A>
where
    H: Deref<Target = Room<A, T, R>>,
    A: Exclusive,
    T: ?Sized,
    R: Relax,
{
    /// # Safety
    ///
    /// `i` is below the number of seats, and there is no other seat with it.
    unsafe fn new(room: H, i: usize) -> Self {
        let me = Process { i, n: room.seats.max(A::INFO.fewest) };
        Self { room, me, at: A::outside(me), alone: PhantomData }
    }
    /// Wait until nobody else is inside, and enter.
    ///
    /// A guard that was forgotten leaves its seat inside: all others wait, and the seat itself may
    /// lock again.
    #[inline]
    pub fn lock(&mut self) -> Guard<'_, A, T, R> {
        self.at = enter::<A, R>(&self.room.registers, self.me, self.at);
        self.guard()
    }

    /// The same, for those who measure: after each step `seen` hears where it led.
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

    /// Enter if that can be done without waiting.
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

/// Whoever has it is inside, and leaves when it is dropped.
#[must_use = "the lock is held only as long as the guard lives"]
pub struct Guard<'s, A: Algorithm, T: ?Sized, R: Relax> {
    room: &'s Room<A, T, R>,
    me: Process,
    at: &'s mut A::At,
    /// A guard is as good as the reference that it lends.
    lent: PhantomData<&'s mut T>,
}

impl<A: Algorithm, T: ?Sized, R: Relax> Deref for Guard<'_, A, T, R> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: guards are made inside only, where the algorithm lets no other be, and this one
        // is borrowed for as long as the reference lives.
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
