//! Kessels, "Arbitration Without Common Modifiable Variables", Acta Informatica 17, 1982, for any
//! number of processes: a tournament of matches of two.
//!
//! The nodes of a binary tree are numbered from 1, the root, such that `x / 2` is above `x`, and
//! process `i` begins at the leaf `n + i`. At each node that it comes to it plays the algorithm for
//! two against whoever comes to the sibling; the winner goes up, and who has won at both children
//! of the root enters. Who leaves lowers its flags in the reverse order, the topmost first. An
//! entry that meets nobody takes a number of steps that grows with the logarithm of `n`.
//!
//! Proved by exploring every schedule of up to four processes: exclusion, no deadlock, no lockout,
//! and for two processes at most one overtaking. Not true of it for three and more: a bound on
//! overtaking, for who is slow in its first match is passed again and again by those of the other
//! half. No order is claimed, not even for two, where it is [`kessels`](super::kessels) step by
//! step: the places of the first match, which would be the doorway, are those of all matches, so no
//! doorway is declared, and from the first step on there is no order.
//!
//! For any number, exclusion holds because only who has won a match, and has not lowered its flag
//! there yet, plays in the next: so each match has one player on either side at most.

use super::prelude::*;

shared! {
    /// Who wants to win, by the node that it comes from.
    FLAG: flag[2 * n] = 0;
    /// The two halves of the turn of each match, by the nodes that the players come from.
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
    const SHARED: &'static [Shared] = SHARED;

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

/// Where a process comes from to its match at a level; the leaves are at level 0.
fn node(level: Word, me: Process) -> usize {
    (me.n + me.i) >> level
}

/// Where its rival comes from.
fn rival(level: Word, me: Process) -> usize {
    node(level, me) ^ 1
}

/// Which of the two it is.
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

/// Let the rival of a level go up, and then those below.
fn lower(level: Word, me: Process, memory: &mut impl Memory) -> At {
    memory.write(FLAG.of(node(level, me)), 0);
    if level == 0 { At::Outside } else { At::Lower { level: level - 1 } }
}
