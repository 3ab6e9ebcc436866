//! A lock by increment in its simplest form, folklore (in Raynal, "Algorithms for Mutual
//! Exclusion", MIT Press, 1986, chapter 3): the process that counts from zero to one is inside.
//!
//! A process that wants to enter adds one, in one atomic access, until the count was zero before.
//! To leave, it sets the count back to zero. Waiting processes make the count grow, so this is
//! exclusive only while the count does not wrap around. With eight bits that takes 257 accesses,
//! with 64 bits some centuries: on processors with shorter words there is no such lock.
//!
//! Waiting means adding here, and no access of it merely looks: a waiting thread does not let other
//! threads run. [`increment_await`](super::increment_await) looks first, and does.
//!
//! # What holds
//!
//! Proved by exploring every schedule of up to four processes, as far as the count is at most nine:
//! exclusion and no deadlock. Does not hold: that every process gets in.
//!
//! # For any number of processes
//!
//! Exclusion holds for any number of processes as long as the count does not wrap around. Only the
//! process inside sets it to zero, and from one time to the next a single addition finds it there.

use super::prelude::*;

shared! {
    /// How often processes have added since the last one left.
    COUNT: count = 0;
}

places! {
    outside: Outside;
    waiting: Add;
    inside: Inside;
}

/// A lock by increment whose count is reset on leaving.
///
/// ```
/// # use doorway_threads::{Room, algorithms::increment_reset::IncrementReset};
/// let mut room: Room<IncrementReset, Vec<usize>> = Room::new(4, vec![])?;
/// std::thread::scope(|scope| {
///     for (i, mut seat) in room.seats().enumerate() {
///         scope.spawn(move || seat.lock().push(i));
///     }
/// });
/// let mut entered = room.into_inner();
/// entered.sort_unstable();
/// assert_eq!(entered, [0, 1, 2, 3]);
/// # Ok::<(), doorway_threads::RoomError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum IncrementReset {}

impl Algorithm for IncrementReset {
    type At = At;

    const INFO: Info = Info {
        name: "increment-reset",
        origin: "folklore, in Raynal 1986",
        registers: "1 word",
        primitive: Primitive::Add,
        bound: Some(9),
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
            At::Outside | At::Add if memory.add(COUNT, 1) == 0 => At::Inside,
            At::Outside | At::Add => At::Add,
            At::Inside => {
                memory.write(COUNT, 0);
                At::Outside
            }
        }
    }
}
