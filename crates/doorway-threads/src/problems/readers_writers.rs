//! A value that many threads may read, or one may write.
#![allow(unsafe_code, reason = "a guard lends out the value")]

mod protocol;

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use crate::atomics::{Atomics, Registers};
use crate::{Algorithm, DefaultRelax, Place, Process, Section};
use protocol::At;
pub use protocol::Turnstile;

/// A value that any number of threads may read together, or one may write alone.
///
/// First come, first served: every thread goes through a turnstile, so neither readers nor writers
/// starve, and readers that come one after another are inside together. A thread that reads must
/// therefore not ask to read once more: if a writer has come in between, both wait for ever. A
/// panic does not poison the value. If a guard is forgotten, its thread stays inside.
///
/// Proved by exploring every schedule of up to five readers and writers: no writer is inside
/// together with another process, no process waits for ever, and none is overtaken by one that came
/// later.
///
/// ```
/// use doorway_threads::problems::ReadersWriters;
///
/// let words = ReadersWriters::new(vec!["one"]);
/// {
///     let (first, second) = (words.read(), words.read());
///     assert_eq!(*first, *second);
/// }
/// words.write().push("two");
/// assert_eq!(words.into_inner(), ["one", "two"]);
/// ```
///
/// A value that threads may not share cannot be read together:
///
/// ```compile_fail,E0277
/// # use doorway_threads::problems::ReadersWriters;
/// let value = ReadersWriters::new(std::cell::Cell::new(0));
/// std::thread::scope(|scope| {
///     scope.spawn(|| value.read().set(1)); // Two readers could do this at once.
/// });
/// ```
pub struct ReadersWriters<T: ?Sized> {
    registers: Registers,
    value: UnsafeCell<T>,
}

// SAFETY: threads reach the value only through guards. Those that read share it, which `T: Sync`
// allows; one that writes is alone with it by the protocol, so it moves between threads, which `T:
// Send` allows. The room is given and taken for each change between writing and reading, and
// readers count themselves in and out with a semaphore that orders them all, so a thread that
// enters has seen what those before it have done.
unsafe impl<T: ?Sized + Send + Sync> Sync for ReadersWriters<T> {}

/// The protocol as threads run it. They need no process numbers: each call says where it begins.
type Rules = Turnstile<0>;

const ANYONE: Process = Process { i: 0, n: 1 };

impl<T> ReadersWriters<T> {
    /// Make a value that threads can read and write.
    pub fn new(value: T) -> Self {
        Self { registers: Registers::new::<Rules>(1), value: UnsafeCell::new(value) }
    }

    /// Unwrap the value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> ReadersWriters<T> {
    /// Wait until no thread writes and all that came before are inside; then read.
    pub fn read(&self) -> ReadGuard<'_, T> {
        self.walk(At::Reader, Section::Inside);
        ReadGuard { of: self, lent: PhantomData }
    }

    /// Wait until no other thread is inside and all that came before have been; then write.
    pub fn write(&self) -> WriteGuard<'_, T> {
        self.walk(At::Writer, Section::Inside);
        WriteGuard { of: self, lent: PhantomData }
    }

    /// Borrow the value without locking: the mutable borrow shows that no guard exists.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Take steps until a section is reached.
    fn walk(&self, mut at: At, to: Section) {
        let mut memory = Atomics::<DefaultRelax>::new(&self.registers);
        while at.section() != to {
            at = Rules::step(at, ANYONE, &mut memory);
        }
    }
}

impl<T: ?Sized> fmt::Debug for ReadersWriters<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadersWriters").finish_non_exhaustive()
    }
}

/// Shared access to the value, together with other readers. Dropping it releases the access.
#[must_use = "writers are kept out only as long as the guard lives"]
pub struct ReadGuard<'l, T: ?Sized> {
    of: &'l ReadersWriters<T>,
    /// The guard is `Send` and `Sync` only if the reference that it lends is.
    lent: PhantomData<&'l T>,
}

impl<T: ?Sized> Deref for ReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: a guard to read is made only inside, where the protocol lets no writer be, and
        // the reference lives no longer than the guard.
        unsafe { &*self.of.value.get() }
    }
}

impl<T: ?Sized> Drop for ReadGuard<'_, T> {
    fn drop(&mut self) {
        self.of.walk(At::Read, Section::Outside);
    }
}

/// Exclusive access to the value. Dropping it releases the access.
#[must_use = "others are kept out only as long as the guard lives"]
pub struct WriteGuard<'l, T: ?Sized> {
    of: &'l ReadersWriters<T>,
    /// The guard is `Send` and `Sync` only if the reference that it lends is.
    lent: PhantomData<&'l mut T>,
}

impl<T: ?Sized> Deref for WriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: a guard to write is made only inside, where the protocol lets no other thread be,
        // and this one is borrowed for as long as the reference lives.
        unsafe { &*self.of.value.get() }
    }
}

impl<T: ?Sized> DerefMut for WriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed mutably.
        unsafe { &mut *self.of.value.get() }
    }
}

impl<T: ?Sized> Drop for WriteGuard<'_, T> {
    fn drop(&mut self) {
        self.of.walk(At::Write, Section::Outside);
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for ReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for WriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
