//! A bounded buffer between threads that produce and threads that consume.
#![allow(unsafe_code, reason = "each slot is lent out to the one thread at it")]

#[cfg(feature = "check")]
mod delivery;
mod protocol;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::fmt;

use crate::atomics::{Atomics, Registers};
use crate::{DefaultRelax, Semaphore};
#[cfg(feature = "check")]
pub use delivery::Delivery;
use protocol::{At, RECEIVER, REGISTERS, SENDER, awaited, declared, step};

/// Why a buffer could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BufferError {
    /// A buffer without slots was asked for: nothing could ever be sent.
    NoSlots,
    /// More slots were asked for than fit into memory.
    TooManySlots {
        /// The number that was asked for.
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

/// A bounded buffer: a sender waits for a free slot, a receiver waits for an item, and items come
/// out in the order in which they went in. Items that are not received are dropped with the buffer.
///
/// Proved by exploring every schedule of up to four senders and receivers and three slots: no item
/// is lost, doubled, overwritten or overtaken, no two threads are at the same slot, and while some
/// threads send and some receive none waits for ever.
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
/// An item that may not go to another thread may not be sent:
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

// SAFETY: a thread reaches a slot only while it is at it, which the protocol allows to one thread
// at a time, so sharing a buffer moves items between threads and never shares them. A thread leaves
// a slot before it lets the next of its side go on, and that before it gives a unit to the other
// side, so a thread that comes to a slot has seen what was done there.
unsafe impl<T: Send> Sync for Buffer<T> {}

impl<T> Buffer<T> {
    /// Make a buffer with this number of slots.
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

    /// The number of slots.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Send an item. Wait until there is a free slot.
    pub fn send(&self, item: T) {
        self.at_slot(At::Outside { side: SENDER }, |slot| *slot = Some(item));
    }

    /// Send an item if there is a free slot; otherwise return it. This does not wait for a
    /// receiver, but may wait a moment for another sender.
    pub fn try_send(&self, item: T) -> Result<(), T> {
        if !self.registers.try_down(awaited(SENDER)) {
            return Err(item);
        }
        self.at_slot(At::GoAlone { side: SENDER }, |slot| *slot = Some(item));
        Ok(())
    }

    /// Receive the oldest item. Wait until there is one.
    pub fn receive(&self) -> T {
        self.at_slot(At::Outside { side: RECEIVER }, Option::take).expect("an item at this slot")
    }

    /// Receive the oldest item if there is one. This does not wait for a sender, but may wait a
    /// moment for another receiver.
    pub fn try_receive(&self) -> Option<T> {
        if !self.registers.try_down(awaited(RECEIVER)) {
            return None;
        }
        self.at_slot(At::GoAlone { side: RECEIVER }, Option::take)
    }

    /// Go to a slot, do something there, and leave.
    fn at_slot<O>(&self, mut at: At, act: impl FnOnce(&mut Option<T>) -> O) -> O {
        let mut memory = Atomics::<DefaultRelax>::new(&self.registers);
        let mut step = |at| step(at, self.slots(), &mut memory);
        let slot = loop {
            at = step(at);
            if let At::Handle { slot, .. } = at {
                break slot;
            }
        };
        // SAFETY: a thread that is inside is alone at its slot. The acts above can neither panic
        // nor come back here, so the reference is gone before the thread leaves the slot.
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
