//! A lock that was looked up once, and sessions.

use std::fmt;
use std::sync::Arc;

use doorway_protocol::Name;

use crate::acquire::Acquire;
use crate::error::AcquireError;
use crate::guard::{Guard, OwnedGuard};
use crate::inner::Inner;
use crate::locks::Slot;
use crate::runtime::NodeRuntime;
use crate::wait_report::WaitReport;

/// A lock of a node, looked up once. Copies share it; the node remembers the lock at least as long
/// as one of them lives.
#[derive(Clone)]
pub struct Handle(Arc<Pinned>);

/// Numbers are kept small, for there is one of these for each lock that is held.
struct Pinned {
    node: Arc<NodeRuntime>,
    name: Name,
    rule: u32,
    shard: u32,
    slot: Slot,
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.node.inner.shard(self.shard as usize).close(self.slot);
    }
}

impl Handle {
    pub(crate) fn new(node: Arc<NodeRuntime>, name: Name) -> Self {
        let (shard, rule) = (node.inner.shard_of(&name), node.inner.rule_of(&name));
        let slot = node.inner.shard(shard).open(&name, rule);
        let (rule, shard) = (rule as u32, shard as u32);
        Self(Arc::new(Pinned { node, name, rule, shard, slot }))
    }

    /// The lock's name.
    pub fn name(&self) -> &Name {
        &self.0.name
    }

    /// The algorithm that serves it.
    pub fn algorithm(&self) -> &'static str {
        self.node().rule(self.rule()).info.name
    }

    /// Can several be inside who share it?
    pub fn serves_shared(&self) -> bool {
        self.node().rule(self.rule()).info.shared
    }

    /// Wait for the lock, alone inside unless the request is made [`Acquire::shared`].
    ///
    /// Where the permission is already at this node, the first poll returns the guard: a function
    /// call on the caller's thread.
    pub fn lock(&self) -> Acquire<&Self> {
        Acquire::new(self)
    }

    /// The same, with a guard that borrows nothing.
    pub fn lock_owned(&self) -> Acquire<Self> {
        Acquire::new(self.clone())
    }

    /// Take the lock if that is possible this very moment: nobody waits, and no other node has to
    /// be asked. With an algorithm that asks every time, that is only in a group of one.
    pub fn try_lock(&self) -> Result<Option<Guard<'_>>, AcquireError> {
        self.lock().try_now()
    }

    /// The same, with a guard that borrows nothing.
    pub fn try_lock_owned(&self) -> Result<Option<OwnedGuard>, AcquireError> {
        self.lock_owned().try_now()
    }

    /// Why does anyone wait for this lock? Asks the other members, which have half a second to
    /// answer, and goes on to the locks for which those inside wait.
    pub async fn why(&self) -> WaitReport {
        self.node().why(self.name()).await
    }

    /// How many clients of this node wait for it.
    pub fn waiting(&self) -> usize {
        self.node().shard(self.shard()).waiters(self.slot())
    }

    pub(crate) fn node(&self) -> &Inner {
        &self.0.node.inner
    }

    pub(crate) fn shard(&self) -> usize {
        self.0.shard as usize
    }

    pub(crate) fn slot(&self) -> Slot {
        self.0.slot
    }

    pub(crate) fn rule(&self) -> usize {
        self.0.rule as usize
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle").field(self.name()).finish()
    }
}

/// On whose behalf locks are asked for. Sessions that wait for each other in a circle, each holding
/// a lock that the next one wants, are found and shown to whoever asks why they wait. A session
/// belongs to the node that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Session(u64);

impl Session {
    /// What a request belongs to that was made without a session: each stands for itself.
    pub(crate) const NONE: Self = Self(0);

    /// A session with a number of your own, for a service that numbers its sessions itself; it
    /// must not use [`Node::session`](crate::Node::session) besides. 0 stands for no session.
    pub fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number by which reports name it, unique at its node.
    pub fn number(self) -> u64 {
        self.0
    }
}
