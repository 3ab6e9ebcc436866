//! Lamport, "The Mutual Exclusion Problem", Journal of the ACM 33(2), 1986, with three bits a
//! process: every process gets in, and each register is a bit of one writer.
//!
//! With `y` a process says that it wants to enter, with `x` that it thinks it may. The bits `z`
//! pass a token around among the processes that want to enter, as in a ring that the others have
//! left: a process that leaves turns its `z`, which gives the token to one after it. A process that
//! wants to enter finds the first of them with a token. It steps back if any process from there to
//! itself wants to enter. Otherwise it waits until no other thinks that it may enter.
//!
//! # What holds
//!
//! Proved by exploring every schedule of up to three processes: exclusion, no deadlock, no lockout,
//! and that a process is overtaken at most twice among two, eight times among three (six times by
//! one other). Not known here: how often among more.
//!
//! # For any number of processes
//!
//! Exclusion holds for any number of processes. A process that enters has raised its `x` before it
//! looked at the others, and has found of each that it has no `x`, or no `y` and therefore no `x`.
//! Of two processes inside, the later to raise its `x` would have seen the other.

use super::prelude::*;

shared! {
    /// 1 while the process thinks that it may enter.
    X: x[n] = 0;
    /// 1 while the process wants to enter.
    Y: y[n] = 0;
    /// The bits that together tell where the token is.
    Z: z[n] = 0;
}

places! {
    outside: Outside;
    waiting:
        Raise,
        ScanWishes { up, j, wish },
        ScanTokens { up, j, wish, turned },
        LookBefore { up, j, first },
        StepBack,
        LookAfter { j, first };
    inside: Inside;
    leaving: Turn { z }, LowerX, LowerY;
}

/// Lamport's three-bit algorithm.
///
/// ```
/// # use doorway_threads::{Room, algorithms::three_bit::ThreeBit};
/// let mut room: Room<ThreeBit, Vec<usize>> = Room::new(3, vec![])?;
/// for (number, mut seat) in room.seats().enumerate() {
///     seat.lock().push(number);
/// }
/// assert_eq!(room.into_inner(), [0, 1, 2]);
/// # Ok::<(), doorway_threads::RoomError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum ThreeBit {}

impl Algorithm for ThreeBit {
    type At = At;

    const INFO: Info = Info {
        name: "three-bit",
        origin: "Lamport 1986",
        // A process remembers one bit of each other process, in a word.
        most: Word::BITS as usize,
        registers: "3n bits",
        fences: "b",
        claims: Claims {
            bypass: |n| match n {
                2 => Bypass::AtMost { all: 2, one: 2 },
                3 => Bypass::AtMost { all: 8, one: 6 },
                _ => Bypass::Unbounded,
            },
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
                memory.write(Y.of(i), 1);
                At::Raise
            }
            At::Raise => {
                memory.write(X.of(i), 1);
                memory.fence('b');
                scan(1, me)
            }
            At::ScanWishes { up, j, wish } => {
                let wish = wish | memory.read(Y.of(j)) << j;
                scan_wishes(up, j + 1, wish, me)
            }
            At::ScanTokens { up, j, wish, turned } => {
                let turned = turned | memory.read(Z.of(j)) << j;
                scan_tokens(up, j + 1, wish, turned, me)
            }
            At::LookBefore { up, j, first } if memory.read(Y.of(j)) == 0 => {
                look_before(up, me.after(j), first, me)
            }
            At::LookBefore { up: 0, .. } => {
                memory.wait();
                scan(0, me)
            }
            At::LookBefore { .. } => At::StepBack,
            At::StepBack => {
                memory.write(X.of(i), 0);
                scan(0, me)
            }
            At::LookAfter { j, first } if memory.read(X.of(j)) == 0 => {
                look_after(me.after(j), first)
            }
            At::LookAfter { .. } => {
                memory.wait();
                scan(1, me)
            }
            At::Inside => At::Turn { z: memory.read(Z.of(i)) },
            At::Turn { z } => {
                memory.write(Z.of(i), 1 - z);
                At::LowerX
            }
            At::LowerX => {
                memory.write(X.of(i), 0);
                At::LowerY
            }
            At::LowerY => {
                memory.write(Y.of(i), 0);
                At::Outside
            }
        }
    }
}

/// Begin to look which processes want to enter; `up` tells whether the own `x` is raised.
fn scan(up: Word, me: Process) -> At {
    scan_wishes(up, 0, 1 << me.i, me)
}

/// Ask the next of the others from `j` on whether it wants to enter; then see where the token is.
fn scan_wishes(up: Word, j: Word, wish: Word, me: Process) -> At {
    match me.others_from(j) {
        Some(j) => At::ScanWishes { up, j, wish },
        None => scan_tokens(up, 0, wish, 0, me),
    }
}

/// Ask the next of the processes that want to enter, from `j` on; then see which of them stand in
/// between.
fn scan_tokens(up: Word, j: Word, wish: Word, turned: Word, me: Process) -> At {
    if let Some(j) = (j..me.n).find(|j| has(wish, *j)) {
        return At::ScanTokens { up, j, wish, turned };
    }
    let first = first_token(wish, turned, me);
    look_before(up, first, first, me)
}

/// Whether a process is in a set.
fn has(set: Word, j: usize) -> bool {
    set >> j & 1 == 1
}

/// The first of the processes that want to enter that has a token. The lowest of them has one if
/// its bit equals that of the last one, and any other has one if its bit differs from that of the
/// one before. So it is the first whose bit equals that of the last one.
fn first_token(wish: Word, turned: Word, me: Process) -> usize {
    let mut wanting = (0..me.n).filter(|j| has(wish, *j));
    let last = wanting.clone().next_back().unwrap_or(me.i);
    wanting.find(|j| has(turned, *j) == has(turned, last)).unwrap_or(last)
}

/// Look at the processes from `j` up to this one, around the end; then raise `x`, or go on if it is
/// raised.
fn look_before(up: Word, j: Word, first: Word, me: Process) -> At {
    match up {
        _ if j != me.i => At::LookBefore { up, j, first },
        0 => At::Raise,
        _ => look_after(me.after(j), first),
    }
}

/// Look at the processes from `j` up to the first that has a token; then enter.
fn look_after(j: Word, first: Word) -> At {
    if j == first { At::Inside } else { At::LookAfter { j, first } }
}
