//! Gottlieb, Lubachevsky & Rudolph, "Basic Techniques for the Efficient Coordination of Very Large
//! Numbers of Cooperating Sequential Processors", ACM TOPLAS 5(2), 1983: a lock by replace-add, the
//! addition that returns its result, by testing, taking and undoing.
//!
//! One unit lies in a register. A process that sees it there takes one away. If there was none left
//! because another was faster, the process puts back what it took and looks again. The register may
//! fall below zero meanwhile.
//!
//! The look before the taking is necessary: without it, two processes may take in vain and put back
//! in turns for ever, as the crate's tests show.
//!
//! # What holds
//!
//! Proved by exploring every schedule of up to four processes: exclusion and no deadlock. Does not
//! hold: that every process gets in.
//!
//! # For any number of processes
//!
//! Exclusion holds for any number of processes. No process puts back what it has not taken, so the
//! register never rises above one, and the process inside keeps the unit: until it leaves, the
//! register holds at most zero, and no taking finds a unit. One process gets in: if none is inside,
//! the register comes up to one when those that were too late have put back theirs, and the first
//! taking after that finds it.

use super::prelude::*;

shared! {
    /// One, less what the process inside and the processes that were too late have taken.
    UNITS: units = 1;
}

places! {
    outside: Outside;
    waiting: Look, Take, Undo;
    inside: Inside;
}

/// A lock by replace-add.
///
/// ```
/// # use doorway_threads::{Room, algorithms::replace_add::ReplaceAdd};
/// let mut room: Room<ReplaceAdd, u32> = Room::new(2, 0)?;
/// let [mut one, mut two] = room.split()?;
/// let inside = one.lock();
/// assert!(two.try_lock().is_none());
/// drop(inside);
/// assert!(two.try_lock().is_some());
/// # Ok::<(), doorway_threads::RoomError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum ReplaceAdd {}

impl Algorithm for ReplaceAdd {
    type At = At;

    const INFO: Info = Info {
        name: "replace-add",
        origin: "Gottlieb, Lubachevsky and Rudolph 1983",
        registers: "1 word",
        primitive: Primitive::Add,
        claims: Claims::DEADLOCK_FREE,
        ..Info::LOCK
    };
    const SHARED: &'static [RegisterArray] = SHARED;

    fn outside(_: Process) -> At {
        At::Outside
    }

    #[inline]
    fn step(at: At, _: Process, memory: &mut impl Memory) -> At {
        match at {
            At::Outside | At::Look if memory.read(UNITS) == 1 => At::Take,
            At::Outside | At::Look => {
                memory.wait();
                At::Look
            }
            At::Take if memory.add(UNITS, -1) == 1 => At::Inside,
            At::Take => At::Undo,
            At::Undo => {
                memory.add(UNITS, 1);
                At::Look
            }
            At::Inside => {
                memory.add(UNITS, 1);
                At::Outside
            }
        }
    }
}

#[allow(unsafe_code, reason = "a lock goes on from where this leads")]
// SAFETY: a process that waits here has changed nothing that others could see.
unsafe impl Withdraws for ReplaceAdd {
    /// Go outside: nothing was changed, so nothing has to be undone.
    fn withdraw(_: At) -> At {
        At::Outside
    }
}
