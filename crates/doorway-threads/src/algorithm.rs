//! What an algorithm is: places, registers, and one step function that locks and explorer share.

use crate::{Memory, Place, RegisterArray};

/// The process that takes a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// The number of the process, from 0.
    pub i: usize,
    /// The number of processes.
    pub n: usize,
}

impl Process {
    /// The number of the other process, if there are two.
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

    /// The first other process with a number of at least `j`.
    pub const fn others_from(self, j: usize) -> Option<usize> {
        let j = if j == self.i { j + 1 } else { j };
        if j < self.n { Some(j) } else { None }
    }
}

/// An algorithm for mutual exclusion in shared memory.
pub trait Algorithm: Send + Sync + 'static {
    /// The places where a process may be.
    type At: Place;

    /// What the algorithm declares.
    const INFO: Info;

    /// The registers that the processes share.
    const SHARED: &'static [RegisterArray];

    /// The place where a process begins.
    fn outside(me: Process) -> Self::At;

    /// Whether processes at all these places may be inside together. By default at most one may;
    /// readers of a shared value, for example, may be inside together.
    fn together(inside: &[Self::At]) -> bool {
        inside.len() <= 1
    }

    /// Take one step: make the next access to memory, and return the place where the process is
    /// then. The locks and the explorer run this same function.
    fn step(at: Self::At, me: Process, memory: &mut impl Memory) -> Self::At;
}

/// An algorithm that lets at most one process in, so that a lock can be made of it.
///
/// # Safety
///
/// For any number of processes up to [`Info::most`], no two are ever at places of
/// [`Section::Inside`](crate::Section::Inside) if each access goes to memory as [`Memory`]
/// describes it. A process that enters has read what the process before it wrote when it left.
/// Steps do not panic, except where ending the program is acceptable.
#[allow(unsafe_code, reason = "a lock relies on this when it lends out its value")]
pub unsafe trait Exclusive: Algorithm {}

/// An algorithm in which a waiting process may give up at once, as `try_lock` needs it.
///
/// # Safety
///
/// From the place that [`withdraw`](Withdraws::withdraw) returns, a process gets outside without
/// ever being inside, and other processes cannot tell it from one that was inside and has left.
#[allow(unsafe_code, reason = "a lock goes on from where this leads")]
pub unsafe trait Withdraws: Exclusive {
    /// The place where a process that gives up goes on: one from which it can only leave, or
    /// outside. This is called only at places whose step has called [`wait`](Memory::wait).
    fn withdraw(at: Self::At) -> Self::At;
}

/// What an algorithm needs from the processor or the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Primitive {
    /// Loads and stores of words.
    ReadWrite,
    /// Atomic exchange, or compare-and-exchange.
    Exchange,
    /// Atomic addition.
    Add,
    /// Semaphores that make a thread sleep.
    Semaphore,
}

impl Primitive {
    /// The name, as printed in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadWrite => "read/write",
            Self::Exchange => "exchange",
            Self::Add => "add",
            Self::Semaphore => "semaphore",
        }
    }
}

/// How often a waiting process may be overtaken: by all others together, and by any single one of
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bypass {
    /// At most this often.
    AtMost {
        /// By all others together.
        all: u32,
        /// By any single one of them.
        one: u32,
    },
    /// There is no bound.
    Unbounded,
}

/// From when on entries of others count as overtaking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// From the first access of the waiting process on.
    FirstStep,
    /// From the end of its doorway on.
    Doorway,
}

impl Since {
    /// The name, as printed in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FirstStep => "first step",
            Self::Doorway => "doorway",
        }
    }
}

/// What is claimed of an algorithm. The tests check that exactly this holds.
#[derive(Clone, Copy, Debug)]
pub struct Claims {
    /// At most one process is inside.
    pub exclusion: bool,
    /// If some processes want in, one of them gets in.
    pub deadlock_free: bool,
    /// Whether each process that wants in gets in, for this number of processes.
    pub lockout_free: fn(usize) -> bool,
    /// Whether a process that has passed the doorway before another begins gets in before that
    /// other one, for this number of processes.
    pub fifo: fn(usize) -> bool,
    /// How often a waiting process is overtaken, for this number of processes.
    pub bypass: fn(usize) -> Bypass,
    /// From when on overtaking is counted.
    pub since: Since,
}

impl Claims {
    /// One process gets in if some want in, and nothing more.
    pub const DEADLOCK_FREE: Self = Self {
        exclusion: true,
        deadlock_free: true,
        lockout_free: |_| false,
        fifo: |_| false,
        bypass: |_| Bypass::Unbounded,
        since: Since::FirstStep,
    };
    /// Each process that wants in gets in at some time.
    pub const LOCKOUT_FREE: Self = Self { lockout_free: |_| true, ..Self::DEADLOCK_FREE };
    /// The processes get in in the order in which they ask.
    pub const FIFO: Self = Self {
        fifo: |_| true,
        bypass: |n| Bypass::AtMost { all: n as u32 - 1, one: 1 },
        ..Self::LOCKOUT_FREE
    };
}

/// What an algorithm declares of itself.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// The name that the commands take.
    pub name: &'static str,
    /// The authors of the algorithm and the year of publication; [`Info::year`] reads the year from
    /// here.
    pub origin: &'static str,
    /// The least number of processes that it serves.
    pub fewest: usize,
    /// The greatest number of processes that it serves.
    pub most: usize,
    /// The registers of the algorithm, in words for a table.
    pub registers: &'static str,
    /// What it needs from the processor or the operating system.
    pub primitive: Primitive,
    /// The letters of its fences. Each of them is needed by the memory model of the language.
    pub fences: &'static str,
    /// The letters of the fences that are not needed where writes merely wait in a buffer and keep
    /// their order (total store order, as on x86). Each of the others is needed there too.
    pub fences_beyond_tso: &'static str,
    /// If its numbers grow without end: the greatest number up to which a check follows them.
    /// Without a bound they wrap around as bytes do.
    pub bound: Option<usize>,
    /// What is claimed of the algorithm.
    pub claims: Claims,
    /// If the algorithm is refuted: the least number of processes for which it breaks a claim.
    pub refuted_from: Option<usize>,
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
        refuted_from: None,
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

/// The most processes that any algorithm here serves. In most of them the cost of an entry grows
/// with the number of processes.
pub const MOST: usize = 1024;
