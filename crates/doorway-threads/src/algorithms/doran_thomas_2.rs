//! Doran & Thomas, "Variants of the Software Solution to Mutual Exclusion", Information Processing
//! Letters 10(4/5), 1980, the second of two: after you, but without stepping back.
//!
//! Each process raises a flag and looks at the other's. If both flags are up, each process says
//! "after you". The one that has the turn waits only until the other has said it too, while the
//! other waits until the first has left. Since no flag is lowered before its owner was inside, no
//! process is overtaken twice.
//!
//! # What holds
//!
//! Proved by exploring every schedule: exclusion, no deadlock, no lockout, at most one overtaking.
//! Does not hold: first come, first served.

use super::prelude::*;

shared! {
    /// 1 while the process wants to enter.
    FLAG: flag[n] = 0;
    /// 1 while the process says "after you".
    AFTER: after[n] = 0;
    /// The process that goes first if both say so.
    TURN: turn = 0;
}

places! {
    outside: Outside;
    waiting: Look, SayAfterYou, LookAgain, AskTurn, AskAfterYou, TakeBack;
    inside: Inside;
    leaving: Lower;
}

/// The second algorithm of Doran and Thomas.
///
/// ```
/// # use doorway_threads::{Room, algorithms::doran_thomas_2::DoranThomas2};
/// let mut room: Room<DoranThomas2, i32> = Room::new(2, 0)?;
/// let [mut up, mut down] = room.split()?;
/// std::thread::scope(|scope| {
///     scope.spawn(move || (0..500).for_each(|_| *up.lock() += 1));
///     scope.spawn(move || (0..500).for_each(|_| *down.lock() -= 1));
/// });
/// assert_eq!(room.into_inner(), 0);
/// # Ok::<(), doorway_threads::RoomError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum DoranThomas2 {}

impl Algorithm for DoranThomas2 {
    type At = At;

    const INFO: Info = Info {
        name: "doran-thomas-2",
        origin: "Doran and Thomas 1980",
        most: 2,
        registers: "4 bits, 1 shared bit",
        fences: "a",
        claims: Claims { fifo: |_| false, ..Claims::FIFO },
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
            At::Look => At::SayAfterYou,
            At::SayAfterYou => {
                memory.write(AFTER.of(i), 1);
                At::LookAgain
            }
            At::LookAgain if memory.read(FLAG.of(other)) == 0 => At::TakeBack,
            At::LookAgain => At::AskTurn,
            At::AskTurn if memory.read(TURN) == i => At::AskAfterYou,
            At::AskTurn => {
                memory.wait();
                At::LookAgain
            }
            At::AskAfterYou if memory.read(AFTER.of(other)) == 1 => At::TakeBack,
            At::AskAfterYou => {
                memory.wait();
                At::LookAgain
            }
            At::TakeBack => {
                memory.write(AFTER.of(i), 0);
                At::Inside
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
