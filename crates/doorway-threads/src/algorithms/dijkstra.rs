//! Dijkstra, "Solution of a Problem in Concurrent Programming Control", Communications of the ACM
//! 8(9), 1965: the first for any number of processes.
//!
//! One of them at a time has the turn `k`, and takes it from whoever does not want to enter. Having
//! it is not enough, since two may believe so for a moment: who thinks that it has the turn says so
//! in `c`, and looks whether anyone else says the same.
//!
//! Proved by exploring every schedule of up to four processes: exclusion and no deadlock. Not true
//! of it: that everyone gets in, for the others may take the turn again and again.
//!
//! For any number, two who are inside would each have looked at the other's `c` before it was
//! cleared, and so before clearing their own, which cannot be.

use super::prelude::*;

shared! {
    /// Cleared by who wants to enter.
    B: b[n] = 1;
    /// Cleared by who thinks that it has the turn.
    C: c[n] = 1;
    /// The turn.
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
    const SHARED: &'static [Shared] = SHARED;

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
