//! A lock instruction, in Raynal, "Algorithms for Mutual Exclusion", MIT Press, 1986, section
//! 3.2.3: wait until the mark is gone and set it, all within one instruction.
//!
//! A process that has carried out the instruction is inside, and removes the mark to leave. The
//! book's wording was not available; this is the usual form.
//!
//! # What holds
//!
//! Proved by exploring every schedule of up to four processes: exclusion and no deadlock. Does not
//! hold: that every process gets in.
//!
//! # For any number of processes
//!
//! Exclusion holds for any number of processes. Only the process inside removes the mark, and from
//! one removal to the next a single instruction ends: the first that finds the mark gone and sets
//! it again.
//!
//! # The difference from test-and-set
//!
//! Test-and-set (`tas`) always ends, and answers whether the mark was there. The loop around it is
//! part of the program, which may do something else between two attempts: give up, count, or let
//! another process use the processor. A lock instruction ends only when it has succeeded, so it has
//! no answer, and the loop is in the processor. This has three consequences:
//!
//! - A process that waits cannot give up: there is no `try_lock`.
//! - A process that waits changes nothing. An attempt of `tas` that fails writes the mark again,
//!   and takes the cache line from the process inside; a lock instruction writes once.
//! - A process that waits keeps its processor. Where processes outnumber processors, `tas` lets the
//!   process inside run between two attempts, and a lock instruction that cannot be interrupted
//!   does not. (The locks here are not instructions: they can be interrupted.)
//!
//! Other processes see only the access that succeeds, so in every schedule both have the same
//! states and the same properties. The explorer finds that.
//!
//! Processors of today have no such instruction. Here a lock repeats a compare-and-exchange, which
//! writes only if it finds the mark gone.

use super::prelude::*;

shared! {
    /// 1 while a process is inside.
    MARK: mark = 0;
}

places! {
    outside: Outside;
    waiting: Lock;
    inside: Inside;
}

/// A lock by a lock instruction.
///
/// ```
/// # use doorway_threads::{Room, algorithms::lock::LockInstruction};
/// let mut room: Room<LockInstruction, u32> = Room::new(8, 0)?;
/// std::thread::scope(|scope| {
///     for mut seat in room.seats() {
///         scope.spawn(move || *seat.lock() += 1);
///     }
/// });
/// assert_eq!(room.into_inner(), 8);
/// # Ok::<(), doorway_threads::RoomError>(())
/// ```
///
/// A process that waits in the instruction cannot give up:
///
/// ```compile_fail,E0277
/// # use doorway_threads::{Room, algorithms::lock::LockInstruction};
/// let mut room: Room<LockInstruction, u32> = Room::new(2, 0).unwrap();
/// let [mut one, _two] = room.split().unwrap();
/// one.try_lock();
/// ```
#[derive(Clone, Copy, Debug)]
pub enum LockInstruction {}

impl Algorithm for LockInstruction {
    type At = At;

    const INFO: Info = Info {
        name: "lock",
        origin: "folklore, in Raynal 1986",
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
            At::Outside | At::Lock if memory.replace(MARK, 0, 1) => At::Inside,
            At::Outside | At::Lock => {
                memory.wait();
                At::Lock
            }
            At::Inside => {
                memory.write(MARK, 0);
                At::Outside
            }
        }
    }
}
