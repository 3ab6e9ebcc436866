//! A bounded buffer between threads that produce and threads that consume.
#![allow(unsafe_code, reason = "each slot is lent out to whoever is at it")]

#[cfg(feature = "check")]
mod delivery;
mod protocol;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::fmt;

use crate::atomics::{Atomics, Registers};
use crate::{Patient, Semaphore};
#[cfg(feature = "check")]
pub use delivery::Delivery;
use protocol::{At, RECEIVER, REGISTERS, SENDER, awaited, declared, step};

/// Why there is no buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BufferError {
    /// A buffer without slots was asked for: nothing could ever be sent.
    NoSlots,
    /// More slots were asked for than fit into memory.
    TooManySlots {
        /// So many were asked for.
        asked: usize,
    },
}

impl fmt::Display for BufferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSlots => write!(f, "a buffer needs at least one slot"),
            Self::TooManySlots { asked } => write!(f, "{asked} slots do not fit into memory"),
        }
    }
}

impl core::error::Error for BufferError {}

/// A buffer of so many slots: who sends waits for a free one, who receives waits for an item, and
/// items come out in the order in which they went in. Items that nobody receives are dropped with
/// the buffer.
///
/// Proved by exploring every schedule of up to four senders and receivers and three slots: no item
/// is lost, doubled, overwritten or overtaken, no two are at the same slot, and while some send and
/// some receive nobody waits for ever.
///
/// ```
/// use doorway_threads::problems::Buffer;
///
/// let buffer = Buffer::new(2)?;
/// std::thread::scope(|scope| {
///     scope.spawn(|| (0..100).for_each(|item| buffer.send(item)));
///     (0..100).for_each(|item| assert_eq!(buffer.receive(), item));
/// });
/// assert_eq!(buffer.try_receive(), None);
/// # Ok::<(), doorway_threads::problems::BufferError>(())
/// ```
///
/// What may not go to another thread may not be sent:
///
/// ```compile_fail,E0277
/// # use doorway_threads::problems::Buffer;
/// let buffer = Buffer::new(1).unwrap();
/// std::thread::scope(|scope| {
///     scope.spawn(|| buffer.send(std::rc::Rc::new(1)));
/// });
/// ```
pub struct Buffer<T> {
    registers: Registers,
    slots: Box<[UnsafeCell<Option<T>>]>,
}

// SAFETY: threads reach a slot only while they are at it, which the protocol allows one of them at
// a time, so sharing a buffer moves items between threads and never shares them. Both sides leave a
// slot before they let the next of their side go on, and that before they give a unit to the other
// side, so whoever comes to a slot has seen what was done there.
unsafe impl<T: Send> Sync for Buffer<T> {}

impl<T> Buffer<T> {
    /// A buffer with so many slots.
    pub fn new(slots: usize) -> Result<Self, BufferError> {
        let too_many = BufferError::TooManySlots { asked: slots };
        match slots {
            0 => return Err(BufferError::NoSlots),
            1..=Semaphore::MOST => {}
            _ => return Err(too_many),
        }
        let registers = Registers::declared(&declared::<REGISTERS>(slots), 1);
        let mut empty = Vec::new();
        empty.try_reserve_exact(slots).map_err(|_| too_many)?;
        empty.extend((0..slots).map(|_| UnsafeCell::new(None)));
        Ok(Self { registers, slots: empty.into_boxed_slice() })
    }

    /// How many slots there are.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Put an item in; wait until there is a slot for it.
    pub fn send(&self, item: T) {
        self.at_slot(At::Outside { side: SENDER }, |slot| *slot = Some(item));
    }

    /// Put an item in if there is a slot for it, or have it back. This waits for no receiver, but
    /// perhaps a moment for another sender.
    pub fn try_send(&self, item: T) -> Result<(), T> {
        if !self.registers.try_down(awaited(SENDER)) {
            return Err(item);
        }
        self.at_slot(At::GoAlone { side: SENDER }, |slot| *slot = Some(item));
        Ok(())
    }

    /// Take the oldest item out; wait until there is one.
    pub fn receive(&self) -> T {
        self.at_slot(At::Outside { side: RECEIVER }, Option::take).expect("an item at this slot")
    }

    /// Take the oldest item out if there is one. This waits for no sender, but perhaps a moment for
    /// another receiver.
    pub fn try_receive(&self) -> Option<T> {
        if !self.registers.try_down(awaited(RECEIVER)) {
            return None;
        }
        self.at_slot(At::GoAlone { side: RECEIVER }, Option::take)
    }

    /// Go to a slot, do something there, and leave.
    fn at_slot<O>(&self, mut at: At, act: impl FnOnce(&mut Option<T>) -> O) -> O {
        let mut memory = Atomics::<Patient>::new(&self.registers);
        let mut step = |at| step(at, self.slots(), &mut memory);
        let slot = loop {
            at = step(at);
            if let At::Handle { slot, .. } = at {
                break slot;
            }
        };
        // SAFETY: who is inside is alone at its slot, and neither of the acts above can panic or
        // come back here, so the reference is gone before the slot is left.
        let outcome = act(unsafe { &mut *self.slots[slot].get() });
        while !matches!(at, At::Outside { .. }) {
            at = step(at);
        }
        outcome
    }
}

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("slots", &self.slots()).finish_non_exhaustive()
    }
}
