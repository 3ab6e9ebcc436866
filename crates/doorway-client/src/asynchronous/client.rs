//! The async client.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::{Fence, LockReport, Locks, Moment, Name, NodeStatus};
use tokio::sync::Notify;

use super::call::Call;
use super::driver::Driver;
use crate::acquire::Acquire;
use crate::endpoints::Endpoints;
use crate::error::{Error, Failures, LostGrant, ReleaseError};
use crate::grant::{Grant, HeldLock};
use crate::machine::{SessionMachine, State};
use crate::options::Options;
use crate::session::{Handle, LossNotifier, Node, Session, SharedSession};

/// A session at a node, for tasks of a tokio runtime.
///
/// Any number of tasks may use one client. A clone is the same session. The session ends when the
/// last clone and the last grant are dropped: the client says goodbye to the node, or the node
/// finds the connection closed. If a network swallows both, the session ends after its TTL.
///
/// Dropping the future of a request withdraws the request.
///
/// A process that was forked from this one must open a session of its own. In the child, every
/// request on this client is refused, and dropping the client or its grants changes nothing for the
/// parent.
#[derive(Clone)]
pub struct Client {
    handle: Arc<Handle>,
}

impl Client {
    /// Open a session at the first of these endpoints where a node serves this client.
    ///
    /// A task of the current runtime drives the session. If that runtime ends, everything that the
    /// session holds is lost, and all requests are refused.
    pub async fn connect(
        endpoints: impl Into<Endpoints>,
        options: &Options,
    ) -> Result<Self, Error> {
        let endpoints = endpoints.into();
        let unreachable = |why| Error::Unreachable { endpoint: endpoints.first().clone(), why };
        let kicked = Arc::new(Notify::new());
        let kick = Arc::clone(&kicked);
        let session = Session::new(&endpoints, options, Box::new(move || kick.notify_one()))?;
        let shared = Arc::new(SharedSession::new(options, session));
        let mut driver = Driver::new(Arc::clone(&shared), kicked).map_err(unreachable)?;
        let each = options.patience / u32::try_from(endpoints.count()).unwrap_or(u32::MAX);
        let mut failures = Failures::default();
        while let Err(error) = driver.greet(each).await {
            failures.add(error, &endpoints)?;
        }
        tokio::spawn(driver.run());
        Ok(Self { handle: Arc::new(Handle::new(shared, options)) })
    }

    /// Make a request, whose answer is the output of the future.
    fn call(&self, make: impl FnOnce(&mut SessionMachine, Moment) -> u64) -> Call<'_> {
        match self.handle.check_process() {
            Ok(()) => Call::new(&self.handle.shared, make),
            Err(refusal) => Call::refused(&self.handle.shared, refusal),
        }
    }

    /// Ask for a lock: `client.acquire("deploy").enter().await?`.
    ///
    /// The request waits for as long as it takes, unless [`Acquire::within`] or
    /// [`Acquire::try_now`] says otherwise.
    pub fn acquire(&self, lock: &str) -> Acquire<'_, Self> {
        Acquire::new(self, lock)
    }

    /// Acquire several locks, all or none.
    ///
    /// The locks are taken in the order of their names, so that clients that acquire their locks
    /// this way cannot deadlock.
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

    /// Call `notify` whenever a grant of this client is lost.
    ///
    /// If the node is silent for too long, the client calls `notify` by its own clock before the
    /// node gives the lock to anyone else. If the node takes the lock away, because someone broke
    /// it or because the node gave up the session, the client calls `notify` as soon as the node
    /// says so, and another client may hold the lock by then.
    ///
    /// `notify` runs on a thread of its own, for one loss after the other, and may block. It must
    /// not own a copy of the client, which would keep the session open forever. A second call of
    /// `on_lost` replaces the function of the first.
    ///
    /// # Panics
    ///
    /// If the system cannot start another thread.
    pub fn on_lost(&self, notify: impl Fn(&LostGrant) + Send + Sync + 'static) {
        let notifier = LossNotifier::new(notify);
        self.handle.lock().on_lost = Some(notifier);
    }

    /// Whether the session, and with it everything that it holds, is still alive.
    pub fn state(&self) -> State {
        self.handle.lock().line.state(Moment::now())
    }

    /// The node that welcomed this client.
    pub fn node(&self) -> Option<Node> {
        self.handle.lock().node.clone()
    }

    /// How long it is until the node stops, if it has announced that.
    ///
    /// A node that is stopping grants nothing any more, and grants that are still held when it
    /// stops are lost. The result is `None` again as soon as the client is connected to the next
    /// node.
    pub fn stopping(&self) -> Option<Duration> {
        self.handle.lock().stopping()
    }

    /// Release a grant by its fence; true if the lock was held until now.
    ///
    /// The grant may belong to this session, or to a session without a connection that the same
    /// client opened (see [`Life`](crate::Life)). Releasing a grant twice does no harm, and never
    /// frees a newer grant of the lock.
    pub async fn release(&self, lock: &str, fence: Fence) -> Result<bool, Error> {
        let name = Name::new(lock)?;
        self.call(|machine, now| machine.release(now, &name, fence)).await.released()
    }

    /// Renew the lease of a session without a connection; the fence says which of its grants.
    ///
    /// A client opens such a session with [`Life::Lease`](crate::Life::Lease), and only the same
    /// client can renew it. All other sessions are renewed by the client itself.
    pub async fn renew(&self, lock: &str, fence: Fence) -> Result<(), Error> {
        let name = Name::new(lock)?;
        self.call(|machine, now| machine.renew(now, &name, fence)).await.done()
    }

    /// Report who holds a lock and who waits for it.
    pub async fn inspect(&self, lock: &str) -> Result<LockReport, Error> {
        let name = Name::new(lock)?;
        self.call(|machine, now| machine.inspect(now, &name)).await.lock()
    }

    /// List the locks in use whose names begin with `prefix`, one page at a time.
    ///
    /// If [`Locks::more`] is true, the next page begins after the last lock of this one: pass its
    /// name as `after`.
    pub async fn list(&self, prefix: &str, after: Option<&Name>) -> Result<Locks, Error> {
        self.call(|machine, now| machine.list(now, prefix, after)).await.locks()
    }

    /// Report the state of the node.
    pub async fn status(&self) -> Result<NodeStatus, Error> {
        self.call(SessionMachine::status).await.status()
    }

    /// Take a lock away from the client that holds it with this fence.
    ///
    /// The node tells the holder that the lock is lost. A holder that is paused or disconnected
    /// finds out only later, so the resource must check fences: see [`gate`](crate::gate).
    pub async fn break_lock(&self, lock: &str, fence: Fence) -> Result<(), Error> {
        let name = Name::new(lock)?;
        self.call(|machine, now| machine.break_lock(now, &name, fence)).await.done()
    }

    /// Wait until no client holds the lock or waits for it, without acquiring it.
    pub async fn await_free(&self, lock: &str) -> Result<(), Error> {
        let name = Name::new(lock)?;
        self.call(|machine, now| machine.await_free(now, &name)).await.done()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.show_client(f)
    }
}

impl Acquire<'_, Client> {
    /// Wait for the lock, and hold it. Dropping the future withdraws the request.
    pub async fn enter(self) -> Result<Grant, Error> {
        let ask = self.ask?;
        let (client, lock) = (self.client.clone(), ask.lock.clone());
        if client.handle.keeps() {
            // A loop that enters a kept lock again and again never waits. It must let the driver
            // run, which hears that somebody else wants the lock.
            tokio::task::consume_budget().await;
        }
        if let Some(fence) = client.handle.reenter(&ask) {
            let held = HeldLock::new(&client.handle, lock, fence);
            return Ok(Grant { client, held });
        }
        let mut call = client.call(|machine, now| machine.acquire(now, ask));
        call.acquires = Some(lock.clone());
        let fence = call.await.granted()?;
        // If this task was not polled for long, the grant may be lost already.
        client.handle.lock().check(&lock, fence)?;
        let held = HeldLock::new(&client.handle, lock, fence);
        Ok(Grant { client, held })
    }
}

impl Grant<Client> {
    /// Release the lock, and wait until the node confirms that it was held until now.
    ///
    /// [`ReleaseError::Lost`] means that the lock was lost before, and that other clients may have
    /// held it meanwhile.
    ///
    /// A lock that the client keeps ([`Options::keep`]) is released without the node. If the node
    /// has just taken the lock away, and the client has not been told, this is not an error.
    pub async fn release(mut self) -> Result<(), ReleaseError> {
        if self.held.leave_kept() {
            return Ok(());
        }
        self.held.begin_release()?;
        let (lock, fence) = (&self.held.lock, self.held.fence);
        let shared = &self.client.handle.shared;
        let outcome = Call::new(shared, |machine, now| machine.release(now, lock, fence)).await;
        self.held.end_release(outcome)
    }
}
