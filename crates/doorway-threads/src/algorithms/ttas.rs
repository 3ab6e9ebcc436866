//! Rudolph & Segall, "Dynamic Decentralized Cache Schemes for MIMD Parallel Processors", ISCA,
//! 1984: test, and test-and-set. Look first, and exchange only what looks free.
//!
//! Waiting reads a copy in the own cache, and only a release makes all of them exchange, where
//! plain test-and-set would take the line from its holder with every turn of the loop.
//!
//! Proved by exploring every schedule of up to four processes: exclusion and no deadlock. Not true
//! of it: that everyone gets in.
//!
//! For any number, exclusion holds because nobody enters by looking: it takes an exchange that
//! finds the lock free, and from one release to the next only the first exchange does.

use super::prelude::*;

shared! {
    /// Is somebody inside?
    LOCK: lock = 0;
}

places! {
    outside: Outside;
    waiting: Look, Grab;
    inside: Inside;
}

/// A lock by test, and test-and-set.
///
/// ```
/// # use doorway_threads::{Room, algorithms::ttas::TestAndTestAndSet};
/// let mut room: Room<TestAndTestAndSet, u32> = Room::new(8, 0)?;
/// std::thread::scope(|scope| {
///     for mut seat in room.seats() {
///         scope.spawn(move || *seat.lock() += 1);
///     }
/// });
/// assert_eq!(room.into_inner(), 8);
/// # Ok::<(), doorway_threads::RoomError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum TestAndTestAndSet {}

impl Algorithm for TestAndTestAndSet {
    type At = At;

    const INFO: Info = Info {
        name: "ttas",
        origin: "Rudolph and Segall 1984",
        registers: "1 bit",
        primitive: Primitive::Exchange,
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
            At::Outside | At::Grab if memory.swap(LOCK, 1) == 0 => At::Inside,
            At::Outside | At::Grab => At::Look,
            At::Look if memory.read(LOCK) == 0 => At::Grab,
            At::Look => {
                memory.wait();
                At::Look
            }
            At::Inside => {
                memory.write(LOCK, 0);
                At::Outside
            }
        }
    }
}

#[allow(unsafe_code, reason = "what is undone here is all that was done")]
// SAFETY: what was raised is lowered as by one who leaves, or nothing was changed at all.
unsafe impl Withdraws for TestAndTestAndSet {
    /// Nothing was changed, so nothing is to be undone.
    fn withdraw(_: At) -> At {
        At::Outside
    }
}
