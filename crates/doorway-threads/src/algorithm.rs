//! What an algorithm is: places, registers, and one step function that locks and explorer share.

use crate::{Memory, Place, Shared};

/// Who takes a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number, from 0.
    pub i: usize,
    /// How many processes there are.
    pub n: usize,
}

impl Process {
    /// The other one of two.
    pub const fn other(self) -> usize {
        1 - self.i
    }

    /// The next process after `j`, around the end.
    pub const fn after(self, j: usize) -> usize {
        if j + 1 == self.n { 0 } else { j + 1 }
    }

    /// The process before `j`, around the end.
    pub const fn before(self, j: usize) -> usize {
        if j == 0 { self.n - 1 } else { j - 1 }
    }

    /// The first of the others from number `j` on.
    pub const fn others_from(self, j: usize) -> Option<usize> {
        let j = if j == self.i { j + 1 } else { j };
        if j < self.n { Some(j) } else { None }
    }
}

/// An algorithm of mutual exclusion in shared memory.
pub trait Algorithm: Send + Sync + 'static {
    /// Where a process may be.
    type At: Place;

    /// What it declares of itself.
    const INFO: Info;

    /// The registers.
    const SHARED: &'static [Shared];

    /// Where a process is in the beginning.
    fn outside(me: Process) -> Self::At;

    /// May all these be inside together? At most one, unless there are ways of being inside that
    /// do not disturb each other.
    fn together(inside: &[Self::At]) -> bool {
        inside.len() <= 1
    }

    /// Make the one access that comes next, and say where the process is then. Locks and explorer
    /// run this very function.
    fn step(at: Self::At, me: Process, memory: &mut impl Memory) -> Self::At;
}

/// An algorithm that keeps all but one outside: what a lock may be made of.
///
/// # Safety
///
/// No two processes are ever in places of [`Section::Inside`](crate::Section::Inside), whatever
/// their number up to [`Info::most`], if each access goes to memory as [`Memory`] describes it;
/// and whoever enters has read what the one before wrote when it left. Steps do not panic, or only
/// where the program may be ended for it.
#[allow(unsafe_code, reason = "a lock lends out what it protects on the strength of this")]
pub unsafe trait Exclusive: Algorithm {}

/// An algorithm in which a process that waits may give up at once.
///
/// # Safety
///
/// From where [`withdraw`](Withdraws::withdraw) leads, a process comes outside without ever being
/// inside, and others can tell no difference to one that was inside and has left.
#[allow(unsafe_code, reason = "a lock goes on from where this leads")]
pub unsafe trait Withdraws: Exclusive {
    /// Where a process goes on that gives up: a place from which it can only leave, or outside.
    /// It is asked only of places whose step said [`wait`](Memory::wait).
    fn withdraw(at: Self::At) -> Self::At;
}

/// What an algorithm needs of the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Primitive {
    /// Loads and stores of words.
    ReadWrite,
    /// An exchange that nothing comes between.
    Exchange,
    /// An addition that nothing comes between.
    Add,
    /// Semaphores that make a thread sleep.
    Semaphore,
}

impl Primitive {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadWrite => "read/write",
            Self::Exchange => "exchange",
            Self::Add => "add",
            Self::Semaphore => "semaphore",
        }
    }
}

/// How often one who waits may be overtaken: by all others together, and by any one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bypass {
    /// So often at most.
    AtMost {
        /// By all others together.
        all: u32,
        /// By any one of them.
        one: u32,
    },
    /// Without end.
    Unbounded,
}

/// From when on it counts that others enter first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// From the first access on.
    FirstStep,
    /// From the end of the doorway on.
    Doorway,
}

impl Since {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FirstStep => "first step",
            Self::Doorway => "doorway",
        }
    }
}

/// What is claimed of an algorithm, and tested.
#[derive(Clone, Copy, Debug)]
pub struct Claims {
    /// At most one is inside.
    pub exclusion: bool,
    /// If some want in, one gets in.
    pub deadlock_free: bool,
    /// Who wants in gets in, among so many processes.
    pub lockout_free: fn(usize) -> bool,
    /// Who has passed the doorway before another begins gets in before him, among so many.
    pub fifo: fn(usize) -> bool,
    /// How often one is overtaken, among so many processes.
    pub bypass: fn(usize) -> Bypass,
    /// Counted from then on.
    pub since: Since,
}

impl Claims {
    /// One gets in if some want in, and that is all.
    pub const DEADLOCK_FREE: Self = Self {
        exclusion: true,
        deadlock_free: true,
        lockout_free: |_| false,
        fifo: |_| false,
        bypass: |_| Bypass::Unbounded,
        since: Since::FirstStep,
    };
    /// Everyone gets in who wants in, some day.
    pub const LOCKOUT_FREE: Self = Self { lockout_free: |_| true, ..Self::DEADLOCK_FREE };
    /// Everyone gets in in the order in which they ask.
    pub const FIFO: Self = Self {
        fifo: |_| true,
        bypass: |n| Bypass::AtMost { all: n as u32 - 1, one: 1 },
        ..Self::LOCKOUT_FREE
    };
}

/// What an algorithm declares of itself.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// The name by which it is asked for.
    pub name: &'static str,
    /// Its authors and the year of publication; [`Info::year`] reads the year from here.
    pub origin: &'static str,
    /// The fewest processes.
    pub fewest: usize,
    /// The most processes.
    pub most: usize,
    /// Its registers in words.
    pub registers: &'static str,
    /// What it needs of the processor.
    pub primitive: Primitive,
    /// The letters of its fences. Each of them is needed by the memory model of the language.
    pub fences: &'static str,
    /// Those of its fences that are not needed where writes merely wait in a buffer and keep their
    /// order (total store order, as on x86). Each of the others is needed there too.
    pub fences_beyond_tso: &'static str,
    /// Its numbers grow: a check goes no further than this, or around the end of a byte.
    pub bound: Option<usize>,
    /// What is claimed of it.
    pub claims: Claims,
}

impl Info {
    /// What most of the locks have in common, for `..Info::LOCK`: at least two and up to [`MOST`]
    /// processes, loads and stores only, no fences, no growing numbers. Every algorithm states its
    /// own name, origin, registers and claims.
    pub const LOCK: Self = Self {
        name: "",
        origin: "",
        fewest: 2,
        most: MOST,
        registers: "",
        primitive: Primitive::ReadWrite,
        fences: "",
        fences_beyond_tso: "",
        bound: None,
        claims: Claims::DEADLOCK_FREE,
    };

    /// The year of publication: the first number of four digits in [`Info::origin`].
    pub fn year(&self) -> Option<u16> {
        let mut numbers = self.origin.split(|letter: char| !letter.is_ascii_digit());
        numbers.find(|digits| digits.len() == 4)?.parse().ok()
    }

    /// Whether the algorithm serves `n` processes.
    pub const fn serves(&self, n: usize) -> bool {
        self.fewest <= n && n <= self.most
    }
}

/// More processes than this would each pay for the others in every entry.
pub const MOST: usize = 1024;
