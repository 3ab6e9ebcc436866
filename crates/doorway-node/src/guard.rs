//! What a client has that is inside.

use std::borrow::Borrow;
use std::fmt;
use std::future::poll_fn;

use doorway_protocol::Fence;

use crate::error::Lost;
use crate::handle::Handle;
use crate::locks::{ClientId, Shard, ShardEffects};

/// A lock that is held. Dropping it releases the lock.
#[must_use = "a guard that is dropped at once protects nothing"]
pub struct LockGuard<H: Borrow<Handle>> {
    handle: H,
    client: ClientId,
    fence: Fence,
}

/// A guard that borrows the handle it came from.
pub type Guard<'a> = LockGuard<&'a Handle>;

/// A guard that goes where it likes.
pub type OwnedGuard = LockGuard<Handle>;

impl<H: Borrow<Handle>> LockGuard<H> {
    pub(crate) fn new(handle: H, client: ClientId, fence: Fence) -> Self {
        Self { handle, client, fence }
    }

    /// The number to send along with whatever the lock protects: a resource that has seen a higher
    /// one refuses it.
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// The lock.
    pub fn handle(&self) -> &Handle {
        self.handle.borrow()
    }

    /// Has the lock been lost? Then someone else may be inside.
    pub fn is_lost(&self) -> bool {
        let handle = self.handle();
        handle.node().shard(handle.shard()).is_lost(self.client)
    }

    /// Wait until the lock is lost: its node has stopped, or the lock is out of order because a
    /// member did what its algorithm forbids. While all are well this never returns. Any number of
    /// tasks may wait for it.
    pub async fn lost(&self) {
        let handle = self.handle();
        poll_fn(|context| {
            let watch = |shard: &mut Shard, _, out: &mut ShardEffects| {
                shard.poll_lost(self.client, context.waker(), out)
            };
            handle.node().with_shard(handle.shard(), watch).map(drop)
        })
        .await;
    }

    /// Release the lock, and hear whether it was held to the end. Dropping the guard releases it as
    /// well, but tells nothing.
    pub fn release(self) -> Result<(), Lost> {
        if self.is_lost() { Err(Lost) } else { Ok(()) }
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
