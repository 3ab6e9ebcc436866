//! A lock that is held.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::{Fence, Name};

use super::client::Handle;
use crate::clock::Moment;
use crate::desk::too_late;
use crate::error::Lost;
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
        let inner = self.handle.shared.lock();
        inner.desk.line.grant_state(&self.lock, self.fence, Moment::now())
    }

    /// Must the lock be taken for someone else's?
    pub fn is_lost(&self) -> bool {
        self.state() == State::Lost
    }

    /// For how long the lock is surely ours if the node is not heard of again: nothing if it is
    /// lost, none if it does not end by itself.
    pub fn remaining(&self) -> Option<Duration> {
        let now = Moment::now();
        let inner = self.handle.shared.lock();
        if inner.desk.line.grant_state(&self.lock, self.fence, now) == State::Lost {
            return Some(Duration::ZERO);
        }
        inner.desk.line.deadline().map(|deadline| deadline.since(now))
    }

    /// Release the lock, and say whether it was ours until now.
    pub async fn release(mut self) -> Result<(), Lost> {
        self.ours = false;
        let (lock, fence) = (&self.lock, self.fence);
        if self.is_lost() {
            return Err(too_late(lock, fence));
        }
        let call = self.handle.shared.call(|machine, now| machine.release(now, lock, fence));
        call.await.given_back(lock, fence)
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
        if self.ours && !self.is_lost() {
            let (lock, fence) = (&self.lock, self.fence);
            self.handle.shared.tell(|machine, now| machine.release(now, lock, fence));
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
