//! Hehner & Shyamasundar, "An Implementation of P and V", Information Processing Letters 12(4),
//! 1981: the bakery with numbers alone.
//!
//! Lamport's bakery asks two things of each rival: is it choosing, and what is its number? Here one
//! number answers both. It is infinite while a process does not want to enter, so that every other
//! goes before it. It is zero while the process chooses, so that every other waits for it. A
//! process that has chosen waits for each of the others until its own number is the lower one.
//!
//! # What holds
//!
//! Proved by exploring every schedule of up to three processes with numbers of up to seven:
//! exclusion, no deadlock, no lockout, first come, first served after the doorway, and no process
//! enters twice before one that has passed the doorway. Does not hold: a bound on the numbers. They
//! grow as long as some process always wants to enter, and the lock panics before a number becomes
//! infinite.
//!
//! # For any number of processes
//!
//! Exclusion holds for any number of processes. The process inside has found the number of each
//! other process later than its own, so that the other was not choosing. A process that begins to
//! choose after that sees the number and takes a later one.

use super::prelude::*;

/// The number of a process that does not want to enter.
const INFINITE: Word = Word::MAX;

shared! {
    /// The number of each process; 0 while it chooses one.
    NUMBER: number[n] = INFINITE;
}

places! {
    outside: Outside;
    doorway: Survey { j, most }, Take { ticket };
    waiting: AwaitNumber { j, ticket };
    inside: Inside;
}

/// The bakery of Hehner and Shyamasundar.
///
/// ```
/// # use doorway_threads::{Room, algorithms::hehner_shyamasundar::HehnerShyamasundar};
/// let mut room: Room<HehnerShyamasundar, u32> = Room::new(8, 0)?;
/// for mut seat in room.seats() {
///     *seat.lock() += 1;
/// }
/// assert_eq!(room.into_inner(), 8);
/// # Ok::<(), doorway_threads::RoomError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum HehnerShyamasundar {}

impl Algorithm for HehnerShyamasundar {
    type At = At;

    const INFO: Info = Info {
        name: "hehner-shyamasundar",
        origin: "Hehner and Shyamasundar 1981",
        registers: "n unbounded numbers",
        fences: "ab",
        bound: Some(7),
        claims: Claims { since: Since::Doorway, ..Claims::FIFO },
        ..Info::LOCK
    };
    const SHARED: &'static [RegisterArray] = SHARED;

    fn outside(_: Process) -> At {
        At::Outside
    }

    #[inline]
    fn step(at: At, me: Process, memory: &mut impl Memory) -> At {
        let i = me.i;
        match at {
            At::Outside => {
                memory.write(NUMBER.of(i), 0);
                memory.fence('a');
                At::Survey { j: 0, most: 0 }
            }
            At::Survey { j, most } => {
                let number = memory.read(NUMBER.of(j));
                let most = if number == INFINITE { most } else { most.max(number) };
                if j + 1 < me.n { At::Survey { j: j + 1, most } } else { take(most) }
            }
            At::Take { ticket } => {
                memory.write(NUMBER.of(i), ticket);
                memory.fence('b');
                give_way(0, ticket, me)
            }
            At::AwaitNumber { j, ticket } if (ticket, i) < (memory.read(NUMBER.of(j)), j) => {
                give_way(j + 1, ticket, me)
            }
            At::AwaitNumber { .. } => {
                memory.wait();
                at
            }
            At::Inside => {
                memory.write(NUMBER.of(i), INFINITE);
                At::Outside
            }
        }
    }
}

/// The number after all that were seen. An infinite one would be passed by, and would let two
/// processes in.
fn take(most: Word) -> At {
    let ticket = most + 1;
    assert!(ticket < INFINITE, "the bakery has numbers left");
    At::Take { ticket }
}

/// Wait for the next of the others from `j` on; after the last one, enter.
fn give_way(j: Word, ticket: Word, me: Process) -> At {
    match me.others_from(j) {
        Some(j) => At::AwaitNumber { j, ticket },
        None => At::Inside,
    }
}
