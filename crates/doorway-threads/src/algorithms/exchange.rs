//! A lock by exchange, folklore (in Raynal, "Algorithms for Mutual Exclusion", MIT Press, 1986,
//! chapter 3): one token for all, and the process that holds it is inside.
//!
//! The token lies in a register. A process that wants to enter exchanges an empty hand for what
//! lies there, in one atomic access, until it gets the token. To leave, it puts the token back.
//!
//! # What holds
//!
//! Proved by exploring every schedule of up to four processes: exclusion and no deadlock. Does not
//! hold: that every process gets in, because others may get the token again and again.
//!
//! # For any number of processes
//!
//! Exclusion holds for any number of processes because the token is neither doubled nor lost: the
//! exchange that yields it takes it away, and only the process that has it puts it back. One
//! process gets in because, while none is inside, the token lies there for the next exchange.

use super::prelude::*;

shared! {
    /// 1 while the token lies here.
    TOKEN: token = 1;
}

places! {
    outside: Outside;
    waiting: Exchange;
    inside: Inside;
}

/// A lock by exchange.
///
/// ```
/// # use doorway_threads::{Room, algorithms::exchange::Exchange};
/// let mut room: Room<Exchange, u32> = Room::new(2, 0)?;
/// let [mut one, mut two] = room.split()?;
/// let inside = one.lock();
/// assert!(two.try_lock().is_none());
/// drop(inside);
/// assert!(two.try_lock().is_some());
/// # Ok::<(), doorway_threads::RoomError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Exchange {}

impl Algorithm for Exchange {
    type At = At;

    const INFO: Info = Info {
        name: "exchange",
        origin: "folklore, in Raynal 1986",
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
            At::Outside | At::Exchange if memory.swap(TOKEN, 0) == 1 => At::Inside,
            At::Outside | At::Exchange => {
                memory.wait();
                At::Exchange
            }
            At::Inside => {
                memory.write(TOKEN, 1);
                At::Outside
            }
        }
    }
}

#[allow(unsafe_code, reason = "a lock goes on from where this leads")]
// SAFETY: a process that waits here has changed nothing that others could see.
unsafe impl Withdraws for Exchange {
    /// Go outside: nothing was changed, so nothing has to be undone.
    fn withdraw(_: At) -> At {
        At::Outside
    }
}
