//! A lock that is held.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::{Fence, Name};

use super::client::Handle;
use crate::error::ReleaseError;
use crate::machine::State;

/// A lock that is held until this is released or dropped, unless it is lost before.
#[must_use = "the lock is released when the grant is dropped"]
pub struct Grant {
    handle: Arc<Handle>,
    lock: Name,
    fence: Fence,
    /// Is it up to us to release it?
    ours: bool,
}

impl Grant {
    pub(super) fn new(handle: Arc<Handle>, lock: Name, fence: Fence) -> Self {
        Self { handle, lock, fence, ours: true }
    }

    /// The lock.
    pub fn lock(&self) -> &Name {
        &self.lock
    }

    /// The number that tells this grant from others: give it to the resource, which refuses lower
    /// ones. See [`Gate`](crate::Gate).
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// How sure we can be that the lock is ours.
    pub fn state(&self) -> State {
        self.handle.shared.lock().session.state_of(&self.lock, self.fence)
    }

    /// Must the lock be taken for someone else's?
    pub fn is_lost(&self) -> bool {
        self.state() == State::Lost
    }

    /// For how long the lock is surely ours if the node is not heard of again: nothing if it is
    /// lost, none if it does not end by itself.
    pub fn remaining(&self) -> Option<Duration> {
        self.handle.shared.lock().session.remaining(&self.lock, self.fence)
    }

    /// Release the lock, and say whether it was ours until now.
    pub fn release(mut self) -> Result<(), ReleaseError> {
        self.ours = false;
        let (lock, fence, handle) = (&self.lock, self.fence, &self.handle);
        if handle.is_here() {
            handle.shared.lock().session.check(lock, fence)?;
        }
        let outcome = handle.call(|machine, now| machine.release(now, lock, fence));
        outcome.given_back(lock, fence, || handle.shared.lock().session.loss(lock, fence))
    }

    /// Leave the lock to the session, which must be one that lives without a connection; else it
    /// ends with the client. It can be released by its fence.
    pub fn keep(mut self) -> Fence {
        self.ours = false;
        self.fence
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        let (lock, fence, handle) = (&self.lock, self.fence, &self.handle);
        if self.ours && handle.is_here() && handle.shared.lock().session.check(lock, fence).is_ok()
        {
            handle.shared.tell(|machine, now| machine.release(now, lock, fence));
        }
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        let (lock, fence) = (&self.lock, &self.fence);
        let mut shown = f.debug_struct("Grant");
        shown
            .field("lock", lock)
            .field("fence", fence)
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
