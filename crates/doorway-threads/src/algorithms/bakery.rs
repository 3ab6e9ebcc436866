//! Lamport, "A New Solution of Dijkstra's Concurrent Programming Problem", Communications of the
//! ACM 17(8), 1974: the bakery.
//!
//! A process that wants to enter looks at the numbers of all others and takes a greater one, as in
//! a bakery where the customers write the tickets themselves. Two processes may take the same
//! number: then the one with the lower index goes first. A waiting process looks at the others one
//! after another, and passes by each that has no number or a later one. It does not pass by a
//! process that is still choosing, because that one may have looked long ago and may come up with a
//! number that goes first. Each register has a single writer.
//!
//! # What holds
//!
//! Proved by exploring every schedule of up to three processes with numbers of up to seven:
//! exclusion, no deadlock, no lockout, first come, first served after the doorway, and no process
//! enters twice before one that has passed the doorway. Does not hold: a bound on the numbers. They
//! grow as long as the bakery is never empty, and the lock panics rather than begin again at zero.
//!
//! # For any number of processes
//!
//! Exclusion holds for any number of processes. The process inside has found each other process not
//! choosing, and then without a number or with a later one. A process that begins to choose after
//! that sees the number and takes a later one.

use super::prelude::*;

shared! {
    /// 1 while the process chooses a number.
    CHOOSING: choosing[n] = 0;
    /// The number of each process; 0 is none.
    NUMBER: number[n] = 0;
}

places! {
    outside: Outside;
    doorway: Survey { j, most }, Take { ticket }, StopChoosing { ticket };
    waiting: AwaitChoice { j, ticket }, AwaitNumber { j, ticket };
    inside: Inside;
}

/// Lamport's bakery algorithm.
///
/// ```
/// # use doorway_threads::{Room, algorithms::bakery::Bakery};
/// let mut room: Room<Bakery, Vec<&str>> = Room::new(3, vec![])?;
/// let [mut baker, mut miller, mut farmer] = room.split()?;
/// farmer.lock().push("grain");
/// miller.lock().push("flour");
/// baker.lock().push("bread");
/// assert_eq!(room.into_inner(), ["grain", "flour", "bread"]);
/// # Ok::<(), doorway_threads::RoomError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Bakery {}

impl Algorithm for Bakery {
    type At = At;

    const INFO: Info = Info {
        name: "bakery",
        origin: "Lamport 1974",
        registers: "n bits, n unbounded numbers",
        fences: "ac",
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
                memory.write(CHOOSING.of(i), 1);
                memory.fence('a');
                At::Survey { j: 0, most: 0 }
            }
            At::Survey { j, most } => {
                let most = most.max(memory.read(NUMBER.of(j)));
                if j + 1 < me.n { At::Survey { j: j + 1, most } } else { take(most) }
            }
            At::Take { ticket } => {
                memory.write(NUMBER.of(i), ticket);
                At::StopChoosing { ticket }
            }
            At::StopChoosing { ticket } => {
                memory.write(CHOOSING.of(i), 0);
                memory.fence('c');
                give_way(0, ticket, me)
            }
            At::AwaitChoice { j, ticket } if memory.read(CHOOSING.of(j)) == 0 => {
                At::AwaitNumber { j, ticket }
            }
            At::AwaitChoice { .. } => {
                memory.wait();
                at
            }
            At::AwaitNumber { j, ticket } => {
                let number = memory.read(NUMBER.of(j));
                if number == 0 || (ticket, i) < (number, j) {
                    give_way(j + 1, ticket, me)
                } else {
                    memory.wait();
                    at
                }
            }
            At::Inside => {
                memory.write(NUMBER.of(i), 0);
                At::Outside
            }
        }
    }
}

/// The number after all that were seen. There is none after the largest word: to begin again at
/// zero would let two processes in.
fn take(most: Word) -> At {
    At::Take { ticket: most.checked_add(1).expect("the bakery has numbers left") }
}

/// Wait for the next of the others from `j` on; after the last one, enter.
fn give_way(j: Word, ticket: Word, me: Process) -> At {
    match me.others_from(j) {
        Some(j) => At::AwaitChoice { j, ticket },
        None => At::Inside,
    }
}
