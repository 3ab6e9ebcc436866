//! Rudolph & Segall, "Dynamic Decentralized Cache Schemes for MIMD Parallel Processors", ISCA,
//! 1984: test, and test-and-set. Look first, and exchange only what looks free.
//!
//! A waiting process reads a copy in its own cache, and only a release makes all of them exchange.
//! Plain test-and-set would take the cache line from its holder in every iteration of the loop.
//!
//! # What holds
//!
//! Proved by exploring every schedule of up to four processes: exclusion and no deadlock. Does not
//! hold: that every process gets in.
//!
//! # For any number of processes
//!
//! Exclusion holds for any number of processes because no process enters by looking: it takes an
//! exchange that finds the lock free, and from one release to the next only the first exchange
//! does.

use super::prelude::*;

shared! {
    /// 1 while a process is inside.
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
    const SHARED: &'static [RegisterArray] = SHARED;

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

#[allow(unsafe_code, reason = "a lock goes on from where this leads")]
// SAFETY: a process that waits here has changed nothing that others could see.
unsafe impl Withdraws for TestAndTestAndSet {
    /// Go outside: nothing was changed, so nothing has to be undone.
    fn withdraw(_: At) -> At {
        At::Outside
    }
}
