//! The arbiter of section 10, where locks are taken in one order: first come, first served.

use crate::algorithms::prelude::*;

/// Locked for one request at a time; the others wait in the order in which they came.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Gate<T> {
    lock: Option<T>,
    queue: VecDeque<T>,
}

impl<T: Copy + Eq> Gate<T> {
    /// A gate locked for `lock`, if anything.
    pub fn locked_for(lock: Option<T>) -> Self {
        Self { lock, queue: VecDeque::new() }
    }

    /// Is it locked for nobody, so that nobody waits either?
    pub fn is_free(&self) -> bool {
        self.lock.is_none()
    }

    /// Does `request` have the lock?
    pub fn is_locked_for(&self, request: T) -> bool {
        self.lock == Some(request)
    }

    /// Does a request of this kind wait?
    pub fn awaits(&self, kind: impl Fn(&T) -> bool) -> bool {
        self.queue.iter().any(kind)
    }

    /// Lock for `request` or let it wait; true if it has the lock now.
    ///
    /// A node's next request may overtake its RELEASE and wait for its own lock, but only once.
    pub fn request(&mut self, request: T) -> Result<bool, &'static str> {
        if self.queue.contains(&request) {
            return Err("a request that waits already");
        }
        let free = self.is_free();
        if free {
            self.lock = Some(request);
        } else {
            self.queue.push_back(request);
        }
        Ok(free)
    }

    /// The owner is done; returns the next one.
    pub fn release(&mut self, owner: impl Fn(T) -> bool) -> Result<Option<T>, &'static str> {
        if !self.lock.is_some_and(owner) {
            return Err("a lock released by another than its owner");
        }
        self.lock = self.queue.pop_front();
        Ok(self.lock)
    }
}
