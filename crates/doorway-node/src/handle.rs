//! Handles of locks, and sessions.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;

use doorway_core::Info;
use doorway_protocol::Name;

use crate::acquire::Acquire;
use crate::error::AcquireError;
use crate::guard::{Guard, OwnedGuard};
use crate::kept_lock::KeptLock;
use crate::locks::{ClientId, Shard, ShardEffects, Slot};
use crate::runtime::NodeRuntime;
use crate::shell::NodeShell;
use crate::wait_report::WaitReport;

/// A handle of a lock that was looked up once. Clones share it, and the node keeps the lock in
/// memory at least as long as one of them lives.
#[derive(Clone)]
pub struct Handle(Arc<PinnedLock>);

/// The numbers are small, because there is one of these for each lock that is held.
struct PinnedLock {
    node: Arc<NodeRuntime>,
    name: Name,
    shard: u32,
    slot: Slot,
}

impl Drop for PinnedLock {
    fn drop(&mut self) {
        self.node.shell.shard(self.shard as usize).close(self.slot);
    }
}

impl Handle {
    pub(crate) fn new(node: Arc<NodeRuntime>, name: Name) -> Self {
        let shard = node.shell.shard_of(&name);
        let slot = node.shell.shard(shard).open(&name);
        Self(Arc::new(PinnedLock { node, name, shard: shard as u32, slot }))
    }

    /// The lock's name.
    pub fn name(&self) -> &Name {
        &self.0.name
    }

    /// The name of the algorithm that serves the lock now. A group that agrees on its members may
    /// change it.
    pub fn algorithm(&self) -> &'static str {
        self.info().name
    }

    /// How the lock is served now: the algorithm, and how the members are arranged for it.
    pub fn arrangement(&self) -> String {
        let shard = self.node().shard(self.shard());
        shard.rule(self.slot()).title(self.name(), &shard.seating().members)
    }

    /// Does the lock have a shared mode now, in which several clients can be inside?
    pub fn serves_shared(&self) -> bool {
        self.info().shared
    }

    /// The description of the algorithm that serves the lock now.
    pub(crate) fn info(&self) -> Info {
        self.node().shard(self.shard()).rule(self.slot()).info
    }

    /// Acquire the lock, exclusively unless the request is made [`Acquire::shared`].
    ///
    /// If this node already has the permission of its algorithm, the first poll returns the guard:
    /// that is a function call on the caller's thread, without a message.
    pub fn lock(&self) -> Acquire<&Self> {
        Acquire::new(self)
    }

    /// Acquire the lock as [`Handle::lock`] does, with a guard that borrows nothing.
    pub fn lock_owned(&self) -> Acquire<Self> {
        Acquire::new(self.clone())
    }

    /// Acquire the lock only if that is possible immediately: no client waits for it, and no other
    /// node has to be asked. With an algorithm that asks other nodes at every entry, this succeeds
    /// only in a group of one.
    pub fn try_lock(&self) -> Result<Option<Guard<'_>>, AcquireError> {
        self.lock().try_now()
    }

    /// Acquire the lock as [`Handle::try_lock`] does, with a guard that borrows nothing.
    pub fn try_lock_owned(&self) -> Result<Option<OwnedGuard>, AcquireError> {
        self.lock_owned().try_now()
    }

    /// Find out why requests for this lock wait. This asks the other members, which have half a
    /// second to answer, and goes on to the locks for which its holders wait.
    pub async fn why(&self) -> WaitReport {
        self.node().why(self.name()).await
    }

    /// How many clients of this node wait for the lock.
    pub fn waiting(&self) -> usize {
        self.node().shard(self.shard()).waiters(self.slot())
    }

    /// Keep the lock after each entry until somebody else wants it, so that entering it again costs
    /// little: see [`KeptLock`].
    pub fn keep(self) -> KeptLock {
        KeptLock::new(self)
    }

    /// Has a client of this lock that was inside lost it?
    pub(crate) fn is_lost(&self, client: ClientId) -> bool {
        let now = self.node().now();
        let shard = self.node().shard(self.shard());
        shard.is_lost(client) || shard.is_over(now)
    }

    /// Wait until a client of this lock that is inside has lost it.
    pub(crate) async fn lost(&self, client: ClientId) {
        poll_fn(|context| {
            let watch = |shard: &mut Shard, _, out: &mut ShardEffects| {
                shard.poll_lost(client, context.waker(), out)
            };
            self.node().with_shard(self.shard(), watch).map(drop)
        })
        .await;
    }

    pub(crate) fn node(&self) -> &NodeShell {
        &self.0.node.shell
    }

    pub(crate) fn shard(&self) -> usize {
        self.0.shard as usize
    }

    pub(crate) fn slot(&self) -> Slot {
        self.0.slot
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle").field(self.name()).finish()
    }
}

/// A session, on whose behalf locks are requested. If sessions deadlock, each holding a lock for
/// which the next one waits, [`Handle::why`] shows the circle. A session belongs to the node that
/// made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Session(u64);

impl Session {
    /// The session of a request that was made without one. Such requests are never part of a
    /// deadlock.
    pub(crate) const NONE: Self = Self(0);

    /// Make a session with a given number, for a service that numbers its sessions itself. Such a
    /// service must not use [`Node::session`](crate::Node::session) as well. The number 0 stands
    /// for no session.
    pub fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number by which reports name the session; it is unique at its node.
    pub fn number(self) -> u64 {
        self.0
    }
}
