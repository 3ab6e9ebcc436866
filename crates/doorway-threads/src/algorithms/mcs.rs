//! Mellor-Crummey & Scott, "Algorithms for Scalable Synchronization on Shared-Memory
//! Multiprocessors", ACM Transactions on Computer Systems 9(1), 1991: each process waits at a
//! register of its own.
//!
//! Every process has a node, and one exchange puts it at the end of a queue. The process that was
//! last before learns of its successor by a link, and tells it when it leaves. Between the exchange
//! and the link the successor is not known yet. A process that leaves just then takes its node out
//! of the queue if the node is still the last, and waits for the link if it is not.
//!
//! # What holds
//!
//! Proved by exploring every schedule of up to four processes: exclusion, no deadlock, no lockout,
//! first come, first served after the doorway, and from then on each other process enters at most
//! once before. Does not hold: such a bound from the first step on, because a process that has not
//! joined the queue yet is not seen by any other; nor that leaving never waits, because the link of
//! the successor may still be missing.
//!
//! # For any number of processes
//!
//! Exclusion holds for any number of processes. The exchange gives each process one predecessor,
//! and no two the same one. A process that found the queue empty enters at once, every other when
//! its predecessor leaves and tells it. The queue is emptied only by a process that leaves and has
//! no successor.

use super::prelude::*;

shared! {
    /// The last node of the queue: that of process `i` is `i + 1`, and 0 is none.
    TAIL: tail = 0;
    /// The node behind that of each process; 0 is none.
    NEXT: next[n] = 0;
    /// 1 while the process has to wait.
    LOCKED: locked[n] = 0;
}

places! {
    outside: Outside;
    doorway: Join;
    waiting: Shut { before }, Link { before }, Wait;
    inside: Inside;
    leaving: Close, AwaitLink, Tell { heir };
}

/// The queue of Mellor-Crummey and Scott.
///
/// ```
/// # use doorway_threads::{Room, algorithms::mcs::Mcs};
/// let mut room: Room<Mcs, Vec<usize>> = Room::new(4, vec![])?;
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
pub enum Mcs {}

impl Algorithm for Mcs {
    type At = At;

    const INFO: Info = Info {
        name: "mcs",
        origin: "Mellor-Crummey and Scott 1991",
        registers: "1 word, 2n words of nodes",
        primitive: Primitive::Exchange,
        claims: Claims { since: Since::Doorway, ..Claims::FIFO },
        ..Info::LOCK
    };
    const SHARED: &'static [RegisterArray] = SHARED;

    fn outside(_: Process) -> At {
        At::Outside
    }

    #[inline]
    fn step(at: At, me: Process, memory: &mut impl Memory) -> At {
        let (i, node) = (me.i, me.i + 1);
        match at {
            At::Outside => {
                memory.write(NEXT.of(i), 0);
                At::Join
            }
            At::Join => match memory.swap(TAIL, node) {
                0 => At::Inside,
                before => At::Shut { before },
            },
            At::Shut { before } => {
                memory.write(LOCKED.of(i), 1);
                At::Link { before }
            }
            At::Link { before } => {
                memory.write(NEXT.of(before - 1), node);
                At::Wait
            }
            At::Wait if memory.read(LOCKED.of(i)) == 0 => At::Inside,
            At::Wait => {
                memory.wait();
                At::Wait
            }
            At::Inside => match memory.read(NEXT.of(i)) {
                0 => At::Close,
                heir => At::Tell { heir },
            },
            At::Close if memory.replace(TAIL, node, 0) => At::Outside,
            At::Close => At::AwaitLink,
            At::AwaitLink => match memory.read(NEXT.of(i)) {
                0 => {
                    memory.wait();
                    At::AwaitLink
                }
                heir => At::Tell { heir },
            },
            At::Tell { heir } => {
                memory.write(LOCKED.of(heir - 1), 0);
                At::Outside
            }
        }
    }
}
