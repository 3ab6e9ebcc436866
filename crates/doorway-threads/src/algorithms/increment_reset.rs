//! A lock by increment in its simplest form, folklore (in Raynal, "Algorithms for Mutual
//! Exclusion", MIT Press, 1986, chapter 3): who counts from zero to one is inside.
//!
//! Who wants to enter adds one, in one access that nothing comes between, until the count was zero
//! before; who leaves sets it back to zero. Those who wait make the count grow, so this is
//! exclusive only while it does not go around the end, which with eight bits takes 257 accesses
//! and with 64 bits some centuries: on processors with shorter words there is no such lock.
//!
//! Waiting is adding here, and no access of it merely looks: a thread that waits lets no other run
//! of its own accord. [`increment_await`](super::increment_await) looks first, and does.
//!
//! Proved by exploring every schedule of up to four processes, as far as the count is at most nine:
//! exclusion and no deadlock. Not true of it: that everyone gets in.
//!
//! For any number, exclusion holds, as long as the count does not go around, because only who is
//! inside sets it to zero, and from one time to the next a single addition finds it there.

use super::prelude::*;

shared! {
    /// How often someone has asked since the last one left.
    COUNT: count = 0;
}

places! {
    outside: Outside;
    waiting: Add;
    inside: Inside;
}

/// A lock by increment that is reset by who leaves.
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
    const SHARED: &'static [Shared] = SHARED;

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
