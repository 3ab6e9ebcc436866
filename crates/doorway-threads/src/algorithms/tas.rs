//! Test-and-set, an instruction of the IBM System/360 of 1964: mark the lock as taken, and learn in
//! the same access whether it was free.
//!
//! A process that finds that its mark was the first is inside, and removes the mark to leave. Every
//! other process marks again, which changes nothing.
//!
//! A lock instruction (`lock`) has this loop inside the instruction.
//!
//! # What holds
//!
//! Proved by exploring every schedule of up to four processes: exclusion and no deadlock. Does not
//! hold: that every process gets in.
//!
//! # For any number of processes
//!
//! Exclusion holds for any number of processes. Only the process inside removes the mark, and from
//! one removal to the next a single access finds it missing: the first that sets it again.

use super::prelude::*;

shared! {
    /// 1 while a process is inside.
    LOCK: lock = 0;
}

places! {
    outside: Outside;
    waiting: Set;
    inside: Inside;
}

/// A lock by test-and-set.
///
/// ```
/// # use doorway_threads::{Room, algorithms::tas::TestAndSet};
/// let mut room: Room<TestAndSet, u32> = Room::new(2, 0)?;
/// let [mut one, mut two] = room.split()?;
/// let inside = one.lock();
/// assert!(two.try_lock().is_none());
/// drop(inside);
/// assert!(two.try_lock().is_some());
/// # Ok::<(), doorway_threads::RoomError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum TestAndSet {}

impl Algorithm for TestAndSet {
    type At = At;

    const INFO: Info = Info {
        name: "tas",
        origin: "IBM System/360, 1964",
        registers: "1 bit",
        primitive: Primitive::Exchange,
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
            At::Outside | At::Set if memory.swap(LOCK, 1) == 0 => At::Inside,
            At::Outside | At::Set => {
                memory.wait();
                At::Set
            }
            At::Inside => {
                memory.write(LOCK, 0);
                At::Outside
            }
        }
    }
}

#[allow(unsafe_code, reason = "a lock goes on from where this leads")]
// SAFETY: a process that waits here has changed nothing that others could see.
unsafe impl Withdraws for TestAndSet {
    /// Go outside: nothing was changed, so nothing has to be undone.
    fn withdraw(_: At) -> At {
        At::Outside
    }
}
