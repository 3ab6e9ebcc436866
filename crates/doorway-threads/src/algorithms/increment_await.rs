//! A lock by increment, folklore (in Raynal, "Algorithms for Mutual Exclusion", MIT Press, 1986,
//! chapter 3): it looks before it counts, and undoes what it counted in vain.
//!
//! Who wants to enter waits until the count is zero, and adds one. If the count was zero before,
//! it is inside; if not, it takes the one away and waits again. Without the look, two could hinder
//! each other for ever ([`increment_undo`](super::increment_undo)); with it, who undid its one
//! lets the others finish before it tries again.
//!
//! Proved by exploring every schedule of up to four processes: exclusion and no deadlock. Not true
//! of it: that everyone gets in.
//!
//! For any number, exclusion holds because who is inside takes its one away only when it leaves:
//! until then the count is above zero, and no addition lets in. And one gets in: if nobody is
//! inside, the count comes down to zero when those who failed have undone their ones, and the first
//! addition after that finds it there.

use super::prelude::*;

shared! {
    /// How many are inside or have asked in vain.
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
    const SHARED: &'static [Shared] = SHARED;

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

#[allow(unsafe_code, reason = "what is undone here is all that was done")]
// SAFETY: what was raised is lowered as by one who leaves, or nothing was changed at all.
unsafe impl Withdraws for IncrementAwait {
    /// Nothing was changed, so nothing is to be undone.
    fn withdraw(_: At) -> At {
        At::Outside
    }
}
