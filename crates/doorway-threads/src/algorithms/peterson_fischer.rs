//! Peterson & Fischer, "Economical Solutions for the Critical Section Problem in a Distributed
//! System", STOC, 1977, for two processes.
//!
//! Each process has one register of three values, which only it writes: idle, or one of two
//! colours. Process 0 takes the colour that it sees at the other, process 1 the opposite one, and
//! each does so twice before it waits: process 0 while the colours are equal, process 1 while they
//! differ. The second look decides if both processes look before either has written.
//!
//! # What holds
//!
//! Proved by exploring every schedule: exclusion, no deadlock, no lockout, first come, first served
//! after the doorway, and at most one overtaking from there on. Does not hold: a bound from the
//! first step on. That step is only a look: until a process shows a colour, the other may enter
//! again and again. Since an entry begins with a look, the write of a process that leaves has to be
//! seen by all before the process comes again, which takes fence `c`.
//!
//! Peterson's algorithm of 1983, which has four values and serves any number of processes, is not
//! here: no text of it that can be trusted is known, and a guess should not bear the name.

use super::prelude::*;

/// The value of a process that does not want to enter.
const IDLE: Word = 0;
/// The colour to take if the other has none; the other colour is 1.
const COLOUR: Word = 2;

shared! {
    /// The colour of each process, or idle.
    Q: q[n] = IDLE;
}

places! {
    outside: Outside;
    doorway: Show { colour }, LookAgain { colour }, ShowAgain { colour };
    waiting: Await { colour };
    inside: Inside;
}

/// The algorithm of Peterson and Fischer for two processes.
///
/// ```
/// # use doorway_threads::{Room, algorithms::peterson_fischer::PetersonFischer};
/// let mut room: Room<PetersonFischer, u32> = Room::new(2, 0)?;
/// let [mut left, mut right] = room.split()?;
/// std::thread::scope(|scope| {
///     scope.spawn(move || (0..1000).for_each(|_| *left.lock() += 1));
///     scope.spawn(move || (0..1000).for_each(|_| *right.lock() += 1));
/// });
/// assert_eq!(room.into_inner(), 2000);
/// # Ok::<(), doorway_threads::RoomError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum PetersonFischer {}

impl Algorithm for PetersonFischer {
    type At = At;

    const INFO: Info = Info {
        name: "peterson-fischer",
        origin: "Peterson and Fischer 1977",
        most: 2,
        registers: "2 of 3 values",
        fences: "abc",
        claims: Claims { since: Since::Doorway, ..Claims::FIFO },
        ..Info::LOCK
    };
    const SHARED: &'static [RegisterArray] = SHARED;

    fn outside(_: Process) -> At {
        At::Outside
    }

    #[inline]
    fn step(at: At, me: Process, memory: &mut impl Memory) -> At {
        let (i, other) = (me.i, me.other());
        match at {
            At::Outside => At::Show { colour: choose(memory.read(Q.of(other)), COLOUR, me) },
            At::Show { colour } => {
                memory.write(Q.of(i), colour);
                memory.fence('a');
                At::LookAgain { colour }
            }
            At::LookAgain { colour } => {
                At::ShowAgain { colour: choose(memory.read(Q.of(other)), colour, me) }
            }
            At::ShowAgain { colour } => {
                memory.write(Q.of(i), colour);
                memory.fence('b');
                At::Await { colour }
            }
            At::Await { colour } => {
                let seen = memory.read(Q.of(other));
                if seen == IDLE || choose(seen, colour, me) != colour {
                    At::Inside
                } else {
                    memory.wait();
                    at
                }
            }
            At::Inside => {
                memory.write(Q.of(i), IDLE);
                memory.fence('c');
                At::Outside
            }
        }
    }
}

/// The colour to take when `seen` is at the other: the same for process 0, the opposite one for
/// process 1, and the one it has if the other is idle.
fn choose(seen: Word, own: Word, me: Process) -> Word {
    match (seen, me.i) {
        (IDLE, _) => own,
        (colour, 0) => colour,
        (colour, _) => 3 - colour,
    }
}
