//! What will happen, in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A queue of events by time. Events of the same time happen in the order in which they were added.
#[derive(Debug)]
pub(crate) struct Queue<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    sequence: u64,
}

#[derive(Debug)]
struct Entry<E> {
    key: (u64, u64),
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

impl<E> Queue<E> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), sequence: 0 }
    }

    /// Let an event happen at this time, in nanoseconds.
    pub(crate) fn push(&mut self, at: u64, event: E) {
        self.sequence += 1;
        self.heap.push(Reverse(Entry { key: (at, self.sequence), event }));
    }

    /// Take the next event, and its time.
    pub(crate) fn pop(&mut self) -> Option<(u64, E)> {
        self.heap.pop().map(|Reverse(entry)| (entry.key.0, entry.event))
    }
}
