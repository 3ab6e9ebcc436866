//! Morris, "A Starvation-Free Solution to the Mutual Exclusion Problem", Information Processing
//! Letters 8(2), 1979: no process starves, though every semaphore in it lets sleepers starve.
//!
//! There are two gates, `a` and `m`, of which at most one is open. Processes that come gather
//! between the gates, one after another through `a`, and the last of them shuts it and opens `m`.
//! Through `m` they enter one after another, and the last of them opens `a` again. A process that
//! comes later waits before `a`, so it cannot overtake those between the gates again and again. Two
//! counters tell how many processes are before the first gate and how many between the gates; the
//! first is guarded by the semaphore `b`.
//!
//! # What holds
//!
//! Proved by exploring every schedule of up to four processes over weak semaphores: exclusion, no
//! deadlock, no lockout, each other process enters at most twice before. Does not hold: first come,
//! first served; nor that every process gets in if a unit of a semaphore may be taken by a process
//! that did not wait for it, because one may then starve at `b`.
//! [`morris_atomic`](super::morris_atomic) has no such semaphore.
//!
//! # For any number of processes
//!
//! Exclusion holds for any number of processes because the two gates have one unit between them. A
//! process that takes it at either gate keeps it until it opens one of them, and the process inside
//! has it.

use super::prelude::*;

shared! {
    /// The gate to where the processes gather that enter next.
    A: a = 1;
    /// The gate to the inside.
    M: m = 0;
    /// Held by the process that changes `na`.
    B: b = 1;
    /// How many processes are before gate `a`.
    NA: na = 0;
    /// How many processes are between the gates. Only a process that has come through a gate and
    /// has opened none changes it.
    NM: nm = 0;
}

places! {
    outside: Outside;
    /// Before the first gate.
    waiting: AwaitB, Come, CountIn { na }, ReleaseB, PassA;
    /// Between the gates.
    waiting: Gather, CountBetween { nm }, TakeB, GoOn, CountOut { na }, ReleaseBAgain { na };
    waiting: OpenA, OpenM, PassM, Pass, CountPassed { nm };
    inside: Inside;
    leaving: LeaveByA, LeaveByM;
}

/// Morris's algorithm.
///
/// ```
/// # use doorway_threads::{Room, algorithms::morris::Morris};
/// let mut room: Room<Morris, Vec<usize>> = Room::new(4, vec![])?;
/// std::thread::scope(|scope| {
///     for (i, mut seat) in room.seats().enumerate() {
///         scope.spawn(move || seat.lock().push(i));
///     }
/// });
/// let mut entered = room.into_inner();
/// entered.sort_unstable();
/// assert_eq!(entered, [0, 1, 2, 3]);
/// # Ok::<(), doorway_threads::RoomError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Morris {}

impl Algorithm for Morris {
    type At = At;

    const INFO: Info = Info {
        name: "morris",
        origin: "Morris 1979",
        registers: "3 semaphores, 2 counters",
        primitive: Primitive::Semaphore,
        claims: Claims {
            bypass: |n| Bypass::AtMost { all: 2 * (n as u32 - 1), one: 2 },
            ..Claims::LOCKOUT_FREE
        },
        ..Info::LOCK
    };
    const SHARED: &'static [RegisterArray] = SHARED;

    fn outside(_: Process) -> At {
        At::Outside
    }

    #[inline]
    fn step(at: At, _: Process, memory: &mut impl Memory) -> At {
        match at {
            At::Outside | At::AwaitB if memory.down(B) => At::Come,
            At::Outside | At::AwaitB => At::AwaitB,
            At::Come => At::CountIn { na: memory.read(NA) },
            At::CountIn { na } => {
                memory.write(NA, na + 1);
                At::ReleaseB
            }
            At::ReleaseB => {
                memory.up(B);
                At::PassA
            }
            At::PassA if memory.down(A) => At::Gather,
            At::PassA => At::PassA,
            At::Gather => At::CountBetween { nm: memory.read(NM) },
            At::CountBetween { nm } => {
                memory.write(NM, nm + 1);
                At::TakeB
            }
            At::TakeB if memory.down(B) => At::GoOn,
            At::TakeB => At::TakeB,
            At::GoOn => At::CountOut { na: memory.read(NA) - 1 },
            At::CountOut { na } => {
                memory.write(NA, na);
                At::ReleaseBAgain { na }
            }
            At::ReleaseBAgain { na } => {
                memory.up(B);
                if na == 0 { At::OpenM } else { At::OpenA }
            }
            At::OpenA => {
                memory.up(A);
                At::PassM
            }
            At::OpenM => {
                memory.up(M);
                At::PassM
            }
            At::PassM if memory.down(M) => At::Pass,
            At::PassM => At::PassM,
            At::Pass => At::CountPassed { nm: memory.read(NM) - 1 },
            At::CountPassed { nm } => {
                memory.write(NM, nm);
                At::Inside
            }
            At::Inside if memory.read(NM) == 0 => At::LeaveByA,
            At::Inside => At::LeaveByM,
            At::LeaveByA => {
                memory.up(A);
                At::Outside
            }
            At::LeaveByM => {
                memory.up(M);
                At::Outside
            }
        }
    }
}
