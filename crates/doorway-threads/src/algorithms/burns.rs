//! After Burns, "Symmetry in Systems of Asynchronous Processes", FOCS, 1981: n bits and one number,
//! and all processes alike.
//!
//! A process that wants to enter raises its flag and takes the turn. As long as no other process
//! takes the turn from it, it waits until all other flags are down, and enters. A process that has
//! lost the turn lowers its flag. It waits until the flag of the process that has the turn is down
//! while the turn stays the same, and starts again. Here this text differs from the one that is
//! passed around, in which the loser waits for all flags, one after another. That one, see
//! [`burns_printed`](super::burns_printed), does not always let a process in.
//!
//! # What holds
//!
//! Proved by exploring every schedule of up to four processes: exclusion and no deadlock. Five were
//! explored once with the same outcome, which the tests do not repeat. Does not hold: that every
//! process gets in.
//!
//! # For any number of processes
//!
//! Exclusion: two processes inside would each have looked at the other's flag before it was raised,
//! and so before raising its own, which is impossible.
//!
//! No deadlock: suppose that no process entered any more. Then from some time on no process would
//! come either, and the turn would only name processes that wait. A loser that goes on has found
//! the flag of process t down, and the turn with t before and after that. So within that time t has
//! lost the turn, lowered its flag, and taken the turn again, for which it went on as a loser
//! itself. Within its time another process did so, and so on without end, which is impossible. So
//! no loser goes on, the turn stays with one process, and this one enters.

use super::prelude::*;

shared! {
    /// 1 while the process wants to enter.
    FLAG: flag[n] = 0;
    /// The process that came last.
    TURN: turn = 0;
}

places! {
    outside: Outside;
    waiting:
        TakeTurn, AskTurn, Scan { j }, Withdraw, AskHolder, AwaitHolder { t }, AskHolderAgain { t },
        RaiseAgain;
    inside: Inside;
}

/// An algorithm after Burns.
///
/// ```
/// # use doorway_threads::{Room, algorithms::burns::Burns};
/// let mut room: Room<Burns, u32> = Room::new(3, 0)?;
/// std::thread::scope(|scope| {
///     for mut seat in room.seats() {
///         scope.spawn(move || (0..100).for_each(|_| *seat.lock() += 1));
///     }
/// });
/// assert_eq!(room.into_inner(), 300);
/// # Ok::<(), doorway_threads::RoomError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Burns {}

impl Algorithm for Burns {
    type At = At;

    const INFO: Info = Info {
        name: "burns",
        origin: "after Burns 1981",
        registers: "n bits, 1 shared number",
        fences: "b",
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
            At::Outside | At::RaiseAgain => {
                memory.write(FLAG.of(i), 1);
                At::TakeTurn
            }
            At::TakeTurn => {
                memory.write(TURN, i);
                memory.fence('b');
                At::AskTurn
            }
            At::AskTurn if memory.read(TURN) == i => scan(0, me),
            At::AskTurn => At::Withdraw,
            At::Scan { j } if memory.read(FLAG.of(j)) == 0 => scan(j + 1, me),
            At::Scan { .. } => {
                memory.wait();
                At::AskTurn
            }
            At::Withdraw => {
                memory.write(FLAG.of(i), 0);
                At::AskHolder
            }
            At::AskHolder => At::AwaitHolder { t: memory.read(TURN) },
            At::AwaitHolder { t } if memory.read(FLAG.of(t)) == 0 => At::AskHolderAgain { t },
            At::AwaitHolder { .. } => {
                memory.wait();
                At::AskHolder
            }
            At::AskHolderAgain { t } if memory.read(TURN) == t => At::RaiseAgain,
            At::AskHolderAgain { .. } => At::AskHolder,
            At::Inside => {
                memory.write(FLAG.of(i), 0);
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
