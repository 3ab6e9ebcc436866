//! A lock by exchange, folklore (in Raynal, "Algorithms for Mutual Exclusion", MIT Press, 1986,
//! chapter 3): one token for all, and who holds it is inside.
//!
//! The token lies in a register. Who wants to enter exchanges an empty hand for what lies there, in
//! one access that nothing comes between, until it is the token; who leaves puts it back.
//!
//! Proved by exploring every schedule of up to four processes: exclusion and no deadlock. Not true
//! of it: that everyone gets in, for others may have the token again and again.
//!
//! For any number, exclusion holds because the token is neither doubled nor lost: the exchange that
//! yields it takes it away, and only who has it puts it back. And one gets in because, while nobody
//! is inside, the token lies there for whoever exchanges next.

use super::prelude::*;

shared! {
    /// Does the token lie here?
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
    const SHARED: &'static [Shared] = SHARED;

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

#[allow(unsafe_code, reason = "what is undone here is all that was done")]
// SAFETY: what was raised is lowered as by one who leaves, or nothing was changed at all.
unsafe impl Withdraws for Exchange {
    /// Nothing was changed, so nothing is to be undone.
    fn withdraw(_: At) -> At {
        At::Outside
    }
}
