//! Dijkstra's algorithm as the TLA+ examples specify it, label by label, for the search to count.
//!
//! Published: `specifications/dijkstra-mutex/DijkstraMutex.tla` of `tlaplus/Examples`.
//!
//! That specification reads the flags of the others in any order, keeps `temp` when it is no longer
//! needed, has steps that touch nothing shared, and begins with any turn: its states are many times
//! those of the algorithm in this crate.

use doorway_search::{ClientEvent, Model, Successors, Tag};

/// The specification for a number of processes, at most four.
pub(crate) struct DijkstraMutex {
    /// The number of processes.
    pub n: usize,
    /// Whether a process looks at the others before it enters, as it must.
    pub looks: bool,
}

/// The labels of the specification.
const LI0: u32 = 0;
const LI1: u32 = 1;
const LI2: u32 = 2;
const LI3A: u32 = 3;
const LI3B: u32 = 4;
const LI3C: u32 = 5;
const LI3D: u32 = 6;
const LI4A: u32 = 7;
const LI4B: u32 = 8;
const CS: u32 = 9;
const LI5: u32 = 10;
const LI6: u32 = 11;
const NCS: u32 = 12;

/// What `temp` is: nothing yet, a process, or a set of them, as bits.
const UNSET: u32 = 0;
const PROCESS: u32 = 1 << 4;
const SET: u32 = 1 << 5;
const FIELD: u32 = (1 << 4) - 1;

/// A process: its label, its `temp`, and its entries of `b` and `c`.
#[derive(Clone, Copy)]
struct Process {
    pc: u32,
    temp: u32,
    b: bool,
    c: bool,
}

impl Process {
    fn pack(self) -> u32 {
        self.pc | self.temp << 4 | u32::from(self.b) << 10 | u32::from(self.c) << 11
    }

    fn unpack(word: u32) -> Self {
        let bit = |nth: u32| word >> nth & 1 == 1;
        Self { pc: word & FIELD, temp: word >> 4 & 63, b: bit(10), c: bit(11) }
    }
}

impl DijkstraMutex {
    /// As it is published.
    pub(crate) fn new(n: usize) -> Self {
        assert!((2..=4).contains(&n), "a set of processes is four bits");
        Self { n, looks: true }
    }

    /// The successors in which process `i` has taken its step, `k` being the turn.
    fn step(&self, row: &[u32], i: usize, k: usize, mut next: impl FnMut(Process, usize)) {
        let me = Process::unpack(row[i]);
        let other = |j: usize| Process::unpack(row[j]);
        let everyone = (1 << self.n) - 1;
        let at = |pc| Process { pc, ..me };
        match me.pc {
            LI0 => next(Process { b: false, ..at(LI1) }, k),
            LI1 => next(at(if k == i { LI4A } else { LI2 }), k),
            LI2 => next(Process { c: true, ..at(LI3A) }, k),
            LI3A => next(Process { temp: PROCESS | k as u32, ..at(LI3B) }, k),
            LI3B => {
                let free = other((me.temp & FIELD) as usize).b;
                next(at(if free { LI3C } else { LI3D }), k);
            }
            LI3C => next(at(LI3D), i),
            LI3D => next(at(LI1), k),
            LI4A => {
                let others = if self.looks { everyone & !(1 << i) } else { 0 };
                next(Process { c: false, temp: SET | others, ..at(LI4B) }, k);
            }
            LI4B if me.temp & FIELD == 0 => next(at(CS), k),
            LI4B => {
                for j in (0..self.n).filter(|j| me.temp & 1 << j != 0) {
                    let pc = if other(j).c { LI4B } else { LI1 };
                    next(Process { temp: me.temp & !(1 << j), ..at(pc) }, k);
                }
            }
            CS => next(at(LI5), k),
            LI5 => next(Process { c: true, ..at(LI6) }, k),
            LI6 => next(Process { b: true, ..at(NCS) }, k),
            _ => next(at(LI0), k),
        }
    }
}

/// The turn before the beginning: the specification begins with any.
const ANY: u32 = u32::MAX;

impl Model for DijkstraMutex {
    /// The processes, and the turn.
    fn width(&self) -> usize {
        self.n + 1
    }

    fn first(&self) -> (Vec<u32>, u64) {
        let first = Process { pc: LI0, temp: UNSET, b: true, c: true };
        let mut row = vec![first.pack(); self.n];
        row.push(ANY);
        let print = print(&row);
        (row, print)
    }

    fn expand(&self, row: &[u32], _print: u64, out: &mut Successors) {
        let mut push = |i: usize, process: u32, k: u32| {
            let mut next = [0; 5];
            let next = &mut next[..row.len()];
            next.copy_from_slice(row);
            next[i] = process;
            next[self.n] = k;
            out.push(next, print(next), Tag::new(i, ClientEvent::None, 0));
        };
        if row[self.n] == ANY {
            (0..self.n as u32).for_each(|k| push(0, row[0], k));
            return;
        }
        let k = row[self.n] as usize;
        for i in 0..self.n {
            self.step(row, i, k, |process, k| push(i, process.pack(), k as u32));
        }
        let inside = row[..self.n].iter().filter(|word| Process::unpack(**word).pc == CS);
        if inside.count() > 1 {
            out.is_broken();
        }
    }
}

/// Every process is twelve bits, and so is, more than enough, the turn: together a number below
/// 2^60, which a product with an odd one tells apart from all others.
fn print(row: &[u32]) -> u64 {
    let packed = row.iter().fold(0, |packed, word| packed << 12 | u64::from(word & 0xfff));
    let mixed = (packed ^ packed >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}
