//! Szymanski, "A Simple Solution to Lamport's Concurrent Programming Problem with Linear Wait",
//! ICS, 1988: a waiting room with two doors.
//!
//! A process that wants to enter comes in through the first door, which is open while no process is
//! past it for good. If others are on their way in, it waits for them. The last one in, which sees
//! no more of them, shuts the first door and opens the second. The processes in the room then enter
//! in the order of their numbers, and the last to leave opens the first door again. One register of
//! five values for each process, with a single writer, holds all of that.
//!
//! # What holds
//!
//! Proved by exploring every schedule of up to four processes: exclusion, no deadlock, no lockout,
//! and no other process enters more than twice before one that wants in. Exclusion was explored
//! once with five and six too, which the tests do not repeat; for any number it rests on the proof
//! that Szymanski gave with the algorithm. Leaving waits too, until all others in the room know
//! that the second door is open. Does not hold: first come, first served after the first write.

use super::prelude::*;

shared! {
    /// Where each process is, as one of five values.
    STATE: state[n] = IDLE;
}

/// The process does not want to enter.
const IDLE: Word = 0;
/// The process wants in, and stands before the first door.
const ASKS: Word = 1;
/// The process is in the room, and waits for those that still come in.
const WAITS: Word = 2;
/// The process is in the first door.
const COMES_IN: Word = 3;
/// The process knows that the first door is shut and the second open.
const GOES_ON: Word = 4;

places! {
    outside: Outside;
    waiting:
        AwaitDoor { j },
        ComeIn,
        LookBack { j },
        Wait,
        AwaitOpening { j },
        GoOn,
        AwaitLower { j };
    inside: Inside;
    leaving: Leave { j };
}

/// Szymanski's algorithm.
///
/// ```
/// # use doorway_threads::{Room, algorithms::szymanski::Szymanski};
/// let mut room: Room<Szymanski, u64> = Room::new(4, 1)?;
/// std::thread::scope(|scope| {
///     for mut seat in room.seats() {
///         scope.spawn(move || (0..5).for_each(|_| *seat.lock() *= 3));
///     }
/// });
/// assert_eq!(room.into_inner(), 3_u64.pow(20));
/// # Ok::<(), doorway_threads::RoomError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Szymanski {}

impl Algorithm for Szymanski {
    type At = At;

    const INFO: Info = Info {
        name: "szymanski",
        origin: "Szymanski 1988",
        registers: "n of 5 values",
        fences: "ab",
        claims: Claims {
            bypass: |n| Bypass::AtMost { all: 2 * (n as u32 - 1), one: 2 },
            ..Claims::LOCKOUT_FREE
        },
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
                memory.write(STATE.of(i), ASKS);
                memory.fence('a');
                await_door(0, me)
            }
            At::AwaitDoor { j } if memory.read(STATE.of(j)) < COMES_IN => await_door(j + 1, me),
            At::ComeIn => {
                memory.write(STATE.of(i), COMES_IN);
                memory.fence('b');
                look_back(0, me)
            }
            At::LookBack { j } if memory.read(STATE.of(j)) == ASKS => At::Wait,
            At::LookBack { j } => look_back(j + 1, me),
            At::Wait => {
                memory.write(STATE.of(i), WAITS);
                await_opening(0, me)
            }
            At::AwaitOpening { j } if memory.read(STATE.of(j)) == GOES_ON => At::GoOn,
            At::AwaitOpening { j } => {
                if me.others_from(j + 1).is_none() {
                    memory.wait();
                }
                await_opening(j + 1, me)
            }
            At::GoOn => {
                memory.write(STATE.of(i), GOES_ON);
                await_lower(0, me)
            }
            At::AwaitLower { j } if memory.read(STATE.of(j)) < WAITS => await_lower(j + 1, me),
            At::Inside => leave(i + 1, me, memory),
            At::Leave { j } => leave(j, me, memory),
            At::AwaitDoor { .. } | At::AwaitLower { .. } => {
                memory.wait();
                at
            }
        }
    }
}

/// Wait until the next of the others from `j` on is not past the first door; then come in.
fn await_door(j: Word, me: Process) -> At {
    me.others_from(j).map_or(At::ComeIn, |j| At::AwaitDoor { j })
}

/// Look whether the next of the others from `j` on is on its way in; if none is, go on.
fn look_back(j: Word, me: Process) -> At {
    me.others_from(j).map_or(At::GoOn, |j| At::LookBack { j })
}

/// Look whether the next of the others from `j` on, around the end, has opened the second door.
fn await_opening(j: Word, me: Process) -> At {
    At::AwaitOpening { j: me.others_from(j).unwrap_or(usize::from(me.i == 0)) }
}

/// Let the processes with lower numbers go first from `j` on; after the last one, enter.
fn await_lower(j: Word, me: Process) -> At {
    if j < me.i { At::AwaitLower { j } } else { At::Inside }
}

/// Wait until the processes with higher numbers, from `j` on, know that the second door is open;
/// then leave.
fn leave(j: Word, me: Process, memory: &mut impl Memory) -> At {
    if j == me.n {
        memory.write(STATE.of(me.i), IDLE);
        return At::Outside;
    }
    match memory.read(STATE.of(j)) {
        WAITS | COMES_IN => {
            memory.wait();
            At::Leave { j }
        }
        _ => At::Leave { j: j + 1 },
    }
}
