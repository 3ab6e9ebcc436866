//! Dijkstra, "Solution of a Problem in Concurrent Programming Control", Communications of the ACM
//! 8(9), 1965: the first for any number of processes.
//!
//! One process at a time has the turn `k`. A process takes it from a holder that does not want to
//! enter. Having the turn is not enough, since two processes may believe for a moment that they
//! have it. So a process that believes it says so in `c`, and looks whether any other says the
//! same.
//!
//! # What holds
//!
//! Proved by exploring every schedule of up to four processes: exclusion and no deadlock. Does not
//! hold: that every process gets in, because the others may take the turn again and again.
//!
//! # For any number of processes
//!
//! Exclusion holds for any number of processes. Two processes inside would each have looked at the
//! other's `c` before it was cleared, and so before clearing its own, which is impossible.

use super::prelude::*;

shared! {
    /// 0 while the process wants to enter.
    B: b[n] = 1;
    /// 0 while the process thinks that it has the turn.
    C: c[n] = 1;
    /// The process that has the turn.
    K: k = 0;
}

places! {
    outside: Outside;
    waiting: AskTurn, StepBack, AskAgain, Ask { k }, Take, Claim, Scan { j };
    inside: Inside;
    leaving: Lower;
}

/// Dijkstra's algorithm.
///
/// ```
/// # use doorway_threads::{Room, algorithms::dijkstra::Dijkstra};
/// let mut room: Room<Dijkstra, u32> = Room::new(5, 0)?;
/// std::thread::scope(|scope| {
///     for mut seat in room.seats() {
///         scope.spawn(move || (0..100).for_each(|_| *seat.lock() += 1));
///     }
/// });
/// assert_eq!(room.into_inner(), 500);
/// # Ok::<(), doorway_threads::RoomError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Dijkstra {}

impl Algorithm for Dijkstra {
    type At = At;

    const INFO: Info = Info {
        name: "dijkstra",
        origin: "Dijkstra 1965",
        registers: "2n bits, 1 shared number",
        fences: "d",
        claims: Claims::DEADLOCK_FREE,
        ..Info::LOCK
    };
    const SHARED: &'static [RegisterArray] = SHARED;

    fn outside(_: Process) -> At {
        At::Outside
    }

    #[inline]
    fn step(at: At, me: Process, memory: &mut impl Memory) -> At {
        let i = me.i;
        match at {
            At::Outside => {
                memory.write(B.of(i), 0);
                At::AskTurn
            }
            At::AskTurn if memory.read(K) == i => At::Claim,
            At::AskTurn => At::StepBack,
            At::StepBack => {
                memory.write(C.of(i), 1);
                At::AskAgain
            }
            At::AskAgain => At::Ask { k: memory.read(K) },
            At::Ask { k } if memory.read(B.of(k)) == 1 => At::Take,
            At::Ask { .. } => {
                memory.wait();
                At::AskTurn
            }
            At::Take => {
                memory.write(K, i);
                At::AskTurn
            }
            At::Claim => {
                memory.write(C.of(i), 0);
                memory.fence('d');
                scan(0, me)
            }
            At::Scan { j } if memory.read(C.of(j)) == 1 => scan(j + 1, me),
            At::Scan { .. } => {
                memory.wait();
                At::AskTurn
            }
            At::Inside => {
                memory.write(C.of(i), 1);
                At::Lower
            }
            At::Lower => {
                memory.write(B.of(i), 1);
                At::Outside
            }
        }
    }
}

/// Look at the next of the others from `j` on; after the last one, enter.
fn scan(j: Word, me: Process) -> At {
    match me.others_from(j) {
        Some(j) => At::Scan { j },
        None => At::Inside,
    }
}
