//! Knuth, "Additional Comments on a Problem in Concurrent Programming Control", Communications of
//! the ACM 9(5), 1966: the first in which every process gets in, for any number of processes.
//!
//! A process that wants to enter waits until no process wants in from the turn `k` downwards to
//! itself, around the end. Several processes may find that at once. Each of them announces to go
//! in, and starts again if it sees another announce that. A process that leaves gives the turn to
//! the process before it, so that sooner or later the turn comes to every process.
//!
//! The second scan, for others that go in, runs downwards from n in the text, and upwards from 0
//! here. It ends as soon as it finds one, in any order.
//!
//! # What holds
//!
//! Proved by exploring every schedule of up to four processes: exclusion, no deadlock, no lockout,
//! and that a process is overtaken at most 2^(n-1) - 1 times, at most 2^(n-2) times by the same
//! process. Does not hold: first come, first served.
//!
//! # For any number of processes
//!
//! Exclusion holds for any number of processes. A process announces to go in before it looks at the
//! others and enters. Of two processes inside, the later to announce would have seen the other.

use super::prelude::*;

shared! {
    /// What each process does: it is away, it wants to enter, or it goes in.
    CONTROL: control[n] = AWAY;
    /// The process that has the turn.
    K: k = 0;
}

const AWAY: Word = 0;
const WANTS: Word = 1;
const GOES_IN: Word = 2;

places! {
    outside: Outside;
    waiting: AskTurn, Ask { j }, GoIn, Scan { j }, StartAgain, TakeTurn;
    inside: Inside;
    leaving: Lower;
}

/// Knuth's algorithm.
///
/// ```
/// # use doorway_threads::{Room, algorithms::knuth::Knuth};
/// let mut room: Room<Knuth, u32> = Room::new(5, 0)?;
/// std::thread::scope(|scope| {
///     for mut seat in room.seats() {
///         scope.spawn(move || *seat.lock() += 1);
///     }
/// });
/// assert_eq!(room.into_inner(), 5);
/// # Ok::<(), doorway_threads::RoomError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Knuth {}

impl Algorithm for Knuth {
    type At = At;

    const INFO: Info = Info {
        name: "knuth",
        origin: "Knuth 1966",
        registers: "n ternary numbers, 1 shared number",
        fences: "b",
        claims: Claims { bypass, ..Claims::LOCKOUT_FREE },
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
            At::Ask { j } if memory.read(CONTROL.of(j)) == AWAY => ask(me.before(j), me),
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
            At::TakeTurn => {
                memory.write(K, i);
                At::Inside
            }
            At::Inside => {
                memory.write(K, me.before(i));
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

/// Look at the next of the others from `j` on; after the last one, take the turn.
fn scan(j: Word, me: Process) -> At {
    match me.others_from(j) {
        Some(j) => At::Scan { j },
        None => At::TakeTurn,
    }
}

/// The bound doubles with each process. From 33 processes on it does not fit into 32 bits.
fn bypass(n: usize) -> Bypass {
    match 1_u32.checked_shl(n as u32 - 1) {
        Some(power) => Bypass::AtMost { all: power - 1, one: power / 2 },
        None => Bypass::Unbounded,
    }
}
