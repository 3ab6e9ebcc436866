//! Kessels, "Arbitration Without Common Modifiable Variables", Acta Informatica 17, 1982, for two
//! processes: Peterson's algorithm, with no register of two writers.
//!
//! The turn is split into two bits, one of each process: equal bits let process 0 wait, different
//! ones process 1. A process that wants to enter raises its flag, looks at the other's bit, and
//! sets its own such that it is itself the one that waits. If both come together, the one waits
//! that was the last to look at a bit which does not change any more.
//!
//! # What holds
//!
//! Proved by exploring every schedule: exclusion, no deadlock, no lockout, at most one overtaking,
//! and first come, first served after the doorway. A waiting process may give up: exclusion stays,
//! and the other one, if it goes on waiting, gets in, overtaken at most twice. Does not hold: that
//! order from the first step on, because a process that has raised its flag but has not set its bit
//! yet can be overtaken by one that comes later.

use super::prelude::*;

shared! {
    /// 1 while the process wants to enter.
    FLAG: flag[n] = 0;
    /// The half of the turn that each process writes.
    HALF: half[n] = 0;
}

places! {
    outside: Outside;
    doorway: AskHalf, SetHalf { half };
    waiting: Look { half }, AskTurn { half };
    inside: Inside;
    leaving: GiveUp;
}

/// Kessels's algorithm for two processes.
///
/// ```
/// # use doorway_threads::{Room, algorithms::kessels::Kessels};
/// let mut room: Room<Kessels, u32> = Room::new(2, 0)?;
/// let [mut left, mut right] = room.split()?;
/// let inside = left.lock();
/// assert!(right.try_lock().is_none());
/// drop(inside);
/// assert!(right.try_lock().is_some());
/// # Ok::<(), doorway_threads::RoomError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Kessels {}

impl Algorithm for Kessels {
    type At = At;

    const INFO: Info = Info {
        name: "kessels",
        origin: "Kessels 1982",
        most: 2,
        registers: "4 bits",
        fences: "ab",
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
                At::AskHalf
            }
            At::AskHalf => At::SetHalf { half: memory.read(HALF.of(other)) ^ i },
            At::SetHalf { half } => {
                memory.write(HALF.of(i), half);
                memory.fence('b');
                At::Look { half }
            }
            At::Look { .. } if memory.read(FLAG.of(other)) == 0 => At::Inside,
            At::Look { half } => At::AskTurn { half },
            At::AskTurn { half } if memory.read(HALF.of(other)) ^ i != half => At::Inside,
            At::AskTurn { half } => {
                memory.wait();
                At::Look { half }
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
unsafe impl Withdraws for Kessels {
    /// Lower the flag, as if leaving.
    fn withdraw(_: At) -> At {
        At::GiveUp
    }
}
