//! Peterson, "Myths about the Mutual Exclusion Problem", Information Processing Letters 12(3),
//! 1981, for two processes.
//!
//! A process that wants to enter raises its flag and then gives the turn away. It waits while the
//! other wants to enter too and has not given the turn back. If both come together, the one that
//! writes the turn later waits.
//!
//! # What holds
//!
//! Proved by exploring every schedule: exclusion, no deadlock, no lockout, at most one overtaking,
//! and first come, first served after the doorway. Does not hold: that order from the first step
//! on, because a process that has raised its flag but not given the turn away yet can be overtaken
//! by one that comes later.
//!
//! Fence `a`, between the two writes, is not needed on x86, whose store buffers keep writes in
//! order. The memory model of the language needs it.

use super::prelude::*;

shared! {
    /// 1 while the process wants to enter.
    FLAG: flag[n] = 0;
    /// The process that goes first if both want to enter.
    TURN: turn = 0;
}

places! {
    outside: Outside;
    doorway: GiveTurn;
    waiting: Look, AskTurn;
    inside: Inside;
    leaving: GiveUp;
}

/// Peterson's algorithm for two processes.
///
/// ```
/// # use doorway_threads::{Room, algorithms::peterson::Peterson};
/// let mut room: Room<Peterson, u32> = Room::new(2, 41)?;
/// let [mut left, mut right] = room.split()?;
/// let held = left.lock();
/// assert!(right.try_lock().is_none());
/// drop(held);
/// *right.lock() += 1;
/// assert_eq!(room.into_inner(), 42);
/// # Ok::<(), doorway_threads::RoomError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Peterson {}

impl Algorithm for Peterson {
    type At = At;

    const INFO: Info = Info {
        name: "peterson",
        origin: "Peterson 1981",
        most: 2,
        registers: "2 bits, 1 shared bit",
        fences: "ab",
        fences_beyond_tso: "a",
        claims: Claims::FIFO,
        ..Info::LOCK
    };
    const SHARED: &'static [RegisterArray] = SHARED;

    fn outside(_: Process) -> At {
        At::Outside
    }

    #[inline]
    fn step(at: At, me: Process, memory: &mut impl Memory) -> At {
        let (i, other) = (me.i, me.other());
        match at {
            At::Outside => {
                memory.write(FLAG.of(i), 1);
                memory.fence('a');
                At::GiveTurn
            }
            At::GiveTurn => {
                memory.write(TURN, other);
                memory.fence('b');
                At::Look
            }
            At::Look if memory.read(FLAG.of(other)) == 0 => At::Inside,
            At::Look => At::AskTurn,
            At::AskTurn if memory.read(TURN) == i => At::Inside,
            At::AskTurn => {
                memory.wait();
                At::Look
            }
            At::Inside | At::GiveUp => {
                memory.write(FLAG.of(i), 0);
                At::Outside
            }
        }
    }
}

#[allow(unsafe_code, reason = "a lock goes on from where this leads")]
// SAFETY: the flag is lowered as by a process that leaves.
unsafe impl Withdraws for Peterson {
    /// Lower the flag, as if leaving.
    fn withdraw(_: At) -> At {
        At::GiveUp
    }
}
