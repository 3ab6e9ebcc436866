//! The arbiter of section 10, where all nodes take locks in one order: first come, first served.

use crate::algorithms::prelude::*;

/// An arbiter that is locked for one request at a time. The others wait in the order of arrival.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Gate<T> {
    lock: Option<T>,
    queue: VecDeque<T>,
}

impl<T: Copy + Eq> Gate<T> {
    /// A gate that is locked for the request `lock`, or unlocked.
    pub fn locked_for(lock: Option<T>) -> Self {
        Self { lock, queue: VecDeque::new() }
    }

    /// Whether it is unlocked. Then no request waits either.
    pub fn is_free(&self) -> bool {
        self.lock.is_none()
    }

    /// Whether `request` has the lock.
    pub fn is_locked_for(&self, request: T) -> bool {
        self.lock == Some(request)
    }

    /// Whether a request waits for which `kind` is true.
    pub fn awaits(&self, kind: impl Fn(&T) -> bool) -> bool {
        self.queue.iter().any(kind)
    }

    /// Lock for `request`, or let it wait. Returns whether it has the lock now.
    ///
    /// A node's next request may overtake its RELEASE and wait for its own lock, but only once.
    pub fn request(&mut self, request: T) -> Result<bool, &'static str> {
        if self.queue.contains(&request) {
            return Err("a second request while the first one waits");
        }
        let free = self.is_free();
        if free {
            self.lock = Some(request);
        } else {
            self.queue.push_back(request);
        }
        Ok(free)
    }

    /// Handle RELEASE by the owner of the lock. Returns the request that gets the lock next.
    pub fn release(&mut self, owner: impl Fn(T) -> bool) -> Result<Option<T>, &'static str> {
        if !self.lock.is_some_and(owner) {
            return Err("a lock released by a node that does not have it");
        }
        self.lock = self.queue.pop_front();
        Ok(self.lock)
    }
}
