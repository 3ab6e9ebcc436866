//! Locks that a program keeps after it has left them, until somebody else wants them.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;

use doorway_protocol::Fence;
use tokio::task::coop;

use crate::acquire::Acquire;
use crate::error::{AcquireError, LostLock};
use crate::guard::Guard;
use crate::handle::{Handle, Session};
use crate::locks::{ClientId, KeptWord};

/// How many numbers are reserved after the fence of a grant that is kept. With them a program
/// enters a thousand times for one step of the shard.
const NUMBERS: u32 = 1000;

/// A lock that stays with its last user until somebody else wants it. [`Handle::keep`] makes one.
///
/// When a guard is dropped, the lock stays held, and the next entry is an atomic exchange on the
/// caller's thread. When another client of this node or another node asks for the lock, the node
/// releases it at once if no guard exists, and otherwise when the guard is dropped. Each entry has
/// a fence of its own, higher than that of the entry before.
///
/// Only exclusive locks are kept. In a group, the algorithm of the lock must tell a node whether
/// other nodes wait for it, which quorum algorithms do not. In all other cases a `KeptLock` works
/// as its handle does, and so it does after a lock was lost. The lock is released when the
/// `KeptLock` is dropped.
///
/// While the lock is kept, the node counts it as held: [`Node::locks`](crate::Node::locks) and
/// [`Handle::why`] show its client, with the fence of the first entry. A `KeptLock` belongs to one
/// user; several users of one lock have a `KeptLock` each. A forked child must use neither the node
/// nor its locks: it has a copy of them that nobody else knows of.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = doorway_node::Node::alone();
/// let mut orders = node.open("orders")?.keep();
/// let first = orders.lock().await?.fence(); // The guard is dropped at once, the lock is kept.
/// let second = orders.lock().await?.fence();
/// assert!(second > first);
///
/// let _guard = node.lock("orders").await?; // Another client asks, and gets the lock.
/// # Ok(())
/// # }
/// ```
pub struct KeptLock {
    handle: Handle,
    session: Session,
    grant: Option<KeptGrant>,
}

/// A grant of the shard, which may last for several entries.
struct KeptGrant {
    client: ClientId,
    /// The fence of the last entry.
    fence: Fence,
    /// How many numbers after that fence are left.
    left: u32,
    /// Is there a guard, or was there one that did not get to its end?
    inside: bool,
    /// None if the grant is not kept.
    word: Option<Arc<KeptWord>>,
}

impl KeptLock {
    pub(crate) fn new(handle: Handle) -> Self {
        Self { handle, session: Session::NONE, grant: None }
    }

    /// Make all requests on behalf of a session.
    pub fn session(mut self, session: Session) -> Self {
        self.session = session;
        self
    }

    /// Enter: again if the lock is kept, otherwise as with [`Handle::lock`]. Dropping the future at
    /// any time withdraws the request.
    pub async fn lock(&mut self) -> Result<KeptGuard<'_>, AcquireError> {
        // See `Acquire`: a task that enters in a loop must let other tasks run.
        poll_fn(|context| coop::poll_proceed(context).map(|budget| budget.made_progress())).await;
        if let Some((client, fence)) = self.enter_again() {
            return Ok(KeptGuard { lock: self, client, fence });
        }
        let guard = self.acquire().await?;
        let grant = KeptGrant::new(guard);
        Ok(self.entered(grant))
    }

    /// Enter only if that is possible immediately: the lock is kept, or [`Handle::try_lock`] would
    /// acquire it.
    pub fn try_lock(&mut self) -> Result<Option<KeptGuard<'_>>, AcquireError> {
        if let Some((client, fence)) = self.enter_again() {
            return Ok(Some(KeptGuard { lock: self, client, fence }));
        }
        let grant = self.acquire().try_now()?.map(KeptGrant::new);
        Ok(grant.map(|grant| self.entered(grant)))
    }

    /// The handle of the lock.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Release the lock now, instead of keeping it until somebody else wants it.
    pub fn give_back(&mut self) {
        let Some(KeptGrant { client, inside, word, .. }) = self.grant.take() else { return };
        // If the word was revoked while the client was outside, the node has released the lock.
        if inside || word.is_some_and(|word| word.take()) {
            self.handle.node().release_kept(self.handle.shard(), client);
        }
    }

    fn acquire(&self) -> Acquire<&Handle> {
        self.handle.lock().session(self.session).keep(NUMBERS)
    }

    fn entered(&mut self, grant: KeptGrant) -> KeptGuard<'_> {
        let (client, fence) = (grant.client, grant.fence);
        self.grant = Some(grant);
        KeptGuard { lock: self, client, fence }
    }

    /// Enter with the grant that is kept. If that is not possible, nothing is kept any more.
    #[inline]
    fn enter_again(&mut self) -> Option<(ClientId, Fence)> {
        let entered = self.grant.as_mut()?.enter(&self.handle);
        if entered.is_none() {
            self.give_back();
        }
        entered
    }
}

impl KeptGrant {
    fn new(guard: Guard<'_>) -> Self {
        let (handle, client, fence) = guard.into_parts();
        let word = Arc::new(KeptWord::inside());
        let left = handle.node().keep(handle.shard(), client, &word);
        Self { client, fence, left, inside: true, word: (left > 0).then_some(word) }
    }

    #[inline]
    fn enter(&mut self, handle: &Handle) -> Option<(ClientId, Fence)> {
        let word = self.word.as_ref().filter(|_| !self.inside)?;
        let (fence, left) = (self.fence.next()?, self.left.checked_sub(1)?);
        if !handle.node().is_within_lease() || !word.enter() {
            return None;
        }
        (self.fence, self.left, self.inside) = (fence, left, true);
        Some((self.client, fence))
    }

    /// Leave, and keep the lock. Returns false if it has to be released instead.
    fn leave(&mut self) -> bool {
        let kept = self.left > 0 && self.word.as_ref().is_some_and(|word| word.leave());
        self.inside = !kept;
        kept
    }
}

impl Drop for KeptLock {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl fmt::Debug for KeptLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeptLock").field(self.handle.name()).finish()
    }
}

/// A guard for a lock that is held. When it is dropped, the lock is kept until somebody else wants
/// it: see [`KeptLock`].
#[must_use = "the lock is left as soon as the guard is dropped"]
pub struct KeptGuard<'a> {
    lock: &'a mut KeptLock,
    client: ClientId,
    fence: Fence,
}

impl KeptGuard<'_> {
    /// The fencing token of this entry. See [`LockGuard::fence`](crate::LockGuard::fence).
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// Has the lock been lost? If so, another client may hold it by now.
    pub fn is_lost(&self) -> bool {
        self.lock.handle.is_lost(self.client)
    }

    /// Wait until the lock is lost. See [`LockGuard::lost`](crate::LockGuard::lost).
    pub async fn lost(&self) {
        self.lock.handle.lost(self.client).await;
    }

    /// Leave the lock, and learn whether it was held to the end. Dropping the guard leaves the lock
    /// as well, but does not tell.
    pub fn release(self) -> Result<(), LostLock> {
        if self.is_lost() { Err(LostLock) } else { Ok(()) }
    }
}

impl Drop for KeptGuard<'_> {
    fn drop(&mut self) {
        if !self.lock.grant.as_mut().is_some_and(KeptGrant::leave) {
            self.lock.give_back();
        }
    }
}

impl fmt::Debug for KeptGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptGuard")
            .field("lock", self.lock.handle.name())
            .field("fence", &self.fence)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::KeptGuard;
    use crate::Node;

    /// Nothing but the time tells that the lease is over: no shard was called since.
    #[tokio::test]
    async fn nobody_enters_again_when_the_lease_is_over() {
        let mut lock = Node::alone().open("a").expect("a name").keep();
        drop(lock.lock().await.expect("a grant"));
        let handle = lock.handle().clone();
        let shell = handle.node();
        shell.set_lease(shell.now() + Duration::from_mins(1));
        let guard =
            lock.enter_again().map(|(client, fence)| KeptGuard { lock: &mut lock, client, fence });
        drop(guard.expect("the lease lasts"));
        shell.set_lease(shell.now());
        assert!(lock.enter_again().is_none());
        assert!(lock.try_lock().expect("no error").is_none(), "the shard refuses, too");
    }
}
