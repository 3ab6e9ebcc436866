//! An algorithm on the atomics of the tool that a test uses: `super::tool` is the standard library
//! or a replacement of it.

use super::tool::sync::atomic::{AtomicUsize, fence};
use super::tool::thread::yield_now;
use doorway_threads::{Algorithm, Memory, Place, Process, Register, Section, Word, orderings};

/// A register on cache lines of its own, as in a lock.
#[repr(align(128))]
struct Line(AtomicUsize);

/// The registers of one lock.
pub(crate) struct Registers {
    words: Vec<Line>,
    /// Where each declaration's registers begin.
    begins: Vec<usize>,
}

impl Registers {
    pub(crate) fn new<A: Algorithm>(n: usize) -> Self {
        let (mut words, mut begins) = (Vec::new(), Vec::new());
        for shared in A::SHARED {
            begins.push(words.len());
            words.extend((0..shared.length.of(n)).map(|_| Line(AtomicUsize::new(shared.first))));
        }
        Self { words, begins }
    }
}

/// A process that enters and leaves.
pub(crate) struct Visitor<'r, A: Algorithm> {
    me: Process,
    at: A::At,
    /// The number of steps that it will still take.
    steps: usize,
    memory: Atomics<'r>,
}

impl<'r, A: Algorithm> Visitor<'r, A> {
    /// A process that leaves out these fences, and stops after this number of steps. Other
    /// processes cannot tell that from being slow, so exclusion must hold then too.
    pub(crate) fn new(
        me: Process,
        registers: &'r Registers,
        dropped: &'r str,
        steps: usize,
    ) -> Self {
        Self { me, at: A::outside(me), steps, memory: Atomics { registers, dropped } }
    }

    /// Enter, do something, and leave. Returns whether there were enough steps.
    pub(crate) fn visit(&mut self, inside: impl FnOnce()) -> bool {
        if !self.walk(Section::Inside) {
            return false;
        }
        inside();
        self.walk(Section::Outside)
    }

    fn walk(&mut self, to: Section) -> bool {
        while self.at.section() != to && self.steps > 0 {
            self.steps -= 1;
            self.at = A::step(self.at, self.me, &mut self.memory);
        }
        self.at.section() == to
    }
}

/// The registers as one process uses them.
struct Atomics<'r> {
    registers: &'r Registers,
    dropped: &'r str,
}

impl<'r> Atomics<'r> {
    fn at(&self, register: Register) -> &'r AtomicUsize {
        &self.registers.words[self.registers.begins[register.array] + register.index].0
    }
}

impl Memory for Atomics<'_> {
    fn read(&mut self, register: Register) -> Word {
        self.at(register).load(orderings::READ)
    }

    fn write(&mut self, register: Register, word: Word) {
        self.at(register).store(word, orderings::WRITE);
    }

    fn fence(&mut self, name: char) {
        if !self.dropped.contains(name) {
            fence(orderings::FENCE);
        }
    }

    fn wait(&mut self) {
        yield_now();
    }

    /// If an exchange would not change the word, only read it. Loom may order what such an exchange
    /// writes after a store that in truth came later, and then let two processes in where no memory
    /// would. A process that only reads sees no less than one that exchanges, and hides no
    /// violation.
    fn swap(&mut self, register: Register, word: Word) -> Word {
        loop {
            let found = self.read(register);
            if found == word || self.replace(register, found, word) {
                return found;
            }
        }
    }

    fn add(&mut self, register: Register, change: isize) -> Word {
        self.at(register).fetch_add(change.cast_unsigned(), orderings::EXCHANGE)
    }

    fn replace(&mut self, register: Register, old: Word, new: Word) -> bool {
        let register = self.at(register);
        register.compare_exchange(old, new, orderings::EXCHANGE, orderings::READ).is_ok()
    }

    /// No process sleeps here: one that finds no unit asks again with its next step.
    fn down(&mut self, semaphore: Register) -> bool {
        let units = self.read(semaphore);
        let taken = units > 0 && self.replace(semaphore, units, units - 1);
        if !taken {
            self.wait();
        }
        taken
    }

    fn up(&mut self, semaphore: Register) {
        self.at(semaphore).fetch_add(1, orderings::EXCHANGE);
    }
}
