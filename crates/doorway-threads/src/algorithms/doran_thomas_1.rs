//! Doran & Thomas, "Variants of the Software Solution to Mutual Exclusion", Information Processing
//! Letters 10(4/5), 1980, the first of two: Dekker's algorithm without its outer loop.
//!
//! Each process raises a flag and looks at the other's. If both flags are up, the process that does
//! not have the turn lowers its flag until it is given the turn. From then on no process has to
//! look at the turn again: the one that has it only waits until the other's flag is down.
//!
//! # What holds
//!
//! Proved by exploring every schedule: exclusion, no deadlock, no lockout. Does not hold, as for
//! Dekker's algorithm: a bound on overtaking.

use super::prelude::*;

shared! {
    /// 1 while the process wants to enter.
    FLAG: flag[n] = 0;
    /// The process that may insist if both want to enter.
    TURN: turn = 0;
}

places! {
    outside: Outside;
    waiting: Look, AskTurn, Withdraw, AwaitTurn, RaiseAgain, AwaitOther;
    inside: Inside;
    leaving: Lower;
}

/// The first algorithm of Doran and Thomas.
///
/// ```
/// # use doorway_threads::{Room, algorithms::doran_thomas_1::DoranThomas1};
/// let mut room: Room<DoranThomas1, String> = Room::new(2, String::new())?;
/// let [mut one, mut two] = room.split()?;
/// two.lock().push_str("ab");
/// one.lock().push_str("cd");
/// assert_eq!(room.into_inner(), "abcd");
/// # Ok::<(), doorway_threads::RoomError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum DoranThomas1 {}

impl Algorithm for DoranThomas1 {
    type At = At;

    const INFO: Info = Info {
        name: "doran-thomas-1",
        origin: "Doran and Thomas 1980",
        most: 2,
        registers: "2 bits, 1 shared bit",
        fences: "ac",
        claims: Claims::LOCKOUT_FREE,
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
                At::Look
            }
            At::Look if memory.read(FLAG.of(other)) == 0 => At::Inside,
            At::Look => At::AskTurn,
            At::AskTurn if memory.read(TURN) == i => At::AwaitOther,
            At::AskTurn => At::Withdraw,
            At::Withdraw => {
                memory.write(FLAG.of(i), 0);
                At::AwaitTurn
            }
            At::AwaitTurn if memory.read(TURN) == i => At::RaiseAgain,
            At::AwaitTurn => {
                memory.wait();
                At::AwaitTurn
            }
            At::RaiseAgain => {
                memory.write(FLAG.of(i), 1);
                memory.fence('c');
                At::AwaitOther
            }
            At::AwaitOther if memory.read(FLAG.of(other)) == 0 => At::Inside,
            At::AwaitOther => {
                memory.wait();
                At::AwaitOther
            }
            At::Inside => {
                memory.write(TURN, other);
                At::Lower
            }
            At::Lower => {
                memory.write(FLAG.of(i), 0);
                At::Outside
            }
        }
    }
}
