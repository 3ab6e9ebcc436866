//! Craig, "Building FIFO and Priority-Queuing Spin Locks from Atomic Swap", University of
//! Washington, 1993; and Magnusson, Landin & Hagersten, "Queue Locks on Cache Coherent
//! Multiprocessors", IPPS, 1994: each process waits at the node of the one before.
//!
//! Every process has a node. It marks the node as busy and exchanges it for the last node of the
//! queue; then it waits until the mark of that node is gone. To leave, it removes its own mark. The
//! process behind may not have seen that yet. So the process that leaves does not keep its own node
//! but takes the one that it waited at, which no other process looks at any more. There is one node
//! more than there are processes: it lies in the empty queue.
//!
//! # What holds
//!
//! Proved by exploring every schedule of up to four processes: exclusion, no deadlock, no lockout,
//! first come, first served after the doorway, and from then on each other process enters at most
//! once before. Does not hold: such a bound from the first step on, because a process that has not
//! joined the queue yet is not seen by any other.
//!
//! # For any number of processes
//!
//! Exclusion holds for any number of processes. The exchange gives each process one predecessor,
//! and no two the same one. A process enters when the mark of its predecessor is gone, which is
//! when the predecessor has left, and with it all before. A node is marked again only by the
//! process that waited at it, when no other does.

use super::prelude::*;

shared! {
    /// The last node of the queue.
    TAIL: tail = 0;
    /// 1 while the process whose node it is waits or is inside.
    BUSY: busy[n + 1] = 0;
}

places! {
    outside: Outside { node };
    doorway: Join { node };
    waiting: Wait { node, before };
    inside: Inside { node, before };
}

/// The queue of Craig, Landin and Hagersten.
///
/// ```
/// # use doorway_threads::{Room, algorithms::clh::Clh};
/// let mut room: Room<Clh, Vec<usize>> = Room::new(4, vec![])?;
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
pub enum Clh {}

impl Algorithm for Clh {
    type At = At;

    const INFO: Info = Info {
        name: "clh",
        origin: "Craig 1993, Landin and Hagersten 1994",
        registers: "1 word, n + 1 bits of nodes",
        primitive: Primitive::Exchange,
        claims: Claims { since: Since::Doorway, ..Claims::FIFO },
        ..Info::LOCK
    };
    const SHARED: &'static [RegisterArray] = SHARED;

    fn outside(me: Process) -> At {
        At::Outside { node: me.i + 1 }
    }

    #[inline]
    fn step(at: At, _: Process, memory: &mut impl Memory) -> At {
        match at {
            At::Outside { node } => {
                memory.write(BUSY.of(node), 1);
                At::Join { node }
            }
            At::Join { node } => At::Wait { node, before: memory.swap(TAIL, node) },
            At::Wait { node, before } if memory.read(BUSY.of(before)) == 0 => {
                At::Inside { node, before }
            }
            At::Wait { .. } => {
                memory.wait();
                at
            }
            At::Inside { node, before } => {
                memory.write(BUSY.of(node), 0);
                At::Outside { node: before }
            }
        }
    }
}
