//! Peterson, "Myths about the Mutual Exclusion Problem", Information Processing Letters 12(3),
//! 1981, for n processes: also known as the filter.
//!
//! There are n - 1 levels, and each keeps one process back. A process that comes to a level signs
//! there. It may go on when no other process is on this level or higher, or when another has signed
//! after it. So at most n - 1 get past the first level, and only one past the last.
//!
//! # What holds
//!
//! Proved by exploring every schedule of up to four processes: exclusion, no deadlock, no lockout,
//! and for two processes at most one overtaking and first come, first served. Does not hold for
//! three or more, though often claimed: a bound on overtaking. A process that has yet to notice
//! that another has signed can be passed again and again by two others that push each other on.
//!
//! Even alone, an entry takes about n² reads. Fence `a`, between the two writes, is not needed on
//! x86, whose store buffers keep writes in order. The memory model of the language needs it.
//!
//! # For any number of processes
//!
//! Exclusion holds for any number of processes. Of two or more processes that are at a level or
//! above it, the last to sign there cannot go on before the others are gone. So each level lets at
//! least one process less pass than have come to it.

use super::prelude::*;

shared! {
    /// The level of each process, from 1 on; 0 while it is outside.
    LEVEL: level[n] = 0;
    /// The process that came to each level last. There is no level 0.
    LAST: last[n] = 0;
}

places! {
    outside: Outside;
    doorway: SignFirst;
    waiting: Look { level, j }, AskLast { level }, Rise { level }, Sign { level };
    inside: Inside;
}

/// Peterson's algorithm for n processes.
///
/// ```
/// # use doorway_threads::{Room, algorithms::peterson_n::PetersonN};
/// let mut room: Room<PetersonN, u32> = Room::new(4, 0)?;
/// std::thread::scope(|scope| {
///     for mut seat in room.seats() {
///         scope.spawn(move || (0..100).for_each(|_| *seat.lock() += 1));
///     }
/// });
/// assert_eq!(room.into_inner(), 400);
/// # Ok::<(), doorway_threads::RoomError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum PetersonN {}

impl Algorithm for PetersonN {
    type At = At;

    const INFO: Info = Info {
        name: "peterson-n",
        origin: "Peterson 1981",
        registers: "n numbers, n - 1 shared numbers",
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
                rise(1, me, memory);
                At::SignFirst
            }
            At::SignFirst => sign(1, me, memory),
            At::Look { level, j } if memory.read(LEVEL.of(j)) < level => look(level, j + 1, me),
            At::Look { level, .. } => At::AskLast { level },
            At::AskLast { level } if memory.read(LAST.of(level)) != me.i => pass(level, me),
            At::AskLast { level } => {
                memory.wait();
                look(level, 0, me)
            }
            At::Rise { level } => {
                rise(level, me, memory);
                At::Sign { level }
            }
            At::Sign { level } => sign(level, me, memory),
            At::Inside => {
                memory.write(LEVEL.of(me.i), 0);
                At::Outside
            }
        }
    }
}

fn rise(level: Word, me: Process, memory: &mut impl Memory) {
    memory.write(LEVEL.of(me.i), level);
    memory.fence('a');
}

fn sign(level: Word, me: Process, memory: &mut impl Memory) -> At {
    memory.write(LAST.of(level), me.i);
    memory.fence('b');
    look(level, 0, me)
}

/// Look at the next of the others from `j` on; after the last one, go on.
fn look(level: Word, j: Word, me: Process) -> At {
    match me.others_from(j) {
        Some(j) => At::Look { level, j },
        None => pass(level, me),
    }
}

/// Go on to the next level, or in.
fn pass(level: Word, me: Process) -> At {
    if level + 1 == me.n { At::Inside } else { At::Rise { level: level + 1 } }
}

fn bypass(n: usize) -> Bypass {
    if n == 2 { Bypass::AtMost { all: 1, one: 1 } } else { Bypass::Unbounded }
}
