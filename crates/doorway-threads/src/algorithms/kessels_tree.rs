//! Kessels, "Arbitration Without Common Modifiable Variables", Acta Informatica 17, 1982, for any
//! number of processes: a tournament of matches of two.
//!
//! The nodes of a binary tree are numbered from 1, the root, such that `x / 2` is above `x`, and
//! process `i` begins at the leaf `n + i`. At each node that a process comes to, it plays the
//! algorithm for two against the process that comes to the sibling. The winner goes up, and the
//! winner of the match between the children of the root enters. A process that leaves lowers its
//! flags in the reverse order, the topmost first. An entry that meets no other process takes a
//! number of steps that grows with the logarithm of `n`.
//!
//! # What holds
//!
//! Proved by exploring every schedule of up to four processes: exclusion, no deadlock, no lockout,
//! and for two processes at most one overtaking. Does not hold for three or more: a bound on
//! overtaking, because a process that is slow in its first match is passed again and again by those
//! of the other half.
//!
//! No order is claimed, not even for two processes, where the algorithm is
//! [`kessels`](super::kessels) step by step. The doorway would be the places of the first match.
//! These are the places of all matches, so no doorway is declared, and from the first step on there
//! is no order.
//!
//! # For any number of processes
//!
//! Exclusion holds for any number of processes. Only a process that has won a match, and has not
//! lowered its flag there yet, plays in the next: so each match has at most one player on either
//! side.

use super::prelude::*;

shared! {
    /// 1 while a process wants to win its match, by the node that it comes from.
    FLAG: flag[2 * n] = 0;
    /// The half of a match's turn that a player writes, by the node that it comes from.
    HALF: half[2 * n] = 0;
}

places! {
    outside: Outside;
    waiting:
        Raise { level },
        AskHalf { level },
        SetHalf { level, half },
        Look { level, half },
        AskTurn { level, half };
    inside: Inside;
    leaving: Lower { level };
}

/// Kessels's algorithm for any number of processes.
///
/// ```
/// # use doorway_threads::{Room, algorithms::kessels_tree::KesselsTree};
/// let mut room: Room<KesselsTree, u32> = Room::new(5, 0)?;
/// std::thread::scope(|scope| {
///     for mut seat in room.seats() {
///         scope.spawn(move || (0..100).for_each(|_| *seat.lock() += 1));
///     }
/// });
/// assert_eq!(room.into_inner(), 500);
/// # Ok::<(), doorway_threads::RoomError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum KesselsTree {}

impl Algorithm for KesselsTree {
    type At = At;

    const INFO: Info = Info {
        name: "kessels-tree",
        origin: "Kessels 1982",
        registers: "4(n-1) bits",
        fences: "ab",
        claims: Claims {
            bypass: |n| match n {
                2 => Bypass::AtMost { all: 1, one: 1 },
                _ => Bypass::Unbounded,
            },
            ..Claims::LOCKOUT_FREE
        },
        ..Info::LOCK
    };
    const SHARED: &'static [RegisterArray] = SHARED;

    fn outside(_: Process) -> At {
        At::Outside
    }

    #[inline]
    fn step(at: At, me: Process, memory: &mut impl Memory) -> At {
        match at {
            At::Outside => raise(0, me, memory),
            At::Raise { level } => raise(level, me, memory),
            At::AskHalf { level } => {
                let half = memory.read(HALF.of(rival(level, me))) ^ side(level, me);
                At::SetHalf { level, half }
            }
            At::SetHalf { level, half } => {
                memory.write(HALF.of(node(level, me)), half);
                memory.fence('b');
                At::Look { level, half }
            }
            At::Look { level, .. } if memory.read(FLAG.of(rival(level, me))) == 0 => win(level, me),
            At::Look { level, half } => At::AskTurn { level, half },
            At::AskTurn { level, half }
                if memory.read(HALF.of(rival(level, me))) ^ side(level, me) != half =>
            {
                win(level, me)
            }
            At::AskTurn { level, half } => {
                memory.wait();
                At::Look { level, half }
            }
            At::Inside => lower(last(me), me, memory),
            At::Lower { level } => lower(level, me, memory),
        }
    }
}

/// The node from which a process comes to its match at a level; the leaves are at level 0.
fn node(level: Word, me: Process) -> usize {
    (me.n + me.i) >> level
}

/// The node from which its rival comes.
fn rival(level: Word, me: Process) -> usize {
    node(level, me) ^ 1
}

/// Which of the two players of its match the process is.
fn side(level: Word, me: Process) -> Word {
    node(level, me) & 1
}

/// The level of the last match, which is at the root.
fn last(me: Process) -> Word {
    node(0, me).ilog2() as Word - 1
}

/// Begin the match at a level.
fn raise(level: Word, me: Process, memory: &mut impl Memory) -> At {
    memory.write(FLAG.of(node(level, me)), 1);
    memory.fence('a');
    At::AskHalf { level }
}

/// Go up; after the last match, enter.
fn win(level: Word, me: Process) -> At {
    if level == last(me) { At::Inside } else { At::Raise { level: level + 1 } }
}

/// Lower the flag at a level, so that the rival there can go up, and then those at the levels
/// below.
fn lower(level: Word, me: Process, memory: &mut impl Memory) -> At {
    memory.write(FLAG.of(node(level, me)), 0);
    if level == 0 { At::Outside } else { At::Lower { level: level - 1 } }
}
