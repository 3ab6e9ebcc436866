//! A value that many may read, or one may write.
#![allow(unsafe_code, reason = "the value is lent out to whoever is inside")]

mod protocol;

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use crate::atomics::{Atomics, Registers};
use crate::{Algorithm, Patient, Place, Process, Section};
use protocol::At;
pub use protocol::Turnstile;

/// A value that any number of threads may read together, or one may write alone.
///
/// First come, first served: whoever wants in goes through a turnstile, so neither readers nor
/// writers starve, and readers that come one after another are in together. A thread that reads
/// must therefore not ask to read once more: if a writer has come in between, both wait for ever.
/// Nothing is poisoned by a panic, and a guard that is forgotten stays inside.
///
/// Proved by exploring every schedule of up to five readers and writers: no writer is inside with
/// anyone else, nobody waits for ever, nobody is overtaken by one who came later.
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
/// What threads may not share they may not read together:
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
// allows; one that writes is alone with it by the protocol, so it moves between threads, which
// `T: Send` allows. The room is given and taken for each change between writing and reading, and
// readers count themselves in and out with a semaphore that orders them all, so whoever enters has
// seen what those before have done.
unsafe impl<T: ?Sized + Send + Sync> Sync for ReadersWriters<T> {}

/// The protocol as threads run it. They need no numbers: each says where it begins.
type Rules = Turnstile<0>;

const ANYONE: Process = Process { i: 0, n: 1 };

impl<T> ReadersWriters<T> {
    /// A value that nobody has reached yet.
    pub fn new(value: T) -> Self {
        Self { registers: Registers::new::<Rules>(1), value: UnsafeCell::new(value) }
    }

    /// The value, now that nobody can reach it any more.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> ReadersWriters<T> {
    /// Wait until nobody writes, and all who came before are in; then read.
    pub fn read(&self) -> ReadGuard<'_, T> {
        self.walk(At::Reader, Section::Inside);
        ReadGuard { of: self, lent: PhantomData }
    }

    /// Wait until nobody else is inside, and all who came before have been; then write.
    pub fn write(&self) -> WriteGuard<'_, T> {
        self.walk(At::Writer, Section::Inside);
        WriteGuard { of: self, lent: PhantomData }
    }

    /// The value: nobody else can reach it now.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Take steps until a section is reached.
    fn walk(&self, mut at: At, to: Section) {
        let mut memory = Atomics::<Patient>::new(&self.registers);
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

/// Whoever has it reads, perhaps with others, and leaves when it is dropped.
#[must_use = "nobody writes only as long as the guard lives"]
pub struct ReadGuard<'l, T: ?Sized> {
    of: &'l ReadersWriters<T>,
    /// A guard is as good as the reference that it lends.
    lent: PhantomData<&'l T>,
}

impl<T: ?Sized> Deref for ReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: guards to read are made inside only, where the protocol lets no writer be, and
        // the reference lives no longer than the guard.
        unsafe { &*self.of.value.get() }
    }
}

impl<T: ?Sized> Drop for ReadGuard<'_, T> {
    fn drop(&mut self) {
        self.of.walk(At::Read, Section::Outside);
    }
}

/// Whoever has it is alone inside, and leaves when it is dropped.
#[must_use = "others are kept out only as long as the guard lives"]
pub struct WriteGuard<'l, T: ?Sized> {
    of: &'l ReadersWriters<T>,
    /// A guard is as good as the reference that it lends.
    lent: PhantomData<&'l mut T>,
}

impl<T: ?Sized> Deref for WriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: guards to write are made inside only, where the protocol lets nobody else be, and
        // this one is borrowed for as long as the reference lives.
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
