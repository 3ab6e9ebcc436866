//! The bounded buffer by messages: a producer and a consumer that share no memory, as two plain
//! values (Raynal, "Algorithms for Mutual Exclusion", MIT Press, 1986, section 6.2).
//!
//! The producer counts the items that it has produced, the consumer those that it has consumed. Of
//! the other's counter, each has only an *image*: the last value that it has heard of. Counters
//! only grow, so an image may be late but is never ahead:
//!
//! - The producer produces while `produced - image of consumed < capacity`. A late image makes this
//!   difference too large, so the buffer has at most `capacity` items.
//! - The consumer consumes while `image of produced - consumed > 0`. A late image makes this
//!   difference too small, so the consumer never takes an item that is not there.
//!
//! A guard may use a late image only where lateness makes the guard stricter. This is why it works
//! for one producer and fails for several that add up late images of each other's counters.
//!
//! # Messages
//!
//! ITEM goes to the consumer, with its number, and CREDIT to the producer, with the number of items
//! consumed. Both numbers count from the beginning, so a message that arrives late or twice does
//! nothing: an ITEM that was consumed is dropped, and a CREDIT below the image is ignored. Messages
//! may overtake each other. The image of `produced` is the number up to which all items have
//! arrived. If messages may be lost, the producer sends all items again that are not known to be
//! consumed ([`Producer::unconfirmed`]), and the consumer its last CREDIT; a lost CREDIT does no
//! harm if a later one arrives.
//!
//! # Restarts
//!
//! The number of items consumed is the one thing that must survive the end of a process. A consumer
//! that writes it together with the effect of each item goes on from there ([`Consumer::resume`]),
//! and so does a producer that can produce the same items again ([`Producer::resume`]). Every item
//! then takes effect exactly once.

use alloc::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

/// The messages between a producer and a consumer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message<T> {
    /// To the consumer: an item, with its number. The first item has the number 1.
    Item(u64, T),
    /// To the producer: this number of items have been consumed.
    Credit(u64),
}

/// The side that produces.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Producer<T> {
    capacity: u64,
    /// The image of the consumer's counter.
    consumed: u64,
    /// The items after those: produced, and not known to be consumed.
    unconfirmed: VecDeque<T>,
}

impl<T> Producer<T> {
    /// A producer for a buffer of this capacity, none of whose items has been produced.
    ///
    /// # Panics
    ///
    /// If the capacity is zero: nothing could ever be produced.
    pub fn new(capacity: u64) -> Self {
        Self::resume(capacity, 0)
    }

    /// A producer that goes on after a restart: the consumer says that it has consumed this number
    /// of items. The next item to be produced is the one after them.
    ///
    /// # Panics
    ///
    /// If the capacity is zero.
    pub fn resume(capacity: u64, consumed: u64) -> Self {
        assert!(capacity > 0, "a buffer has room for at least one item");
        Self { capacity, consumed, unconfirmed: VecDeque::new() }
    }

    /// The number of items that may be produced now.
    pub fn free(&self) -> u64 {
        self.capacity - self.unconfirmed.len() as u64
    }

    /// Produce an item if there is room for it. The answer is the message that takes it to the
    /// consumer; if there is no room, it is the item.
    pub fn produce(&mut self, item: T) -> Result<Message<T>, T>
    where
        T: Clone,
    {
        if self.free() == 0 {
            return Err(item);
        }
        self.unconfirmed.push_back(item.clone());
        Ok(Message::Item(self.produced(), item))
    }

    /// A CREDIT has arrived. It is refused, and changes nothing, if no consumer of this producer
    /// can have sent it.
    pub fn credit(&mut self, consumed: u64) -> Result<(), &'static str> {
        if consumed > self.produced() {
            return Err("a credit for items that were not produced");
        }
        while self.consumed < consumed {
            self.unconfirmed.pop_front();
            self.consumed += 1;
        }
        Ok(())
    }

    /// The items that are not known to be consumed, in order, to be sent again.
    pub fn unconfirmed(&self) -> impl Iterator<Item = Message<T>> + '_
    where
        T: Clone,
    {
        (self.consumed + 1..)
            .zip(self.unconfirmed.iter().cloned())
            .map(|(n, t)| Message::Item(n, t))
    }

    /// The number of items produced.
    pub fn produced(&self) -> u64 {
        self.consumed + self.unconfirmed.len() as u64
    }

    /// The number of items that are known to be consumed.
    pub fn known_consumed(&self) -> u64 {
        self.consumed
    }

    /// Count from `base` instead of from the beginning. Only checkers call this: otherwise counters
    /// grow for ever and no search of all states ends.
    pub fn rebase(&mut self, base: u64) {
        self.consumed -= base;
    }
}

/// The side that consumes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Consumer<T> {
    capacity: u64,
    consumed: u64,
    /// The items that have arrived and are not consumed, by their numbers.
    arrived: BTreeMap<u64, T>,
}

impl<T> Consumer<T> {
    /// A consumer of a buffer of this capacity, to which no item has come.
    pub fn new(capacity: u64) -> Self {
        Self::resume(capacity, 0)
    }

    /// A consumer that goes on after a restart of either side, when this number of items have been
    /// consumed. Items that have arrived and were not consumed will arrive again.
    pub fn resume(capacity: u64, consumed: u64) -> Self {
        Self { capacity, consumed, arrived: BTreeMap::new() }
    }

    /// An ITEM has arrived. Returns whether it is new; if it is not, nothing changes. It is
    /// refused, and changes nothing, if there is no room for it: no correct producer sends it then.
    pub fn item(&mut self, number: u64, item: T) -> Result<bool, &'static str> {
        if number == 0 || number > self.consumed.saturating_add(self.capacity) {
            return Err("an item for which there is no room");
        }
        let new = number > self.consumed && !self.arrived.contains_key(&number);
        if new {
            self.arrived.insert(number, item);
        }
        Ok(new)
    }

    /// Consume the next item, if it has arrived.
    pub fn consume(&mut self) -> Option<T> {
        let item = self.arrived.remove(&(self.consumed + 1))?;
        self.consumed += 1;
        Some(item)
    }

    /// The message that tells the producer how many items have been consumed. A message for several
    /// items at once is enough.
    pub fn credit(&self) -> Message<T> {
        Message::Credit(self.consumed)
    }

    /// The number of items consumed.
    pub fn consumed(&self) -> u64 {
        self.consumed
    }

    /// The image of the producer's counter: the number up to which all items have arrived.
    pub fn known_produced(&self) -> u64 {
        let numbered = self.arrived.keys().zip(self.consumed + 1..);
        self.consumed + numbered.take_while(|(arrived, next)| *arrived == next).count() as u64
    }

    /// Count from `base` instead of from the beginning. Only checkers call this.
    pub fn rebase(&mut self, base: u64) {
        self.consumed -= base;
        let arrived = core::mem::take(&mut self.arrived);
        self.arrived = arrived.into_iter().map(|(number, item)| (number - base, item)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_pass_in_order_however_they_arrive() {
        let (mut producer, mut consumer) = (Producer::new(3), Consumer::new(3));
        let items: alloc::vec::Vec<_> =
            (0..4).filter_map(|item| producer.produce(item).ok()).collect();
        assert_eq!(items.len(), 3, "there is no room for the fourth");
        for message in items.iter().rev().chain(&items) {
            let Message::Item(number, item) = message else { panic!("{message:?}") };
            assert!(consumer.item(*number, *item).is_ok());
        }
        let taken: alloc::vec::Vec<_> = core::iter::from_fn(|| consumer.consume()).collect();
        assert_eq!((taken.as_slice(), consumer.credit()), (&[0, 1, 2][..], Message::Credit(3)));
        assert_eq!((producer.credit(3), producer.free()), (Ok(()), 3));
    }

    #[test]
    fn what_no_correct_peer_sends_is_refused_and_changes_nothing() {
        let (mut producer, mut consumer) = (Producer::<u8>::new(2), Consumer::new(2));
        assert!(producer.produce(1).is_ok());
        let before = (producer.clone(), consumer.clone());
        assert!(producer.credit(2).is_err() && producer.credit(u64::MAX).is_err());
        assert!(consumer.item(0, 1).is_err() && consumer.item(3, 1).is_err());
        assert!(consumer.item(u64::MAX, 1).is_err());
        assert_eq!((producer, consumer), before);
    }

    #[test]
    fn a_restart_goes_on_after_what_was_consumed() {
        let (mut producer, mut consumer) = (Producer::resume(2, 7), Consumer::resume(2, 7));
        assert_eq!(producer.produce('a'), Ok(Message::Item(8, 'a')));
        assert_eq!(consumer.item(7, 'x'), Ok(false), "it was consumed before the restart");
        assert_eq!(consumer.item(8, 'a'), Ok(true));
        assert_eq!((consumer.consume(), consumer.known_produced()), (Some('a'), 8));
        assert_eq!(producer.unconfirmed().count(), 1);
        assert_eq!(producer.credit(8), Ok(()));
        assert_eq!(producer.unconfirmed().count(), 0);
    }
}
