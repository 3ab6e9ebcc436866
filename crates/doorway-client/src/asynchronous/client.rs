//! The async client.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use doorway_protocol::{Code, Fence, Life, LockReport, Locks, Moment, Name, NodeStatus, Refusal};
use tokio::sync::Notify;

use super::call::{Call, Inner, Shared};
use super::driver::Driver;
use super::grant::Grant;
use crate::acquire::Acquire;
use crate::endpoint::Endpoint;
use crate::error::{Error, Lost};
use crate::machine::{SessionMachine, State};
use crate::options::Options;
use crate::session::{LossNotifier, Node, Session, forked};

/// A session at a node. A copy is the same session, which ends with its last copy and grant: the
/// node is told so if that can be sent at once, or finds the connection closed; where a network
/// swallows both, the session ends with its TTL.
///
/// Any number of tasks may use it. One that waits for a lock and is dropped withdraws its request.
/// A process that was forked from this one must connect by itself: here all that it asks for is
/// refused, and what it drops stays with its parent.
#[derive(Clone)]
pub struct Client {
    handle: Arc<Handle>,
}

/// What ends a session when nobody has it any more.
pub(super) struct Handle {
    pub(super) shared: Arc<Shared>,
    life: Life,
    /// The process that opened it. A child that was forked has the same socket, but none of the
    /// threads, and the session is not its to use or to end.
    process: u32,
}

impl Handle {
    /// Are we in the process that opened the session?
    pub(super) fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    /// Ask for something.
    pub(super) fn call(&self, make: impl FnOnce(&mut SessionMachine, Moment) -> u64) -> Call<'_> {
        if self.is_here() { self.shared.call(make) } else { Call::refused(&self.shared, forked()) }
    }
}

impl Client {
    /// Open a session. Its driver is a task of the runtime in which this is called.
    pub async fn connect(endpoint: &Endpoint, options: &Options) -> Result<Self, Error> {
        let unreachable = |why| Error::Unreachable { endpoint: endpoint.clone(), why };
        let kicked = Arc::new(Notify::new());
        let kick = Arc::clone(&kicked);
        let session = Session::new(endpoint, options, Box::new(move || kick.notify_one()))?;
        let state = Mutex::new(Inner { session, plan: Moment(0), closing: false });
        let attempt = options.attempt();
        let shared = Arc::new(Shared { endpoint: endpoint.clone(), attempt, state });
        let mut driver = Driver::new(Arc::clone(&shared), kicked).map_err(unreachable)?;
        let greeted = tokio::time::timeout(options.patience, driver.greet(options.patience)).await;
        if let Ok(connected) = greeted {
            connected.map_err(unreachable)?;
        }
        {
            let mut inner = shared.lock();
            if let Some(refusal) = inner.session.closed.take() {
                return Err(Error::Refused(refusal));
            }
            if !inner.session.line.is_talking() {
                let text = "whoever listens there does not answer".to_owned();
                return Err(Error::Refused(Refusal { code: Code::Unavailable, text }));
            }
        }
        tokio::spawn(driver.run());
        Ok(Self {
            handle: Arc::new(Handle { shared, life: options.life, process: std::process::id() }),
        })
    }

    /// Ask for a lock: `client.acquire("deploy").enter().await?`.
    pub fn acquire(&self, lock: &str) -> Acquire<'_, Self> {
        Acquire::new(self, lock)
    }

    /// Acquire several locks, all or none. They are taken in the order of their names, so that
    /// nobody who does the same can wait in a circle.
    pub async fn lock_all<'a>(
        &self,
        locks: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<Grant>, Error> {
        let names: Result<BTreeSet<Name>, _> = locks.into_iter().map(Name::new).collect();
        let mut grants = Vec::new();
        for name in names? {
            grants.push(self.acquire(name.as_str()).enter().await?);
        }
        Ok(grants)
    }

    /// Call this when a grant is lost: by the client's own clock before its node gives the lock to
    /// anyone else, or as soon as the node says so where it took the lock away: because someone
    /// broke it, or because the node itself gave the session up. Such a lock may be someone else's
    /// already.
    ///
    /// It runs on a thread of its own, one loss after the other. A copy of the client in it would
    /// keep the session for ever. Only the last one that is given is called.
    ///
    /// # Panics
    ///
    /// If the system starts no more threads.
    pub fn on_lost(&self, tell: impl Fn(&Lost) + Send + Sync + 'static) {
        let notifier = LossNotifier::new(tell);
        self.handle.shared.lock().session.on_lost = Some(notifier);
    }

    /// How sure we can be of what we hold.
    pub fn state(&self) -> State {
        self.handle.shared.lock().session.line.state(Moment::now())
    }

    /// The node that welcomed us.
    pub fn node(&self) -> Option<Node> {
        self.handle.shared.lock().session.welcome.clone()
    }

    /// In how long the node stops, if it said so and we have not found another one since: nothing
    /// is granted any more, and what is still held by then is lost.
    pub fn stopping(&self) -> Option<Duration> {
        self.handle.shared.lock().session.stopping()
    }

    /// Release a grant by its fence: of this session, or of one without a connection that the same
    /// client made. It is done as often as it is asked, and never frees a newer grant.
    pub async fn release(&self, lock: &str, fence: Fence) -> Result<bool, Error> {
        let name = Name::new(lock)?;
        let handle = &self.handle;
        handle.call(|machine, now| machine.release(now, &name, fence)).await.released()
    }

    /// Give a sign of life for the session without a connection that holds this grant.
    pub async fn renew(&self, lock: &str, fence: Fence) -> Result<(), Error> {
        let name = Name::new(lock)?;
        self.handle.call(|machine, now| machine.renew(now, &name, fence)).await.done()
    }

    /// All about a lock.
    pub async fn inspect(&self, lock: &str) -> Result<LockReport, Error> {
        let name = Name::new(lock)?;
        self.handle.call(|machine, now| machine.inspect(now, &name)).await.lock()
    }

    /// The locks whose names begin like this, after that one.
    pub async fn list(&self, prefix: &str, after: Option<&Name>) -> Result<Locks, Error> {
        self.handle.call(|machine, now| machine.list(now, prefix, after)).await.locks()
    }

    /// The node, as it is now.
    pub async fn status(&self) -> Result<NodeStatus, Error> {
        self.handle.call(SessionMachine::status).await.status()
    }

    /// Take the lock from whoever holds it with this fence.
    pub async fn break_lock(&self, lock: &str, fence: Fence) -> Result<(), Error> {
        let name = Name::new(lock)?;
        let handle = &self.handle;
        handle.call(|machine, now| machine.break_lock(now, &name, fence)).await.done()
    }

    /// Wait until nobody is inside or waits any more, without entering.
    pub async fn await_free(&self, lock: &str) -> Result<(), Error> {
        let name = Name::new(lock)?;
        self.handle.call(|machine, now| machine.await_free(now, &name)).await.done()
    }
}

impl Acquire<'_, Client> {
    /// Enter when it is our turn. Dropping the future withdraws the request.
    pub async fn enter(self) -> Result<Grant, Error> {
        let ask = self.ask?;
        let lock = ask.lock.clone();
        let handle = Arc::clone(&self.client.handle);
        let mut call = handle.call(|machine, now| machine.acquire(now, ask));
        call.acquires = Some(lock.clone());
        let fence = call.await.granted()?;
        // It may have been granted long ago, if nobody ran since.
        handle.shared.lock().session.check(&lock, fence)?;
        Ok(Grant::new(handle, lock, fence))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.is_here() {
            return;
        }
        let mut inner = self.shared.lock();
        inner.closing = true;
        inner.session.leave(self.life);
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.handle.shared.lock();
        let (endpoint, node) = (&self.handle.shared.endpoint, &inner.session.welcome);
        f.debug_struct("Client").field("endpoint", endpoint).field("node", node).finish()
    }
}
