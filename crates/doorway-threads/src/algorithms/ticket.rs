//! The ticket lock, after Reed & Kanodia, "Synchronization with Eventcounts and Sequencers",
//! Communications of the ACM 22(2), 1979: draw a number, and wait until it is called.
//!
//! One atomic addition gives every process a number of its own, and a process that leaves calls the
//! next number. Both counters may wrap around, as long as fewer processes wait than there are
//! numbers.
//!
//! # What holds
//!
//! Proved by exploring every schedule of up to four processes with counters of eight bits:
//! exclusion, no deadlock, no lockout, each other process enters at most once before, first come,
//! first served. Does not hold: that a waiting process may give up, because its number would be
//! called, and no process would come.
//!
//! # For any number of processes
//!
//! Exclusion holds for any number of processes. All that wait or are inside have different numbers,
//! one of which is called at a time, and only the process inside calls the next. Every process gets
//! in because the numbers are called in the order in which they were drawn, and none is left out.

use super::prelude::*;

shared! {
    /// The next number to be drawn.
    NEXT: next = 0;
    /// The number that may enter.
    SERVING: serving = 0;
}

places! {
    outside: Outside;
    waiting: Wait { ticket };
    inside: Inside { ticket };
}

/// The ticket lock.
///
/// ```
/// # use doorway_threads::{Room, algorithms::ticket::Ticket};
/// let mut room: Room<Ticket, Vec<usize>> = Room::new(3, vec![])?;
/// std::thread::scope(|scope| {
///     for (number, mut seat) in room.seats().enumerate() {
///         scope.spawn(move || seat.lock().push(number));
///     }
/// });
/// let mut entered = room.into_inner();
/// entered.sort_unstable();
/// assert_eq!(entered, [0, 1, 2]);
/// # Ok::<(), doorway_threads::RoomError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Ticket {}

impl Algorithm for Ticket {
    type At = At;

    const INFO: Info = Info {
        name: "ticket",
        origin: "Reed and Kanodia 1979",
        registers: "2 words",
        primitive: Primitive::Add,
        claims: Claims::FIFO,
        ..Info::LOCK
    };
    const SHARED: &'static [RegisterArray] = SHARED;

    fn outside(_: Process) -> At {
        At::Outside
    }

    #[inline]
    fn step(at: At, _: Process, memory: &mut impl Memory) -> At {
        match at {
            At::Outside => At::Wait { ticket: memory.add(NEXT, 1) },
            At::Wait { ticket } if memory.read(SERVING) == ticket => At::Inside { ticket },
            At::Wait { ticket } => {
                memory.wait();
                At::Wait { ticket }
            }
            At::Inside { ticket } => {
                memory.write(SERVING, ticket.wrapping_add(1));
                At::Outside
            }
        }
    }
}
