//! The registers of a lock: atomics, each in a cache line of its own.

use alloc::boxed::Box;
#[cfg(not(feature = "std"))]
use core::sync::atomic::Ordering;
use core::sync::atomic::{AtomicUsize, fence};

use crate::{Algorithm, Memory, Register, RegisterArray, Relax, Word};

/// The memory ordering of every access. The tests on other memories use them too.
#[doc(hidden)]
pub mod orderings {
    use core::sync::atomic::Ordering;

    pub const READ: Ordering = Ordering::Acquire;
    pub const WRITE: Ordering = Ordering::Release;
    pub const EXCHANGE: Ordering = Ordering::AcqRel;
    pub const FENCE: Ordering = Ordering::SeqCst;
}

/// A value on cache lines of its own: two of them, since processors fetch them in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Line<T>(pub(crate) T);

/// All registers of one lock.
#[derive(Debug)]
pub(crate) struct Registers {
    lines: Box<[Line<AtomicUsize>]>,
    /// The number of declarations. Each index has a register for each of them, used or not, so that
    /// the position of a register does not depend on the number of processes.
    arrays: usize,
}

impl Registers {
    /// The registers of an algorithm for `n` processes, with their first values.
    pub(crate) fn new<A: Algorithm>(n: usize) -> Self {
        Self::declared(A::SHARED, n)
    }

    /// The registers that are declared, for `n` processes, with their first values.
    pub(crate) fn declared(shared: &[RegisterArray], n: usize) -> Self {
        let arrays = shared.len();
        let longest = shared.iter().map(|shared| shared.length.of(n)).max().unwrap_or(0);
        let firsts = shared.iter().map(|shared| shared.first).cycle();
        let lines = firsts.take(longest * arrays).map(|first| Line(AtomicUsize::new(first)));
        Self { lines: lines.collect(), arrays }
    }

    /// Give all registers their first values again.
    pub(crate) fn reset<A: Algorithm>(&mut self) {
        for (line, shared) in self.lines.iter_mut().zip(A::SHARED.iter().cycle()) {
            *line.0.get_mut() = shared.first;
        }
    }

    /// Take a unit from a semaphore if there is one.
    #[cfg(feature = "std")]
    pub(crate) fn try_down(&self, semaphore: Register) -> bool {
        crate::semaphore::take(self.at(semaphore))
    }

    #[inline]
    fn at(&self, register: Register) -> &AtomicUsize {
        &self.lines[register.index * self.arrays + register.array].0
    }
}

/// The registers as one thread uses them.
#[derive(Debug)]
pub(crate) struct Atomics<'r, R> {
    pub(crate) registers: &'r Registers,
    pub(crate) relax: R,
    /// Whether the last step waited.
    pub(crate) waited: bool,
}

impl<'r, R: Relax> Atomics<'r, R> {
    #[inline]
    pub(crate) fn new(registers: &'r Registers) -> Self {
        Self { registers, relax: R::default(), waited: false }
    }
}

impl<R: Relax> Memory for Atomics<'_, R> {
    #[inline]
    fn read(&mut self, register: Register) -> Word {
        self.registers.at(register).load(orderings::READ)
    }

    #[inline]
    fn write(&mut self, register: Register, word: Word) {
        self.registers.at(register).store(word, orderings::WRITE);
    }

    #[inline]
    fn fence(&mut self, _name: char) {
        fence(orderings::FENCE);
    }

    #[inline]
    fn wait(&mut self) {
        self.waited = true;
        self.relax.relax();
    }

    #[cfg(target_has_atomic = "ptr")]
    #[inline]
    fn swap(&mut self, register: Register, word: Word) -> Word {
        self.registers.at(register).swap(word, orderings::EXCHANGE)
    }

    #[cfg(target_has_atomic = "ptr")]
    #[inline]
    fn add(&mut self, register: Register, change: isize) -> Word {
        self.registers.at(register).fetch_add(change.cast_unsigned(), orderings::EXCHANGE)
    }

    #[cfg(target_has_atomic = "ptr")]
    #[inline]
    fn replace(&mut self, register: Register, old: Word, new: Word) -> bool {
        let register = self.registers.at(register);
        register.compare_exchange(old, new, orderings::EXCHANGE, orderings::READ).is_ok()
    }

    #[cfg(target_has_atomic = "ptr")]
    fn down(&mut self, semaphore: Register) -> bool {
        let units = self.registers.at(semaphore);
        #[cfg(feature = "std")]
        crate::semaphore::down(units);
        // Without threads that can sleep, the unit goes to the process that comes first.
        #[cfg(not(feature = "std"))]
        if units.fetch_update(Ordering::Acquire, Ordering::Relaxed, |n| n.checked_sub(1)).is_err() {
            self.wait();
            return false;
        }
        true
    }

    #[cfg(target_has_atomic = "ptr")]
    fn up(&mut self, semaphore: Register) {
        let units = self.registers.at(semaphore);
        #[cfg(feature = "std")]
        crate::semaphore::up(units);
        #[cfg(not(feature = "std"))]
        units.fetch_add(1, Ordering::Release);
    }
}
