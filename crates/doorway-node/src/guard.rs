//! The guard of a client that holds a lock.

use std::borrow::Borrow;
use std::fmt;
use std::mem;

use doorway_protocol::Fence;

use crate::error::LostLock;
use crate::handle::Handle;
use crate::locks::ClientId;

/// A guard for a lock that is held. Dropping it releases the lock.
#[must_use = "the lock is released as soon as the guard is dropped"]
pub struct LockGuard<H: Borrow<Handle>> {
    handle: H,
    client: ClientId,
    fence: Fence,
}

/// A guard that borrows the handle it came from.
pub type Guard<'a> = LockGuard<&'a Handle>;

/// A guard that owns its handle, so it can be stored and sent to other tasks.
pub type OwnedGuard = LockGuard<Handle>;

impl<H: Borrow<Handle>> LockGuard<H> {
    pub(crate) fn new(handle: H, client: ClientId, fence: Fence) -> Self {
        Self { handle, client, fence }
    }

    /// Take the guard apart, without releasing the lock.
    pub(crate) fn into_parts(self) -> (H, ClientId, Fence)
    where
        H: Copy,
    {
        let parts = (self.handle, self.client, self.fence);
        mem::forget(self);
        parts
    }

    /// The fencing token of this grant. Send it along with every request to the resource that the
    /// lock protects; a resource that has seen a higher fence refuses the request.
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// How many numbers after the fence belong to this guard, if its holder keeps the lock. It may
    /// use each of them as the fence of one more entry. When somebody else wants the lock, the node
    /// calls [`OnWanted`](crate::OnWanted); from then on this is 0, and the holder must not enter
    /// again.
    pub fn reserved(&self) -> u32 {
        let handle = self.handle();
        handle.node().shard(handle.shard()).reserved(self.client)
    }

    /// The handle of the lock.
    pub fn handle(&self) -> &Handle {
        self.handle.borrow()
    }

    /// Has the lock been lost? If so, another client may hold it by now.
    pub fn is_lost(&self) -> bool {
        self.handle().is_lost(self.client)
    }

    /// Wait until the lock is lost. A lock is lost when its node stops, or when the lock breaks
    /// because a member violated its algorithm. As long as the lock is held, this never returns.
    /// Any number of tasks may wait.
    pub async fn lost(&self) {
        self.handle().lost(self.client).await;
    }

    /// Release the lock, and learn whether it was held to the end. Dropping the guard releases the
    /// lock as well, but does not tell.
    pub fn release(self) -> Result<(), LostLock> {
        if self.is_lost() { Err(LostLock) } else { Ok(()) }
    }
}

impl<H: Borrow<Handle>> Drop for LockGuard<H> {
    fn drop(&mut self) {
        let handle = self.handle.borrow();
        handle.node().leave(handle.shard(), self.client);
    }
}

impl<H: Borrow<Handle>> fmt::Debug for LockGuard<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("lock", self.handle().name())
            .field("fence", &self.fence)
            .finish_non_exhaustive()
    }
}
