//! Burns & Lynch, "Mutual Exclusion Using Indivisible Reads and Writes", Allerton Conference, 1980,
//! in the form of Lamport, "The Mutual Exclusion Problem", Journal of the ACM 33(2), 1986: one bit
//! a process.
//!
//! One bit for each process is the least that is enough. A process that wants to enter raises its
//! bit and looks at all others. It steps back for a process with a lower number: it lowers its bit,
//! waits until that one's bit is down, and begins again. Then it waits for the processes with
//! higher numbers, without stepping back.
//!
//! # What holds
//!
//! Proved by exploring every schedule of up to four processes: exclusion and no deadlock. Does not
//! hold: that every process gets in, because a process may have to step back for lower ones again
//! and again; only process 0 never does.
//!
//! # For any number of processes
//!
//! Exclusion holds for any number of processes. A process that enters has raised its bit, and kept
//! it up, before it looked at the others. Of two processes inside, the later to raise its bit would
//! have seen the other.

use super::prelude::*;

shared! {
    /// 1 while the process wants to enter.
    BIT: bit[n] = 0;
}

places! {
    outside: Outside;
    waiting: LookBelow { j }, StepBack { j }, AwaitBelow { j }, RaiseAgain, AwaitAbove { j };
    inside: Inside;
}

/// The one-bit algorithm.
///
/// ```
/// # use doorway_threads::{Room, algorithms::one_bit::OneBit};
/// let mut room: Room<OneBit, String> = Room::new(2, String::new())?;
/// let [mut first, mut second] = room.split()?;
/// second.lock().push_str("one ");
/// first.lock().push_str("bit");
/// assert_eq!(room.into_inner(), "one bit");
/// # Ok::<(), doorway_threads::RoomError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum OneBit {}

impl Algorithm for OneBit {
    type At = At;

    const INFO: Info = Info {
        name: "one-bit",
        origin: "Burns and Lynch 1980, Lamport 1986",
        registers: "n bits",
        fences: "a",
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
                memory.write(BIT.of(i), 1);
                memory.fence('a');
                look_from(0, me)
            }
            At::LookBelow { j } if memory.read(BIT.of(j)) == 0 => look_from(j + 1, me),
            At::LookBelow { j } => At::StepBack { j },
            At::StepBack { j } => {
                memory.write(BIT.of(i), 0);
                At::AwaitBelow { j }
            }
            At::AwaitBelow { j } if memory.read(BIT.of(j)) == 0 => At::RaiseAgain,
            At::AwaitAbove { j } if memory.read(BIT.of(j)) == 0 => look_from(j + 1, me),
            At::AwaitBelow { .. } | At::AwaitAbove { .. } => {
                memory.wait();
                at
            }
            At::Inside => {
                memory.write(BIT.of(i), 0);
                At::Outside
            }
        }
    }
}

/// Look at the next of the others from `j` on; after the last one, enter.
fn look_from(j: Word, me: Process) -> At {
    match me.others_from(j) {
        Some(j) if j < me.i => At::LookBelow { j },
        Some(j) => At::AwaitAbove { j },
        None => At::Inside,
    }
}
