//! Peterson, "Myths about the Mutual Exclusion Problem", Information Processing Letters 12(3),
//! 1981: the algorithm for two, played by n processes in a tree.
//!
//! Each process starts at a leaf, and at every node on its way to the root it plays Peterson's
//! algorithm against the process that comes up on the other side. The winner at the root is inside.
//! The nodes are numbered as in a heap: the parent of `c` is `c / 2`, the root is 1, and the leaf
//! of process `i` is `n + i`, so that n need not be a power of two.
//!
//! # What holds
//!
//! Proved by exploring every schedule of up to four processes: exclusion, no deadlock, no lockout,
//! and for two processes, where it is Peterson's own algorithm, at most one overtaking and first
//! come, first served. Does not hold for three or more: a bound on overtaking, because a process
//! that has not won its first node yet can be passed again and again from the other half.
//!
//! Fence `a`, between the two writes, is not needed on x86, whose store buffers keep writes in
//! order. The memory model of the language needs it.
//!
//! # For any number of processes
//!
//! Exclusion holds for any number of processes. Only a process that has won a node, and has not
//! left yet, plays at its parent: so at each node there is at most one process on either side, as
//! Peterson's algorithm requires.

use super::prelude::*;

shared! {
    /// 1 while a process at this node wants to go on to the parent. The root has none.
    FLAG: flag[2 * n] = 0;
    /// Which child of each inner node goes first if both do: 0 the left one, 1 the right one.
    TURN: turn[n] = 0;
}

places! {
    outside: Outside;
    doorway: GiveFirst;
    waiting: Look { c }, AskTurn { c }, Raise { c }, GiveTurn { c };
    inside: Inside;
    leaving: Lower { c };
}

/// Peterson's algorithm as a tree.
///
/// ```
/// # use doorway_threads::{Room, algorithms::peterson_tree::PetersonTree};
/// let mut room: Room<PetersonTree, u32> = Room::new(5, 0)?;
/// std::thread::scope(|scope| {
///     for mut seat in room.seats() {
///         scope.spawn(move || (0..100).for_each(|_| *seat.lock() += 1));
///     }
/// });
/// assert_eq!(room.into_inner(), 500);
/// # Ok::<(), doorway_threads::RoomError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum PetersonTree {}

impl Algorithm for PetersonTree {
    type At = At;

    const INFO: Info = Info {
        name: "peterson-tree",
        origin: "Peterson 1981, as a tree",
        registers: "2 bits and 1 shared bit a node",
        fences: "ab",
        fences_beyond_tso: "a",
        claims: Claims { fifo: |n| n == 2, bypass, ..Claims::LOCKOUT_FREE },
        ..Info::LOCK
    };
    const SHARED: &'static [RegisterArray] = SHARED;

    fn outside(_: Process) -> At {
        At::Outside
    }

    #[inline]
    fn step(at: At, me: Process, memory: &mut impl Memory) -> At {
        match at {
            At::Outside => {
                raise(leaf(me), memory);
                At::GiveFirst
            }
            At::GiveFirst => give_turn(leaf(me), memory),
            At::Look { c } if memory.read(FLAG.of(sibling(c))) == 0 => rise(c),
            At::Look { c } => At::AskTurn { c },
            At::AskTurn { c } if memory.read(TURN.of(c / 2)) == c % 2 => rise(c),
            At::AskTurn { c } => {
                memory.wait();
                At::Look { c }
            }
            At::Raise { c } => {
                raise(c, memory);
                At::GiveTurn { c }
            }
            At::GiveTurn { c } => give_turn(c, memory),
            At::Inside => lower(below(ROOT, me), me, memory),
            At::Lower { c } => lower(c, me, memory),
        }
    }
}

const ROOT: Word = 1;

const fn leaf(me: Process) -> Word {
    me.n + me.i
}

const fn sibling(c: Word) -> Word {
    c ^ 1
}

/// The child of `c` through which the process came up.
const fn below(c: Word, me: Process) -> Word {
    leaf(me) >> (leaf(me).ilog2() - c.ilog2() - 1)
}

fn raise(c: Word, memory: &mut impl Memory) {
    memory.write(FLAG.of(c), 1);
    memory.fence('a');
}

fn give_turn(c: Word, memory: &mut impl Memory) -> At {
    memory.write(TURN.of(c / 2), sibling(c) % 2);
    memory.fence('b');
    At::Look { c }
}

/// From the node that was won at `c`, go on to the next one, or in.
fn rise(c: Word) -> At {
    if c / 2 == ROOT { At::Inside } else { At::Raise { c: c / 2 } }
}

/// Lower the flags from the root downwards. A process that was let pass at a lower node before that
/// would use the flags above it, and would then find them lowered.
fn lower(c: Word, me: Process, memory: &mut impl Memory) -> At {
    memory.write(FLAG.of(c), 0);
    if c == leaf(me) { At::Outside } else { At::Lower { c: below(c, me) } }
}

fn bypass(n: usize) -> Bypass {
    if n == 2 { Bypass::AtMost { all: 1, one: 1 } } else { Bypass::Unbounded }
}
