//! A lock by increment, folklore (in Raynal, "Algorithms for Mutual Exclusion", MIT Press, 1986,
//! chapter 3): it looks before it counts, and undoes what it counted in vain.
//!
//! A process that wants to enter waits until the count is zero, and adds one. If the count was zero
//! before, the process is inside. If not, it takes the one away and waits again. Without the look
//! at the count, two processes could hinder each other for ever
//! ([`increment_undo`](super::increment_undo)). With the look, a process that has undone its
//! addition lets the others finish before it tries again.
//!
//! # What holds
//!
//! Proved by exploring every schedule of up to four processes: exclusion and no deadlock. Does not
//! hold: that every process gets in.
//!
//! # For any number of processes
//!
//! Exclusion holds for any number of processes. The process inside takes its one away only when it
//! leaves: until then the count is above zero, and no addition lets another in. One process gets
//! in: if none is inside, the count comes down to zero when those that failed have undone their
//! additions, and the first addition after that finds it there.

use super::prelude::*;

shared! {
    /// How many processes are inside or have added in vain.
    COUNT: count = 0;
}

places! {
    outside: Outside;
    waiting: Look, Add, Undo;
    inside: Inside;
}

/// A lock by increment that looks first.
///
/// ```
/// # use doorway_threads::{Room, algorithms::increment_await::IncrementAwait};
/// let mut room: Room<IncrementAwait, u32> = Room::new(2, 0)?;
/// let [mut one, mut two] = room.split()?;
/// let inside = one.lock();
/// assert!(two.try_lock().is_none());
/// drop(inside);
/// assert!(two.try_lock().is_some());
/// # Ok::<(), doorway_threads::RoomError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum IncrementAwait {}

impl Algorithm for IncrementAwait {
    type At = At;

    const INFO: Info = Info {
        name: "increment-await",
        origin: "folklore, in Raynal 1986",
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
            At::Outside | At::Look if memory.read(COUNT) == 0 => At::Add,
            At::Outside | At::Look => {
                memory.wait();
                At::Look
            }
            At::Add if memory.add(COUNT, 1) == 0 => At::Inside,
            At::Add => At::Undo,
            At::Undo => {
                memory.add(COUNT, -1);
                At::Look
            }
            At::Inside => {
                memory.add(COUNT, -1);
                At::Outside
            }
        }
    }
}

#[allow(unsafe_code, reason = "a lock goes on from where this leads")]
// SAFETY: a process that waits here has changed nothing that others could see.
unsafe impl Withdraws for IncrementAwait {
    /// Go outside: nothing was changed, so nothing has to be undone.
    fn withdraw(_: At) -> At {
        At::Outside
    }
}
