//! The cost of entering and leaving without contention, counted in accesses and not measured.

use std::vec::Vec;

use crate::{Algorithm, Memory, Place, Process, Register, Section, Word};

/// The accesses of a process that enters and leaves while all others stay outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SoloAccesses {
    /// Loads.
    pub reads: u32,
    /// Stores.
    pub writes: u32,
    /// Atomic accesses that read and write, including those to semaphores.
    pub exchanges: u32,
    /// Fences.
    pub fences: u32,
}

/// Count what the last of `n` processes does alone in its second round. What its first round
/// changes for good, such as a turn that stays with it, does not count.
///
/// # Panics
///
/// If the process has to wait: that would be a deadlock of a single process.
pub fn alone<A: Algorithm>(n: usize) -> SoloAccesses {
    let registers = |shared: &crate::RegisterArray| std::vec![shared.first; shared.length.of(n)];
    let mut memory = CountingMemory {
        registers: A::SHARED.iter().map(registers).collect(),
        counts: SoloAccesses::default(),
        waited: false,
    };
    let me = Process { i: n - 1, n };
    let at = round::<A>(A::outside(me), me, &mut memory);
    memory.counts = SoloAccesses::default();
    round::<A>(at, me, &mut memory);
    memory.counts
}

/// Go from outside to outside. A process may remember something there, so the place is returned.
fn round<A: Algorithm>(mut at: A::At, me: Process, memory: &mut CountingMemory) -> A::At {
    loop {
        at = A::step(at, me, memory);
        assert!(!memory.waited, "{} waits although it is alone", A::INFO.name);
        if at.section() == Section::Outside {
            return at;
        }
    }
}

/// A memory that one process has to itself, which counts accesses.
struct CountingMemory {
    registers: Vec<Vec<Word>>,
    counts: SoloAccesses,
    waited: bool,
}

impl CountingMemory {
    fn at(&mut self, register: Register) -> &mut Word {
        &mut self.registers[register.array][register.index]
    }

    fn exchange(&mut self, register: Register) -> &mut Word {
        self.counts.exchanges += 1;
        self.at(register)
    }
}

impl Memory for CountingMemory {
    fn read(&mut self, register: Register) -> Word {
        self.counts.reads += 1;
        *self.at(register)
    }

    fn write(&mut self, register: Register, word: Word) {
        self.counts.writes += 1;
        *self.at(register) = word;
    }

    fn fence(&mut self, _: char) {
        self.counts.fences += 1;
    }

    fn wait(&mut self) {
        self.waited = true;
    }

    fn swap(&mut self, register: Register, word: Word) -> Word {
        core::mem::replace(self.exchange(register), word)
    }

    fn add(&mut self, register: Register, change: isize) -> Word {
        let at = self.exchange(register);
        core::mem::replace(at, at.wrapping_add_signed(change))
    }

    fn replace(&mut self, register: Register, old: Word, new: Word) -> bool {
        let at = self.exchange(register);
        let found = *at == old;
        if found {
            *at = new;
        }
        found
    }

    fn down(&mut self, semaphore: Register) -> bool {
        let at = self.exchange(semaphore);
        let found = *at > 0;
        *at = at.saturating_sub(1);
        self.waited |= !found;
        found
    }

    fn up(&mut self, semaphore: Register) {
        *self.exchange(semaphore) += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::{
        clh::Clh, dijkstra::Dijkstra, peterson::Peterson, ttas::TestAndTestAndSet,
    };

    #[test]
    fn accesses_are_those_of_the_text() {
        let peterson = SoloAccesses { reads: 1, writes: 3, exchanges: 0, fences: 2 };
        assert_eq!(alone::<Peterson>(2), peterson);
        let exchange = SoloAccesses { reads: 0, writes: 1, exchanges: 1, fences: 0 };
        assert_eq!(alone::<TestAndTestAndSet>(4), exchange);
    }

    #[test]
    fn the_first_round_is_not_counted() {
        // In its first round the process takes the turn, which takes five accesses more.
        let dijkstra = SoloAccesses { reads: 3, writes: 4, exchanges: 0, fences: 1 };
        assert_eq!(alone::<Dijkstra>(3), dijkstra);
    }

    #[test]
    fn what_is_remembered_outside_is_kept() {
        // Outside, a process remembers which node is now its own; with its old one it would wait.
        let queue = SoloAccesses { reads: 1, writes: 2, exchanges: 1, fences: 0 };
        assert_eq!(alone::<Clh>(2), queue);
    }
}
