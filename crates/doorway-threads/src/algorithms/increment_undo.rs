//! A lock by increment whose failed attempts are undone, folklore (in Raynal, "Algorithms for
//! Mutual Exclusion", MIT Press, 1986, chapter 3): a model only, since it can livelock.
//!
//! A process that wants to enter adds one. If the count was zero before, the process is inside. If
//! not, it takes the one away and tries again. Nothing grows, but processes that fail hinder each
//! other.
//!
//! # What holds
//!
//! Proved by exploring every schedule of up to four processes: exclusion. Refuted: that there is no
//! deadlock. Two processes, neither of them inside, add and undo in turns for ever, in a cycle of
//! four accesses. [`increment_await`](super::increment_await) repairs it.

use super::prelude::*;

shared! {
    /// How many processes are inside or have added in vain.
    COUNT: count = 0;
}

places! {
    outside: Outside;
    waiting: Add, Undo;
    inside: Inside;
}

/// A lock by increment whose failed attempts are undone. No lock can be made of it:
///
/// ```compile_fail,E0277
/// # use doorway_threads::{Room, algorithms::increment_undo::IncrementUndo};
/// let room: Room<IncrementUndo, u32> = Room::new(2, 0).unwrap();
/// ```
///
/// The explorer shows the cycle in which no process enters:
///
/// ```
/// use doorway_threads::{algorithms::increment_undo::IncrementUndo, check::Check};
///
/// let report = Check::of::<IncrementUndo>(2).run();
/// assert_eq!((report.exclusion, report.deadlock_free), (Some(true), Some(false)));
/// assert_eq!(report.cycle.len(), 4);
/// assert!(report.cycle.iter().all(|line| !line.enters));
/// ```
#[derive(Clone, Copy, Debug)]
pub enum IncrementUndo {}

impl Algorithm for IncrementUndo {
    type At = At;

    const INFO: Info = Info {
        name: "increment-undo",
        origin: "folklore, in Raynal 1986",
        registers: "1 word",
        primitive: Primitive::Add,
        // What one would expect, and what is refuted.
        claims: Claims::DEADLOCK_FREE,
        refuted_from: Some(2),
        ..Info::LOCK
    };
    const SHARED: &'static [RegisterArray] = SHARED;

    fn outside(_: Process) -> At {
        At::Outside
    }

    #[inline]
    fn step(at: At, _: Process, memory: &mut impl Memory) -> At {
        match at {
            At::Outside | At::Add if memory.add(COUNT, 1) == 0 => At::Inside,
            At::Outside | At::Add => At::Undo,
            At::Undo => {
                memory.add(COUNT, -1);
                At::Add
            }
            At::Inside => {
                memory.add(COUNT, -1);
                At::Outside
            }
        }
    }
}
