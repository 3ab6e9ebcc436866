//! Dijkstra, "Cooperating Sequential Processes", Technological University Eindhoven, 1965: the
//! semaphore with one unit, the lock whose waiting processes sleep.
//!
//! A process that wants to enter takes the unit, or sleeps until it is given one. A process that
//! leaves gives the unit back, to one that sleeps if there is any. Nothing is said about which of
//! them: a semaphore of this kind is called weak.
//!
//! # What holds
//!
//! Proved by exploring every schedule of up to four processes: exclusion and no deadlock, and for
//! two processes no lockout and first come, first served. Does not hold among three or more: that
//! every process gets in, because two of them may give the unit to each other for ever.
//!
//! # For any number of processes
//!
//! Exclusion holds for any number of processes because there is one unit, which goes to one process
//! at a time, and the process inside has it. One process gets in because a unit that is given back
//! while a process sleeps is given to a sleeper.

use super::prelude::*;

shared! {
    /// The unit of the process inside.
    UNIT: unit = 1;
}

places! {
    outside: Outside;
    waiting: Sleep;
    inside: Inside;
}

/// A lock by one semaphore.
///
/// ```
/// # use doorway_threads::{Room, algorithms::semaphore::OneSemaphore};
/// let mut room: Room<OneSemaphore, Vec<usize>> = Room::new(4, vec![])?;
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
pub enum OneSemaphore {}

impl Algorithm for OneSemaphore {
    type At = At;

    const INFO: Info = Info {
        name: "semaphore",
        origin: "Dijkstra 1965",
        registers: "1 semaphore",
        primitive: Primitive::Semaphore,
        claims: Claims {
            lockout_free: |n| n == 2,
            fifo: |n| n == 2,
            bypass: |n| match n {
                2 => Bypass::AtMost { all: 1, one: 1 },
                _ => Bypass::Unbounded,
            },
            ..Claims::DEADLOCK_FREE
        },
        ..Info::LOCK
    };
    const SHARED: &'static [RegisterArray] = SHARED;

    fn outside(_: Process) -> At {
        At::Outside
    }

    #[inline]
    fn step(at: At, _: Process, memory: &mut impl Memory) -> At {
        match at {
            At::Outside | At::Sleep if memory.down(UNIT) => At::Inside,
            At::Outside | At::Sleep => At::Sleep,
            At::Inside => {
                memory.up(UNIT);
                At::Outside
            }
        }
    }
}
