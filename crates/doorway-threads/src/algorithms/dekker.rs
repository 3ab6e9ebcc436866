//! Dekker, as described in Dijkstra, "Cooperating Sequential Processes", Technological University
//! Eindhoven, 1965: the first solution for two processes.
//!
//! Each process raises a flag and looks at the other's. If both flags are up, the turn decides
//! which process may insist. The other one lowers its flag and waits until the process that leaves
//! gives it the turn.
//!
//! # What holds
//!
//! Proved by exploring every schedule: exclusion, no deadlock, no lockout. Does not hold: a bound
//! on overtaking, because a process that has lowered its flag may be slow to notice that it has the
//! turn, while the other enters again and again.

use super::prelude::*;

shared! {
    /// 1 while the process wants to enter.
    FLAG: flag[n] = 0;
    /// The process that may insist if both want to enter.
    TURN: turn = 0;
}

places! {
    outside: Outside;
    waiting: Look, AskTurn, Withdraw, AwaitTurn, RaiseAgain;
    inside: Inside;
    leaving: Lower;
}

/// Dekker's algorithm.
///
/// ```
/// # use doorway_threads::{Room, algorithms::dekker::Dekker};
/// let mut room: Room<Dekker, Vec<&str>> = Room::new(2, vec![])?;
/// let [mut one, mut two] = room.split()?;
/// one.lock().push("first");
/// two.lock().push("second");
/// assert_eq!(room.into_inner(), ["first", "second"]);
/// # Ok::<(), doorway_threads::RoomError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Dekker {}

impl Algorithm for Dekker {
    type At = At;

    const INFO: Info = Info {
        name: "dekker",
        origin: "Dekker 1965",
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
            At::AskTurn if memory.read(TURN) != i => At::Withdraw,
            At::AskTurn => {
                memory.wait();
                At::Look
            }
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
                At::Look
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
