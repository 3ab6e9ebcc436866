//! De Bruijn, "Additional Comments on a Problem in Concurrent Programming Control", Communications
//! of the ACM 10(3), 1967: Knuth's algorithm, with a turn that waits for its holder.
//!
//! The way in is Knuth's: wait until no process wants in from the turn `k` downwards to oneself,
//! announce to go in, and start again if any other process announces that too. But a process that
//! enters does not take the turn. A process that leaves moves the turn on by one, and only if the
//! turn is its own or belongs to a process that is away. So no process is overtaken again and again
//! by those that the turn has just left.
//!
//! # What holds
//!
//! Proved by exploring every schedule of up to four processes: exclusion, no deadlock, no lockout,
//! and that a process is overtaken at most n (n - 1) / 2 times, at most n - 1 times by the same
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
    /// The turn, which is moved only by the process inside.
    K: k = 0;
}

const AWAY: Word = 0;
const WANTS: Word = 1;
const GOES_IN: Word = 2;

places! {
    outside: Outside;
    waiting: AskTurn, Ask { j }, GoIn, Scan { j }, StartAgain;
    inside: Inside;
    leaving: AskHolder { k }, MoveTurn { k }, Lower;
}

/// De Bruijn's algorithm.
///
/// ```
/// # use doorway_threads::{Room, algorithms::de_bruijn::DeBruijn};
/// let mut room: Room<DeBruijn, Vec<usize>> = Room::new(4, vec![])?;
/// for (number, mut seat) in room.seats().enumerate() {
///     seat.lock().push(number);
/// }
/// assert_eq!(room.into_inner(), [0, 1, 2, 3]);
/// # Ok::<(), doorway_threads::RoomError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum DeBruijn {}

impl Algorithm for DeBruijn {
    type At = At;

    const INFO: Info = Info {
        name: "de-bruijn",
        origin: "de Bruijn 1967",
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
            At::Inside => match memory.read(K) {
                k if k == i => At::MoveTurn { k },
                k => At::AskHolder { k },
            },
            At::AskHolder { k } if memory.read(CONTROL.of(k)) == AWAY => At::MoveTurn { k },
            At::AskHolder { .. } => At::Lower,
            At::MoveTurn { k } => {
                memory.write(K, me.before(k));
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

/// Look at the next of the others from `j` on; after the last one, enter.
fn scan(j: Word, me: Process) -> At {
    match me.others_from(j) {
        Some(j) => At::Scan { j },
        None => At::Inside,
    }
}

fn bypass(n: usize) -> Bypass {
    let n = n as u32;
    Bypass::AtMost { all: n * (n - 1) / 2, one: n - 1 }
}
