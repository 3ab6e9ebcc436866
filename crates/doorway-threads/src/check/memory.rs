//! The memory of the explorer: a row of bytes with the registers and the place of every process.

use std::format;
use std::string::String;
use std::vec::Vec;

use super::Rules;
use super::program::Program;
use super::schedule::REACHES_MEMORY;
use crate::place::{byte, word};
use crate::{Length, Memory, Primitive, Process, Register, RegisterArray, Word};

/// The most writes of a process in its store buffer.
pub(super) const BUFFERED: usize = 4;
/// The bytes of a buffered write: the register, from 1, and the value.
const WRITE: usize = 2;

/// Where everything is in a row.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) n: usize,
    shared: &'static [RegisterArray],
    /// The bytes of a place.
    place: usize,
    /// Where each array begins.
    arrays: Vec<usize>,
    /// Where the row says for each process at which semaphore it sleeps, if there are semaphores.
    asleep: usize,
    /// Where the sleeping processes are listed, counted from 1, in the order in which they fell
    /// asleep, if the order matters.
    queue: usize,
    /// Where the store buffers are, if there are any.
    buffers: usize,
    bytes: usize,
}

/// Marks a sleeping process that has been given a unit.
const GIVEN: u8 = u8::MAX;

impl Layout {
    pub(super) fn new(program: &Program, n: usize, rules: &Rules) -> Self {
        let place = 1 + program.words;
        let mut bytes = n * place;
        let mut arrays = Vec::new();
        for shared in program.shared {
            arrays.push(bytes);
            bytes += shared.length.of(n);
        }
        let asleep = bytes;
        let queue = asleep + if program.info.primitive == Primitive::Semaphore { n } else { 0 };
        let buffers = queue + if rules.queued { n } else { 0 };
        let bytes = buffers + if rules.buffers { n * BUFFERED * WRITE } else { 0 };
        Self { n, shared: program.shared, place, arrays, asleep, queue, buffers, bytes }
    }

    /// Whether the state fits into a row.
    pub(super) fn fits(&self) -> bool {
        self.bytes <= BYTES
    }

    /// The number of words of a row.
    pub(super) fn width(&self) -> usize {
        self.bytes.div_ceil(4)
    }

    pub(super) fn first(&self, program: &Program) -> Row {
        let mut row = Row::default();
        for (shared, begin) in self.shared.iter().zip(&self.arrays) {
            row.0[*begin..begin + shared.length.of(self.n)].fill(byte(shared.first));
        }
        for i in 0..self.n {
            let me = Process { i, n: self.n };
            self.put(&mut row, i, (program.outside)(me));
        }
        row
    }

    /// The place of a process, in the form of [`Place::pack`](crate::Place::pack).
    pub(super) fn at(&self, row: &Row, i: usize) -> u64 {
        let mut number = [0; 8];
        number[..self.place].copy_from_slice(&row.0[i * self.place..][..self.place]);
        u64::from_le_bytes(number)
    }

    pub(super) fn put(&self, row: &mut Row, i: usize, at: u64) {
        let number = at.to_le_bytes();
        row.0[i * self.place..][..self.place].copy_from_slice(&number[..self.place]);
    }

    fn register(&self, register: Register) -> usize {
        debug_assert!(register.index < self.shared[register.array].length.of(self.n));
        self.arrays[register.array] + register.index
    }

    /// The code of a register in a byte, from 1.
    fn code(&self, register: Register) -> u8 {
        (self.register(register) - self.arrays[0] + 1) as u8
    }

    fn name(&self, register: Register) -> String {
        let shared = self.shared[register.array];
        match shared.length {
            Length::One => shared.name.into(),
            _ => format!("{}[{}]", shared.name, register.index),
        }
    }

    /// Every register with its value in memory. Writes that wait in a buffer are not in memory yet.
    pub(super) fn registers(&self, row: &Row) -> Vec<(String, Word)> {
        let each = |(array, shared): (usize, &RegisterArray)| {
            let registers =
                (0..shared.length.of(self.n)).map(move |index| Register { array, index });
            let value = |register| (self.name(register), word(row.0[self.register(register)]));
            registers.map(value).collect::<Vec<_>>()
        };
        self.shared.iter().enumerate().flat_map(each).collect()
    }

    /// The writes of a process that wait in its store buffer, the oldest first. There are none
    /// if the rules have no buffers.
    pub(super) fn waiting_writes(&self, row: &Row, i: usize) -> Vec<(String, Word)> {
        let begin = self.buffers + i * BUFFERED * WRITE;
        let end = (begin + BUFFERED * WRITE).min(self.bytes);
        let writes = row.0.get(begin..end).unwrap_or_default().chunks_exact(WRITE);
        let waiting = writes.take_while(|write| write[0] != 0);
        let register = |code: u8| self.register_at(self.arrays[0] + usize::from(code) - 1);
        waiting.map(|write| (self.name(register(write[0])), word(write[1]))).collect()
    }

    /// The register at a byte.
    fn register_at(&self, byte: usize) -> Register {
        let array = self.arrays.iter().rposition(|begin| *begin <= byte).expect("a register");
        Register { array, index: byte - self.arrays[array] }
    }
}

/// The most bytes of a row.
const BYTES: usize = 4 * WORDS;
pub(super) const WORDS: usize = 48;

/// A state: the places of all processes, and the memory.
#[derive(Clone, Copy)]
pub(super) struct Row(pub(super) [u8; BYTES]);

impl Default for Row {
    fn default() -> Self {
        Self([0; BYTES])
    }
}

/// Why a step cannot be taken, or is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The step cannot be taken before another process moves.
    Blocked,
    /// A number grows beyond the bound.
    Beyond,
}

/// The memory as one process sees it during one step.
pub(super) struct ModelMemory<'a> {
    pub(super) layout: &'a Layout,
    pub(super) rules: &'a Rules,
    pub(super) row: &'a mut Row,
    pub(super) i: usize,
    /// Which of the sleeping processes gets the unit that the step gives.
    pub(super) heir: usize,
    /// The number of sleeping processes to choose from.
    pub(super) heirs: usize,
    /// Whether the step only waited.
    pub(super) waited: bool,
    pub(super) stop: Option<Stop>,
    /// What was done, in words, if that was asked for.
    pub(super) log: Option<String>,
}

impl ModelMemory<'_> {
    fn note(&mut self, what: impl FnOnce(&Layout) -> String) {
        let layout = self.layout;
        if let Some(log) = &mut self.log {
            if !log.is_empty() {
                log.push_str(", ");
            }
            log.push_str(&what(layout));
        }
    }

    fn buffer(&self, i: usize) -> usize {
        self.layout.buffers + i * BUFFERED * WRITE
    }

    /// The number of writes in the buffer of the process.
    fn buffered(&self) -> usize {
        let begin = self.buffer(self.i);
        (0..BUFFERED).take_while(|nth| self.row.0[begin + nth * WRITE] != 0).count()
    }

    /// The newest buffered write of the process to a register, if there is one.
    fn on_its_way(&self, register: Register) -> Option<usize> {
        if !self.rules.buffers {
            return None;
        }
        let (begin, code) = (self.buffer(self.i), self.layout.code(register));
        let writes = (0..self.buffered()).rev().map(|nth| begin + nth * WRITE);
        writes.filter(|write| self.row.0[*write] == code).map(|write| write + 1).next()
    }

    /// Let the oldest buffered write reach the memory, if there is one.
    pub(super) fn flush(&mut self) -> bool {
        if !self.rules.buffers {
            return false;
        }
        let begin = self.buffer(self.i);
        let end = begin + BUFFERED * WRITE;
        let (register, what) = (self.row.0[begin], self.row.0[begin + 1]);
        if register == 0 {
            return false;
        }
        let at = self.layout.arrays[0] + usize::from(register) - 1;
        self.note(|layout| {
            let name = layout.name(layout.register_at(at));
            format!("{name} := {}{REACHES_MEMORY}", shown(what))
        });
        self.row.0[at] = what;
        self.row.0.copy_within(begin + WRITE..end, begin);
        self.row.0[end - WRITE..end].fill(0);
        true
    }

    fn drain(&mut self) {
        let log = self.log.take();
        while self.flush() {}
        self.log = log;
    }

    /// Write a byte to memory at once, and return what was there before.
    fn exchange(&mut self, register: Register, new: impl FnOnce(u8) -> u8) -> u8 {
        self.drain();
        let at = self.layout.register(register);
        let old = self.row.0[at];
        let new = new(old);
        self.limit(new);
        self.row.0[at] = new;
        old
    }

    fn limit(&mut self, new: u8) {
        if self.rules.bound.is_some_and(|bound| word(new) > bound && new != u8::MAX) {
            self.stop = Some(Stop::Beyond);
        }
    }

    /// Fall asleep, as the last of the sleeping processes.
    fn sleep(&mut self, semaphore: Register) {
        self.row.0[self.layout.asleep + self.i] = self.layout.code(semaphore);
        let queue = &mut self.row.0[self.layout.queue..self.layout.buffers];
        if let Some(end) = queue.iter_mut().find(|place| **place == 0) {
            *end = self.i as u8 + 1;
        }
    }

    /// Choose the process that gets a unit of a semaphore among those that sleep there, if any
    /// does.
    fn choose(&mut self, semaphore: Register) -> Option<usize> {
        if self.rules.barging {
            return None;
        }
        if !self.rules.queued {
            self.heirs = self.sleepers(semaphore).count();
            return self.sleepers(semaphore).nth(self.heir);
        }
        let code = self.layout.code(semaphore);
        let (before, rest) = self.row.0.split_at_mut(self.layout.queue);
        let queue = &mut rest[..self.layout.n];
        let sleeps_here = |place: &u8| {
            *place != 0 && before[self.layout.asleep + usize::from(*place) - 1] == code
        };
        let first = queue.iter().position(sleeps_here)?;
        let heir = usize::from(queue[first]) - 1;
        queue[first] = 0;
        queue[first..].rotate_left(1);
        Some(heir)
    }

    /// The processes that sleep at a semaphore and have not been given a unit.
    fn sleepers(&self, semaphore: Register) -> impl Iterator<Item = usize> + Clone {
        let asleep = &self.row.0[self.layout.asleep..][..self.layout.n];
        let code = self.layout.code(semaphore);
        asleep.iter().enumerate().filter(move |(_, at)| **at == code).map(|(i, _)| i)
    }
}

impl Memory for ModelMemory<'_> {
    fn read(&mut self, register: Register) -> Word {
        let at = self.layout.register(register);
        let found = self.row.0[self.on_its_way(register).unwrap_or(at)];
        self.note(|layout| format!("reads {} = {}", layout.name(register), shown(found)));
        word(found)
    }

    fn write(&mut self, register: Register, word: Word) {
        let (at, new) = (self.layout.register(register), byte(word));
        self.note(|layout| format!("{} := {}", layout.name(register), shown(new)));
        self.limit(new);
        if !self.rules.buffers {
            self.row.0[at] = new;
            return;
        }
        let nth = self.buffered();
        if nth == BUFFERED {
            self.stop = Some(Stop::Blocked);
            return;
        }
        let write = self.buffer(self.i) + nth * WRITE;
        self.row.0[write] = self.layout.code(register);
        self.row.0[write + 1] = new;
    }

    fn fence(&mut self, name: char) {
        if !self.rules.dropped.contains(name) {
            self.note(|_| format!("fence {name}"));
            self.drain();
        }
    }

    fn wait(&mut self) {
        self.waited = true;
    }

    fn swap(&mut self, register: Register, word: Word) -> Word {
        let old = self.exchange(register, |_| byte(word));
        self.note(|layout| {
            format!("swaps {} for {}: was {}", layout.name(register), shown(byte(word)), shown(old))
        });
        crate::place::word(old)
    }

    fn add(&mut self, register: Register, change: isize) -> Word {
        let old = self.exchange(register, |old| old.wrapping_add_signed(change as i8));
        self.note(|layout| {
            format!("adds {change} to {}: was {}", layout.name(register), shown(old))
        });
        word(old)
    }

    fn replace(&mut self, register: Register, old: Word, new: Word) -> bool {
        let found =
            self.exchange(register, |found| if word(found) == old { byte(new) } else { found });
        let done = word(found) == old;
        self.note(|layout| {
            let outcome = if done { "does" } else { "does not" };
            let (name, old, new) = (layout.name(register), shown(byte(old)), shown(byte(new)));
            format!("{outcome} replace {name} = {old} by {new}")
        });
        done
    }

    fn down(&mut self, semaphore: Register) -> bool {
        let (at, me) = (self.layout.register(semaphore), self.layout.asleep + self.i);
        self.drain();
        match (self.row.0[me], self.row.0[at]) {
            (GIVEN, _) => self.row.0[me] = 0,
            (asleep, 1..) if asleep == 0 || self.rules.barging => {
                self.row.0[me] = 0;
                self.row.0[at] -= 1;
            }
            (0, _) => {
                self.sleep(semaphore);
                self.note(|layout| format!("sleeps at {}", layout.name(semaphore)));
                return false;
            }
            _ => {
                self.stop = Some(Stop::Blocked);
                return false;
            }
        }
        self.note(|layout| format!("takes {}", layout.name(semaphore)));
        true
    }

    fn up(&mut self, semaphore: Register) {
        let at = self.layout.register(semaphore);
        self.drain();
        self.note(|layout| format!("gives {}", layout.name(semaphore)));
        match self.choose(semaphore) {
            None => self.row.0[at] += 1,
            Some(heir) => {
                self.row.0[self.layout.asleep + heir] = GIVEN;
                self.note(|_| format!("P{heir} has it"));
            }
        }
    }
}

/// The word that a byte stands for, as text.
fn shown(byte: u8) -> String {
    match byte {
        u8::MAX => "none".into(),
        byte => format!("{byte}"),
    }
}
