//! The interface through which locks are measured: those of this crate, and those of others.

use std::sync::{self, Mutex, PoisonError};
use std::vec::Vec;

use crate::{DefaultRelax, Exclusive, Guard, Primitive, Room, Section, Since};

/// A lock that threads compete for.
pub(super) trait Lock: Sync {
    type Seat<'l>: Seat
    where
        Self: 'l;

    /// Make a lock for this number of threads.
    fn new(threads: usize) -> Self;

    /// A seat for each thread.
    fn seats(&mut self, threads: usize) -> Vec<Self::Seat<'_>>;
}

/// What one thread has of a lock.
pub(super) trait Seat: Send {
    /// Releases the lock when it is dropped.
    type Guard<'s>
    where
        Self: 's;

    fn lock(&mut self) -> Self::Guard<'_>;

    /// Lock, and call the function at the moment from which entries of others count as overtaking.
    /// For a lock whose steps cannot be observed, that is the moment of the call.
    fn lock_watched(&mut self, asked: impl FnOnce()) -> Self::Guard<'_> {
        asked();
        self.lock()
    }
}

impl<A: Exclusive> Lock for Room<A, ()> {
    type Seat<'l> = crate::Seat<&'l Self, A>;

    fn new(threads: usize) -> Self {
        Self::new(threads, ()).expect("as many as it serves")
    }

    fn seats(&mut self, _: usize) -> Vec<Self::Seat<'_>> {
        Self::seats(self).collect()
    }
}

impl<A: Exclusive> Seat for crate::Seat<&Room<A, ()>, A> {
    type Guard<'s>
        = Guard<'s, A, (), DefaultRelax>
    where
        Self: 's;

    #[inline]
    fn lock(&mut self) -> Self::Guard<'_> {
        Self::lock(self)
    }

    fn lock_watched(&mut self, asked: impl FnOnce()) -> Self::Guard<'_> {
        if A::INFO.primitive == Primitive::Semaphore {
            // Its first step may sleep, so the steps cannot be observed one by one.
            asked();
            return Self::lock(self);
        }
        let mut asked = Some(asked);
        self.lock_step_by_step(|section| {
            let counts = match A::INFO.claims.since {
                Since::FirstStep => true,
                Since::Doorway => section != Section::Doorway,
            };
            if let Some(asked) = asked.take_if(|_| counts) {
                asked();
            }
        })
    }
}

/// A lock of another crate, of which every thread needs only a reference.
macro_rules! mutexes {
    ($($mutex:ty, $guard:ty, |$lock:ident| $locked:expr;)+) => {$(
        impl Lock for $mutex {
            type Seat<'l> = &'l Self;

            fn new(_: usize) -> Self {
                Self::new(())
            }

            fn seats(&mut self, threads: usize) -> Vec<&Self> {
                std::vec![&*self; threads]
            }
        }

        impl Seat for &$mutex {
            type Guard<'s> = $guard where Self: 's;

            #[inline]
            fn lock(&mut self) -> Self::Guard<'_> {
                let $lock = *self;
                $locked
            }
        }
    )+};
}

mutexes! {
    Mutex<()>, sync::MutexGuard<'s, ()>,
        |lock| lock.lock().unwrap_or_else(PoisonError::into_inner);
    parking_lot::Mutex<()>, parking_lot::MutexGuard<'s, ()>, |lock| lock.lock();
    spin::mutex::SpinMutex<()>, spin::mutex::SpinMutexGuard<'s, ()>, |lock| lock.lock();
    spin::mutex::TicketMutex<()>, spin::mutex::TicketMutexGuard<'s, ()>, |lock| lock.lock();
}
