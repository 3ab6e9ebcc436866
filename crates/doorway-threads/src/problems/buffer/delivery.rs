//! The protocol of the buffer with numbered items, so that the explorer sees whether they are
//! delivered in order.

use super::protocol::{self, At, RECEIVER, REGISTERS, SENDER, declared};
use crate::algorithms::prelude::*;
use crate::{Array, Length};

/// The items in the slots.
const SLOT: Array = Array(REGISTERS);
/// The number of the item that is sent next.
const SENT: Array = Array(REGISTERS + 1);
/// The number of the item that is to be received next.
const DUE: Array = Array(REGISTERS + 2);

/// No item.
const EMPTY: Word = 0;
/// The slot of a process that has found something wrong.
const NOWHERE: Word = Word::MAX;

/// A buffer of `SLOTS` slots, into which `SENDERS` processes send for ever, and from which all
/// others receive for ever. Items are numbered, and the numbers repeat. A sender that finds its
/// slot taken, and a receiver that does not find the item that is due, count as violations, like
/// two processes at one slot.
#[derive(Clone, Copy, Debug)]
pub enum Delivery<const SLOTS: usize, const SENDERS: usize> {}

impl<const SLOTS: usize, const SENDERS: usize> Delivery<SLOTS, SENDERS> {
    /// More numbers than items can be under way, so that one too many or too few is noticed.
    const NUMBERS: Word = 2 * SLOTS + 1;

    const DECLARED: [RegisterArray; REGISTERS + 3] = {
        let mut declared = declared::<{ REGISTERS + 3 }>(SLOTS);
        let more = [
            ("slot", Length::Fixed(SLOTS), EMPTY, "The items in the slots."),
            ("sent", Length::One, 1, "The number of the item that is sent next."),
            ("due", Length::One, 1, "The number of the item that is to be received next."),
        ];
        let mut nth = 0;
        while nth < more.len() {
            let (name, length, first, about) = more[nth];
            declared[REGISTERS + nth] = RegisterArray { name, length, first, about };
            nth += 1;
        }
        declared
    };

    /// Take the next number from a counter.
    fn number(counter: Array, memory: &mut impl Memory) -> Word {
        let number = memory.read(counter.of(0));
        memory.write(counter.of(0), if number == Self::NUMBERS { 1 } else { number + 1 });
        number
    }

    /// Put an item into a slot or take one out of it, and return whether that was right.
    fn handle(side: Word, slot: Word, memory: &mut impl Memory) -> bool {
        if side == SENDER {
            let item = Self::number(SENT, memory);
            memory.swap(SLOT.of(slot), item) == EMPTY
        } else {
            memory.swap(SLOT.of(slot), EMPTY) == Self::number(DUE, memory)
        }
    }
}

impl<const SLOTS: usize, const SENDERS: usize> Algorithm for Delivery<SLOTS, SENDERS> {
    type At = At;

    const INFO: Info = Info {
        name: "bounded-buffer",
        origin: "after Dijkstra 1965",
        registers: "4 semaphores, 2 numbers",
        primitive: Primitive::Semaphore,
        claims: Claims::LOCKOUT_FREE,
        ..Info::LOCK
    };
    const SHARED: &'static [RegisterArray] = &Self::DECLARED;

    fn outside(me: Process) -> At {
        At::Await { side: if me.i < SENDERS { SENDER } else { RECEIVER } }
    }

    fn together(inside: &[At]) -> bool {
        match *inside {
            [] => true,
            [At::Handle { slot, .. }] => slot != NOWHERE,
            [At::Handle { side, slot }, At::Handle { side: other, slot: taken }] => {
                side != other && slot != taken && slot != NOWHERE && taken != NOWHERE
            }
            _ => false,
        }
    }

    /// Items and slots exist only for the explorer, so they may be accessed in the same step as a
    /// register.
    fn step(at: At, _: Process, memory: &mut impl Memory) -> At {
        if let At::Handle { side, slot } = at
            && (slot == NOWHERE || !Self::handle(side, slot, memory))
        {
            return At::Handle { side, slot: NOWHERE };
        }
        match protocol::step(at, SLOTS, memory) {
            At::Outside { side } => At::Await { side },
            at => at,
        }
    }
}
