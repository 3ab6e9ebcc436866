//! Lamport, "A Fast Mutual Exclusion Algorithm", ACM Transactions on Computer Systems 5(1), 1987:
//! who meets nobody enters with five accesses and leaves with two, however many processes there
//! are.
//!
//! Who wants to enter puts its name into `x`, looks whether somebody holds `y`, and puts its name
//! there too. If `x` still has its name, nobody else can come this far before it has left. If not,
//! it waits until all who were on their way have decided, which they tell with a bit each; then the
//! one whose name was left in `y` enters.
//!
//! Proved by exploring every schedule of up to four processes: exclusion and no deadlock. Exclusion
//! was explored once with five too, which the tests do not repeat; for any number it rests on the
//! proof that Lamport gave with it. Not true of it: that everyone gets in, for the fast may come
//! again before the slow has looked.

use super::prelude::*;

/// Where no name is.
const NOBODY: Word = Word::MAX;

shared! {
    /// Who is on its way.
    BUSY: busy[n] = 0;
    /// The last one that came.
    X: x = NOBODY;
    /// The last one that found nobody before it.
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
    const SHARED: &'static [Shared] = SHARED;

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

/// Wait for the next of the others from `j` on; after the last one, see who is left in `y`.
fn await_others(j: Word, me: Process) -> At {
    match me.others_from(j) {
        Some(j) => At::AwaitOthers { j },
        None => At::AskY,
    }
}
