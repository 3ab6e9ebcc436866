//! Mellor-Crummey & Scott, "Algorithms for Scalable Synchronization on Shared-Memory
//! Multiprocessors", ACM Transactions on Computer Systems 9(1), 1991: each waits at a register of
//! its own.
//!
//! Every process has a node, and one exchange puts it at the end of a queue. Who was last before
//! learns of its heir by a link, and tells it when leaving. Between the exchange and the link
//! the heir is not known yet: who leaves just then takes its node out of the queue if it is still
//! the last, and waits for the link if it is not.
//!
//! Proved by exploring every schedule of up to four processes: exclusion, no deadlock, no lockout,
//! first come, first served after the doorway, and from then on each other process enters at most
//! once before. Not true of it: such a bound from the first step on, for who has not joined the
//! queue yet is not seen by anyone; nor that leaving never waits, for the link of the heir may be
//! still to come.
//!
//! For any number, exclusion holds because the exchange gives each process one predecessor, and no
//! two the same: who found the queue empty enters at once, everyone else when its predecessor
//! leaves and tells it, and the queue is emptied only by one who leaves and has nobody behind it.

use super::prelude::*;

shared! {
    /// The last node of the queue: that of process `i` is `i + 1`, and 0 is none.
    TAIL: tail = 0;
    /// The node behind that of each process.
    NEXT: next[n] = 0;
    /// Who has been told to wait.
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
    const SHARED: &'static [Shared] = SHARED;

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
