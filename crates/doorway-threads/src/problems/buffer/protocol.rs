//! The protocol of the buffer: which thread waits for which, between senders and receivers.
//!
//! Receivers do to items what senders do to free slots: each waits for one, goes alone to the next
//! slot, and gives the other side what it leaves there. Slots are used round and round.
#![allow(unreachable_pub, reason = "places are shown to others with the explorer only")]

use crate::Register;
use crate::algorithms::prelude::*;

shared! {
    /// The number of free slots: all of them in the beginning.
    FREE: free = 0;
    /// The number of slots with an item in them.
    FULL: full = 0;
    /// Taken by the sender at a slot.
    SENDER_ALONE: sender_alone = 1;
    /// Taken by the receiver at a slot.
    RECEIVER_ALONE: receiver_alone = 1;
    /// The slot that the next sender goes to.
    NEXT_IN: next_in = 0;
    /// The slot that the next receiver goes to.
    NEXT_OUT: next_out = 0;
}

places! {
    outside: Outside { side };
    waiting: Await { side }, GoAlone { side }, Find { side };
    inside: Handle { side, slot };
    leaving: LetOthersGo { side }, Give { side };
}

/// The side of the senders.
pub(super) const SENDER: Word = 0;
/// The side of the receivers.
pub(super) const RECEIVER: Word = 1;

/// What one side uses.
struct Side {
    takes: Register,
    alone: Register,
    next: Register,
    gives: Register,
}

const SIDES: [Side; 2] = [
    Side { takes: FREE, alone: SENDER_ALONE, next: NEXT_IN, gives: FULL },
    Side { takes: FULL, alone: RECEIVER_ALONE, next: NEXT_OUT, gives: FREE },
];

/// The semaphore that a process of a side waits for first.
pub(super) const fn awaited(side: Word) -> Register {
    SIDES[side].takes
}

/// The number of declarations of the protocol.
pub(super) const REGISTERS: usize = SHARED.len();

/// The declarations of the protocol for this number of slots, with room for more behind them.
pub(super) const fn declared<const N: usize>(slots: usize) -> [RegisterArray; N] {
    let mut declared = [SHARED[FREE.array]; N];
    let mut nth = 0;
    while nth < SHARED.len() {
        declared[nth] = SHARED[nth];
        nth += 1;
    }
    declared[FREE.array].first = slots;
    declared
}

/// Take one step: make the next access, and return the place where the process is then.
pub(super) fn step(at: At, slots: usize, memory: &mut impl Memory) -> At {
    match at {
        At::Outside { side } | At::Await { side } if memory.down(SIDES[side].takes) => {
            At::GoAlone { side }
        }
        At::Outside { side } | At::Await { side } => At::Await { side },
        At::GoAlone { side } if memory.down(SIDES[side].alone) => At::Find { side },
        At::GoAlone { side } => At::GoAlone { side },
        At::Find { side } => At::Handle { side, slot: memory.read(SIDES[side].next) },
        At::Handle { side, slot } => {
            memory.write(SIDES[side].next, if slot + 1 == slots { 0 } else { slot + 1 });
            At::LetOthersGo { side }
        }
        At::LetOthersGo { side } => {
            memory.up(SIDES[side].alone);
            At::Give { side }
        }
        At::Give { side } => {
            memory.up(SIDES[side].gives);
            At::Outside { side }
        }
    }
}
