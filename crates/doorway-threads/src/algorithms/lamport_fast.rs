//! Lamport, "A Fast Mutual Exclusion Algorithm", ACM Transactions on Computer Systems 5(1), 1987: a
//! process that meets no other enters with five accesses and leaves with two, for any number of
//! processes.
//!
//! A process that wants to enter puts its name into `x`, looks whether another holds `y`, and puts
//! its name there too. If `x` still has its name, no other process can come this far before it has
//! left. If not, it waits until all processes that were on their way have decided, which each tells
//! with a bit. Then the one whose name was left in `y` enters.
//!
//! # What holds
//!
//! Proved by exploring every schedule of up to four processes: exclusion and no deadlock. Exclusion
//! was explored once with five too, which the tests do not repeat; for any number it rests on the
//! proof that Lamport gave with the algorithm. Does not hold: that every process gets in, because a
//! fast one may come again before a slow one has looked.

use super::prelude::*;

/// The value of a register that holds no name.
const NOBODY: Word = Word::MAX;

shared! {
    /// 1 while the process is on its way in.
    BUSY: busy[n] = 0;
    /// The process that came last.
    X: x = NOBODY;
    /// The last process that found `y` free.
    Y: y = NOBODY;
}

places! {
    outside: Outside;
    waiting:
        SignX,
        AskFree,
        StepBack,
        AwaitFree,
        RaiseAgain,
        SignY,
        AskX,
        Decide,
        AwaitOthers { j },
        AskY;
    inside: Inside;
    leaving: Lower;
}

/// Lamport's fast algorithm.
///
/// ```
/// # use doorway_threads::{Room, algorithms::lamport_fast::LamportFast};
/// let mut room: Room<LamportFast, u32> = Room::new(1000, 0)?;
/// let mut only = room.seats().last().unwrap();
/// for _ in 0..1000 {
///     *only.lock() += 1;
/// }
/// assert_eq!(room.into_inner(), 1000);
/// # Ok::<(), doorway_threads::RoomError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum LamportFast {}

impl Algorithm for LamportFast {
    type At = At;

    const INFO: Info = Info {
        name: "lamport-fast",
        origin: "Lamport 1987",
        registers: "n bits, 2 shared numbers",
        fences: "ab",
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
                memory.write(BUSY.of(i), 1);
                At::SignX
            }
            At::SignX => {
                memory.write(X, i);
                memory.fence('a');
                At::AskFree
            }
            At::AskFree if memory.read(Y) == NOBODY => At::SignY,
            At::AskFree => At::StepBack,
            At::StepBack => {
                memory.write(BUSY.of(i), 0);
                At::AwaitFree
            }
            At::AwaitFree if memory.read(Y) == NOBODY => At::RaiseAgain,
            At::AwaitFree => {
                memory.wait();
                At::AwaitFree
            }
            At::SignY => {
                memory.write(Y, i);
                memory.fence('b');
                At::AskX
            }
            At::AskX if memory.read(X) == i => At::Inside,
            At::AskX => At::Decide,
            At::Decide => {
                memory.write(BUSY.of(i), 0);
                await_others(0, me)
            }
            At::AwaitOthers { j } if memory.read(BUSY.of(j)) == 0 => await_others(j + 1, me),
            At::AwaitOthers { .. } => {
                memory.wait();
                at
            }
            At::AskY if memory.read(Y) == i => At::Inside,
            At::AskY => At::AwaitFree,
            At::Inside => {
                memory.write(Y, NOBODY);
                At::Lower
            }
            At::Lower => {
                memory.write(BUSY.of(i), 0);
                At::Outside
            }
        }
    }
}

/// Wait for the next of the others from `j` on; after the last one, see which name is left in `y`.
fn await_others(j: Word, me: Process) -> At {
    match me.others_from(j) {
        Some(j) => At::AwaitOthers { j },
        None => At::AskY,
    }
}
