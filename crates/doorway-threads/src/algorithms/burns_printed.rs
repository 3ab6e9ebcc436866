//! Burns, "Symmetry in Systems of Asynchronous Processes", FOCS, 1981, in the text that is passed
//! around, which is wrong and is kept as a warning: a model, not a lock.
//!
//! A process that wants to enter raises its flag and takes the turn. As long as no other process
//! takes the turn from it, it waits until all other flags are down, and enters. A process that has
//! lost the turn lowers its flag and looks at all other flags one by one. When it has seen each of
//! them down, it starts again. But by the time it looks at the last flag, the first may be up
//! again.
//!
//! # What holds
//!
//! Proved by exploring every schedule of up to four processes: exclusion. Refuted: that there is no
//! deadlock. Among two or three processes one always gets in, but four can keep each other out for
//! ever while each takes steps again and again. [`burns`](super::burns) is a text in which they
//! cannot.

use super::prelude::*;

shared! {
    /// 1 while the process wants to enter.
    FLAG: flag[n] = 0;
    /// The process that came last.
    TURN: turn = 0;
}

places! {
    outside: Outside;
    waiting: TakeTurn, AskTurn, AskTurnAgain, Scan { j }, Withdraw, AwaitAll { j }, RaiseAgain;
    inside: Inside;
}

/// Burns's algorithm as it is passed around. No lock can be made of it:
///
/// ```compile_fail,E0277
/// # use doorway_threads::{Room, algorithms::burns_printed::BurnsPrinted};
/// let room: Room<BurnsPrinted, u32> = Room::new(2, 0).unwrap();
/// ```
///
/// The explorer shows the cycle in which four processes keep each other out:
///
/// ```
/// use doorway_threads::{algorithms::burns_printed::BurnsPrinted, check::Check};
///
/// let report = Check::of::<BurnsPrinted>(4).run();
/// assert_eq!((report.exclusion, report.deadlock_free), (Some(true), Some(false)));
/// assert_eq!((report.schedule.len(), report.cycle.len()), (12, 42));
/// assert!(report.cycle.iter().all(|line| !line.enters));
/// ```
#[derive(Clone, Copy, Debug)]
pub enum BurnsPrinted {}

impl Algorithm for BurnsPrinted {
    type At = At;

    const INFO: Info = Info {
        name: "burns-printed",
        origin: "Burns 1981, as passed around",
        registers: "n bits, 1 shared number",
        fences: "b",
        claims: Claims::DEADLOCK_FREE,
        refuted_from: Some(4),
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
            At::AskTurn if memory.read(TURN) == i => At::AskTurnAgain,
            At::AskTurn => At::Withdraw,
            At::AskTurnAgain if memory.read(TURN) == i => scan(0, me),
            At::AskTurnAgain => At::AskTurn,
            At::Scan { j } if memory.read(FLAG.of(j)) == 0 => scan(j + 1, me),
            At::Scan { .. } => {
                memory.wait();
                At::AskTurnAgain
            }
            At::Withdraw => {
                memory.write(FLAG.of(i), 0);
                await_all(0, me)
            }
            At::AwaitAll { j } if memory.read(FLAG.of(j)) == 0 => await_all(j + 1, me),
            At::AwaitAll { .. } => {
                memory.wait();
                await_all(0, me)
            }
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

/// Look at the next of the others from `j` on; after the last one, start again.
fn await_all(j: Word, me: Process) -> At {
    match me.others_from(j) {
        Some(j) => At::AwaitAll { j },
        None => At::RaiseAgain,
    }
}
