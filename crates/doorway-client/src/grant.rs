//! A lock that is held.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::{Fence, Name};

use crate::error::{Error, ReleaseError};
use crate::machine::State;
use crate::session::{Handle, Outcome};

/// The client whose grants have the short name `doorway_client::Grant`.
#[cfg(feature = "tokio")]
type DefaultClient = crate::asynchronous::Client;
#[cfg(not(feature = "tokio"))]
type DefaultClient = crate::blocking::Client;

/// A lock that a client holds until the grant is released or dropped, unless the lock is lost
/// before.
///
/// `C` is the client that acquired the lock: the async [`Client`](crate::Client), or
/// [`blocking::Client`](crate::blocking::Client). A grant keeps the session of its client alive.
///
/// Dropping a grant releases the lock without waiting for the node to confirm it. `release` waits,
/// and says whether the lock was held until then.
#[must_use = "the lock is released when the grant is dropped"]
pub struct Grant<C = DefaultClient> {
    pub(crate) client: C,
    pub(crate) held: HeldLock,
}

impl<C> Grant<C> {
    /// The name of the lock.
    pub fn lock(&self) -> &Name {
        &self.held.lock
    }

    /// The fence of this grant. A later exclusive grant of the lock has a higher one.
    ///
    /// Send it along with every write to the resource that the lock protects. A resource that
    /// refuses lower fences is safe from a holder that was paused and has lost the lock: see
    /// [`gate`](crate::gate).
    pub fn fence(&self) -> Fence {
        self.held.fence
    }

    /// Whether the lock is still held, by this client's own clock.
    pub fn state(&self) -> State {
        self.held.state()
    }

    /// Is the lock lost? Then another client may hold it already.
    pub fn is_lost(&self) -> bool {
        self.state() == State::Lost
    }

    /// For how long the lock is still held if the node does not answer again. Zero if the lock is
    /// lost, and `None` if the session does not expire.
    pub fn remaining(&self) -> Option<Duration> {
        self.held.remaining()
    }

    /// Leave the lock to the session, so that dropping the grant does not release it.
    ///
    /// The lock can be released later by its fence, with `Client::release`. It is held on after the
    /// client is gone only if the session lives without a connection: see [`Life`](crate::Life).
    pub fn keep(self) -> Fence {
        self.held.keep()
    }
}

impl<C> fmt::Debug for Grant<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HeldLock { lock, fence, .. } = &self.held;
        let mut shown = f.debug_struct("Grant");
        shown.field("lock", lock).field("fence", fence).field("state", &self.state());
        shown.finish_non_exhaustive()
    }
}

/// A lock of a session, which is released when this is dropped.
pub(crate) struct HeldLock {
    handle: Arc<Handle>,
    pub(crate) lock: Name,
    pub(crate) fence: Fence,
    /// Is it still up to us to release the lock?
    ours: bool,
}

impl HeldLock {
    pub(crate) fn new(handle: &Arc<Handle>, lock: Name, fence: Fence) -> Self {
        Self { handle: Arc::clone(handle), lock, fence, ours: true }
    }

    fn state(&self) -> State {
        self.handle.lock().state_of(&self.lock, self.fence)
    }

    fn remaining(&self) -> Option<Duration> {
        self.handle.lock().remaining(&self.lock, self.fence)
    }

    fn keep(mut self) -> Fence {
        self.ours = false;
        self.fence
    }

    /// Leave the lock and let the session keep it, if that is possible without the node.
    pub(crate) fn leave_kept(&mut self) -> bool {
        let kept = self.handle.leave_kept(&self.lock, self.fence);
        self.ours &= !kept;
        kept
    }

    /// The caller releases the lock with a request of its own, unless the lock is lost, or this is
    /// a forked child.
    pub(crate) fn begin_release(&mut self) -> Result<(), ReleaseError> {
        self.ours = false;
        self.handle.check_process().map_err(|refusal| self.unknown(refusal.into()))?;
        Ok(self.handle.lock().check(&self.lock, self.fence)?)
    }

    /// Read the answer to that request.
    pub(crate) fn end_release(&self, outcome: Outcome) -> Result<(), ReleaseError> {
        match outcome.released() {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.handle.lock().loss(&self.lock, self.fence).into()),
            Err(why) => Err(self.unknown(why)),
        }
    }

    fn unknown(&self, why: Error) -> ReleaseError {
        ReleaseError::Unknown { lock: self.lock.clone(), fence: self.fence, why: Box::new(why) }
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        if self.ours && self.leave_kept() {
            return;
        }
        let (lock, fence, handle) = (&self.lock, self.fence, &self.handle);
        if self.ours && handle.is_here() && handle.lock().check(lock, fence).is_ok() {
            handle.shared.tell(|machine, now| machine.release(now, lock, fence));
        }
    }
}
