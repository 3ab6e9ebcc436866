//! After Morris, "A Starvation-Free Solution to the Mutual Exclusion Problem", Information
//! Processing Letters 8(2), 1979, with an atomic counter: no process starves, whatever the
//! semaphores allow.
//!
//! As in [`morris`](super::morris), processes that come gather between the gates `a` and `m`, of
//! which at most one is open, and enter from there. The number of processes before the first gate
//! is counted by atomic additions. So the third semaphore is gone, and with it the only place where
//! a process could starve if a unit of a semaphore may be taken by a process that did not wait for
//! it. Two words to sleep at and two counters are a small lock that is fair.
//!
//! # What holds
//!
//! Proved by exploring every schedule of up to four processes, over weak semaphores and over ones
//! that let others barge in: exclusion, no deadlock, no lockout, each other process enters at most
//! twice before. Does not hold: first come, first served, since those between the gates enter in
//! any order.
//!
//! # For any number of processes
//!
//! Exclusion holds for any number of processes as for Morris's algorithm: the two gates have one
//! unit between them. A process that takes it at either gate keeps it until it opens one of them,
//! and the process inside has it.

use super::prelude::*;

shared! {
    /// The gate to where the processes gather that enter next.
    A: a = 1;
    /// The gate to the inside.
    M: m = 0;
    /// How many processes are before gate `a`.
    NA: na = 0;
    /// How many processes are between the gates. Only a process that has come through a gate and
    /// has opened none changes it.
    NM: nm = 0;
}

places! {
    outside: Outside;
    waiting: PassA, Gather, CountBetween { nm }, GoOn, OpenA, OpenM;
    waiting: PassM, Pass, CountPassed { nm };
    inside: Inside;
    leaving: LeaveByA, LeaveByM;
}

/// Morris's gates with an atomic counter.
///
/// ```
/// # use doorway_threads::{Room, algorithms::morris_atomic::MorrisAtomic};
/// let mut room: Room<MorrisAtomic, Vec<usize>> = Room::new(4, vec![])?;
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
pub enum MorrisAtomic {}

impl Algorithm for MorrisAtomic {
    type At = At;

    const INFO: Info = Info {
        name: "morris-atomic",
        origin: "after Morris 1979",
        registers: "2 semaphores, 2 counters",
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
            At::Outside => {
                memory.add(NA, 1);
                At::PassA
            }
            At::PassA if memory.down(A) => At::Gather,
            At::PassA => At::PassA,
            At::Gather => At::CountBetween { nm: memory.read(NM) },
            At::CountBetween { nm } => {
                memory.write(NM, nm + 1);
                At::GoOn
            }
            At::GoOn if memory.add(NA, -1) == 1 => At::OpenM,
            At::GoOn => At::OpenA,
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
