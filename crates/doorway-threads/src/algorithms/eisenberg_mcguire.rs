//! Eisenberg & `McGuire`, "Further Comments on Dijkstra's Concurrent Programming Control Problem",
//! Communications of the ACM 15(11), 1972: no process is overtaken twice by the same one.
//!
//! As in Knuth's algorithm there is a turn `k`, and a process that wants to enter waits until no
//! process wants in from the turn upwards to itself, around the end. It then announces to go in. If
//! no other process announces that, it asks once more whether the turn is its own or belongs to a
//! process that is away, and takes it. A process that leaves gives the turn to the next process
//! that wants in, so that the turn goes around among those that wait.
//!
//! # What holds
//!
//! Proved by exploring every schedule of up to four processes: exclusion, no deadlock, no lockout,
//! and that each other process enters at most once before. Does not hold: first come, first served,
//! since the turn goes around by numbers.
//!
//! # For any number of processes
//!
//! Exclusion holds for any number of processes. A process announces to go in before it looks at the
//! others and enters. Of two processes inside, the later to announce would have seen the other.

use super::prelude::*;

shared! {
    /// What each process does: it is away, it wants to enter, or it goes in.
    CONTROL: control[n] = AWAY;
    /// The turn, which is moved only by the process inside.
    K: k = 0;
}

const AWAY: Word = 0;
const WANTS: Word = 1;
const GOES_IN: Word = 2;

places! {
    outside: Outside;
    waiting:
        AskTurn, Ask { j }, GoIn, Scan { j }, AskTurnAgain, AskHolder { k }, StartAgain, TakeTurn;
    inside: Inside;
    leaving: Seek { j }, GiveTurn { j }, Lower;
}

/// The algorithm of Eisenberg and `McGuire`.
///
/// ```
/// # use doorway_threads::{Room, algorithms::eisenberg_mcguire::EisenbergMcGuire};
/// let mut room: Room<EisenbergMcGuire, u32> = Room::new(3, 0)?;
/// let [mut one, mut two, mut three] = room.split()?;
/// std::thread::scope(|scope| {
///     scope.spawn(move || (0..100).for_each(|_| *one.lock() += 1));
///     scope.spawn(move || (0..100).for_each(|_| *two.lock() += 10));
///     scope.spawn(move || (0..100).for_each(|_| *three.lock() += 100));
/// });
/// assert_eq!(room.into_inner(), 11_100);
/// # Ok::<(), doorway_threads::RoomError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum EisenbergMcGuire {}

impl Algorithm for EisenbergMcGuire {
    type At = At;

    const INFO: Info = Info {
        name: "eisenberg-mcguire",
        origin: "Eisenberg and McGuire 1972",
        registers: "n ternary numbers, 1 shared number",
        fences: "b",
        claims: Claims { fifo: |_| false, ..Claims::FIFO },
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
            At::Outside | At::StartAgain => {
                memory.write(CONTROL.of(i), WANTS);
                At::AskTurn
            }
            At::AskTurn => ask(memory.read(K), me),
            At::Ask { j } if memory.read(CONTROL.of(j)) == AWAY => ask(me.after(j), me),
            At::Ask { .. } => {
                memory.wait();
                At::AskTurn
            }
            At::GoIn => {
                memory.write(CONTROL.of(i), GOES_IN);
                memory.fence('b');
                scan(0, me)
            }
            At::Scan { j } if memory.read(CONTROL.of(j)) != GOES_IN => scan(j + 1, me),
            At::Scan { .. } => {
                memory.wait();
                At::StartAgain
            }
            At::AskTurnAgain => match memory.read(K) {
                k if k == i => At::TakeTurn,
                k => At::AskHolder { k },
            },
            At::AskHolder { k } if memory.read(CONTROL.of(k)) == AWAY => At::TakeTurn,
            At::AskHolder { .. } => {
                memory.wait();
                At::StartAgain
            }
            At::TakeTurn => {
                memory.write(K, i);
                At::Inside
            }
            At::Inside => seek(me.after(i), me, memory),
            At::Seek { j } => seek(j, me, memory),
            At::GiveTurn { j } => {
                memory.write(K, j);
                At::Lower
            }
            At::Lower => {
                memory.write(CONTROL.of(i), AWAY);
                At::Outside
            }
        }
    }
}

/// Ask process `j` whether it wants in, unless it is the asking process itself.
fn ask(j: Word, me: Process) -> At {
    if j == me.i { At::GoIn } else { At::Ask { j } }
}

/// Look at the next of the others from `j` on; after the last one, ask for the turn again.
fn scan(j: Word, me: Process) -> At {
    match me.others_from(j) {
        Some(j) => At::Scan { j },
        None => At::AskTurnAgain,
    }
}

/// Give the turn to process `j` if it wants in; else go on to the next one, until all were asked.
fn seek(j: Word, me: Process, memory: &mut impl Memory) -> At {
    if memory.read(CONTROL.of(j)) != AWAY {
        return At::GiveTurn { j };
    }
    match me.after(j) {
        j if j == me.i => At::Lower,
        j => At::Seek { j },
    }
}
