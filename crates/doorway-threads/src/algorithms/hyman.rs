//! Hyman, "Comments on a Problem in Concurrent Programming Control", Communications of the ACM
//! 9(1), 1966, which is wrong and is kept as a warning: a model, not a lock.
//!
//! A process that wants to enter waits until the other does not, and takes the turn. Between its
//! look at the other's flag and its taking of the turn, the other process may come and enter.
//!
//! # What holds
//!
//! Refuted by exploring every schedule of its two processes: both are inside after seven steps.

use super::prelude::*;

shared! {
    /// 0 while the process wants to enter.
    B: b[n] = 1;
    /// The process that has the turn.
    K: k = 0;
}

places! {
    outside: Outside;
    waiting: AskTurn, AwaitOther, Take;
    inside: Inside;
}

/// Hyman's algorithm. No lock can be made of it:
///
/// ```compile_fail,E0277
/// # use doorway_threads::{Room, algorithms::hyman::Hyman};
/// let room: Room<Hyman, u32> = Room::new(2, 0).unwrap();
/// ```
///
/// The explorer shows how both processes get inside:
///
/// ```
/// use doorway_threads::{algorithms::hyman::Hyman, check::Check};
///
/// let report = Check::of::<Hyman>(2).run();
/// assert_eq!(report.exclusion, Some(false));
/// assert_eq!(report.schedule.len(), 7);
/// assert_eq!(report.schedule[6].to_string(), "P1 reads k = 1, enters");
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Hyman {}

impl Algorithm for Hyman {
    type At = At;

    const INFO: Info = Info {
        name: "hyman",
        origin: "Hyman 1966",
        most: 2,
        registers: "2 bits, 1 shared bit",
        claims: Claims::LOCKOUT_FREE,
        refuted_from: Some(2),
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
                memory.write(B.of(i), 0);
                At::AskTurn
            }
            At::AskTurn if memory.read(K) == i => At::Inside,
            At::AskTurn => At::AwaitOther,
            At::AwaitOther if memory.read(B.of(other)) == 1 => At::Take,
            At::AwaitOther => {
                memory.wait();
                At::AwaitOther
            }
            At::Take => {
                memory.write(K, i);
                At::AskTurn
            }
            At::Inside => {
                memory.write(B.of(i), 1);
                At::Outside
            }
        }
    }
}
