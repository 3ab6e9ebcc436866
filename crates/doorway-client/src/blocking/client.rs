//! The blocking client.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use doorway_protocol::{Fence, LockReport, Locks, Moment, Name, NodeStatus};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::RecvFlags;

use super::Grant;
use super::background::Background;
use super::threads::{Threads, event, wake};
use crate::acquire::Acquire;
use crate::endpoints::Endpoints;
use crate::error::{Error, Failures, LostGrant, ReleaseError};
use crate::grant::HeldLock;
use crate::machine::{SessionMachine, State};
use crate::options::Options;
use crate::session::{Handle, LossNotifier, Node, Outcome, Session, SharedSession};

/// A session at a node, for threads that wait.
///
/// Any number of threads may use one client. A clone is the same session. The session ends when the
/// last clone and the last grant are dropped: the client says goodbye to the node, or the node
/// finds the connection closed. If a network swallows both, the session ends after its TTL.
///
/// A process that was forked from this one must open a session of its own. In the child, every
/// request on this client is refused, and dropping the client or its grants changes nothing for the
/// parent.
#[derive(Clone)]
pub struct Client {
    handle: Arc<Handle>,
    threads: Arc<Threads>,
}

impl Client {
    /// Open a session at the first of these endpoints where a node serves this client.
    pub fn connect(endpoints: impl Into<Endpoints>, options: &Options) -> Result<Self, Error> {
        let endpoints = endpoints.into();
        let unreachable = |why| Error::Unreachable { endpoint: endpoints.first().clone(), why };
        let kick = Arc::new(event().map_err(unreachable)?);
        let kicks = Arc::clone(&kick);
        let session = Session::new(&endpoints, options, Box::new(move || wake(&kicks)))?;
        let shared = Arc::new(SharedSession::new(options, session));
        let each = options.patience / u32::try_from(endpoints.count()).unwrap_or(u32::MAX);
        let mut failures = Failures::default();
        while let Err(error) = greet(&shared, each) {
            failures.add(error, &endpoints)?;
        }
        let threads = Threads::new(Arc::clone(&shared), kick).map_err(unreachable)?;
        let threads = Arc::new(threads);
        let background = Background::new(Arc::clone(&threads)).map_err(unreachable)?;
        let thread = thread::Builder::new().name("doorway".to_owned());
        thread.spawn(|| background.run()).map_err(unreachable)?;
        Ok(Self { handle: Arc::new(Handle::new(shared, options)), threads })
    }

    /// Make a request, and wait for the answer.
    fn call(&self, make: impl FnOnce(&mut SessionMachine, Moment) -> u64) -> Outcome {
        match self.handle.check_process() {
            Ok(()) => self.threads.call(make),
            Err(refusal) => Outcome::Refused(refusal),
        }
    }

    /// Ask for a lock: `client.acquire("deploy").enter()?`.
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
    pub fn lock_all<'a>(
        &self,
        locks: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<Grant>, Error> {
        let names: Result<BTreeSet<Name>, _> = locks.into_iter().map(Name::new).collect();
        names?.iter().map(|name| self.acquire(name.as_str()).enter()).collect()
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
    pub fn release(&self, lock: &str, fence: Fence) -> Result<bool, Error> {
        let name = Name::new(lock)?;
        self.call(|machine, now| machine.release(now, &name, fence)).released()
    }

    /// Renew the lease of a session without a connection; the fence says which of its grants.
    ///
    /// A client opens such a session with [`Life::Lease`](crate::Life::Lease), and only the same
    /// client can renew it. All other sessions are renewed by the client itself.
    pub fn renew(&self, lock: &str, fence: Fence) -> Result<(), Error> {
        let name = Name::new(lock)?;
        self.call(|machine, now| machine.renew(now, &name, fence)).done()
    }

    /// Tell the node to leave for good: it grants nothing any more, and ends when no lock is held.
    /// An error says that locks are still held after this time, or after the `drain` of the node's
    /// settings.
    pub fn drain(&self, within: Option<Duration>) -> Result<(), Error> {
        self.call(|machine, now| machine.drain(now, within)).done()
    }

    /// Report who holds a lock and who waits for it.
    pub fn inspect(&self, lock: &str) -> Result<LockReport, Error> {
        let name = Name::new(lock)?;
        self.call(|machine, now| machine.inspect(now, &name)).lock()
    }

    /// List the locks in use whose names begin with `prefix`, one page at a time.
    ///
    /// If [`Locks::more`] is true, the next page begins after the last lock of this one: pass its
    /// name as `after`.
    pub fn list(&self, prefix: &str, after: Option<&Name>) -> Result<Locks, Error> {
        self.call(|machine, now| machine.list(now, prefix, after)).locks()
    }

    /// Report the state of the node.
    pub fn status(&self) -> Result<NodeStatus, Error> {
        self.call(SessionMachine::status).status()
    }

    /// Take a lock away from the client that holds it with this fence.
    ///
    /// The node tells the holder that the lock is lost. A holder that is paused or disconnected
    /// finds out only later, so the resource must check fences: see [`gate`](crate::gate).
    pub fn break_lock(&self, lock: &str, fence: Fence) -> Result<(), Error> {
        let name = Name::new(lock)?;
        self.call(|machine, now| machine.break_lock(now, &name, fence)).done()
    }

    /// Wait until no client holds the lock or waits for it, without acquiring it.
    pub fn await_free(&self, lock: &str) -> Result<(), Error> {
        let name = Name::new(lock)?;
        self.call(|machine, now| machine.await_free(now, &name)).done()
    }
}

/// Connect to the next endpoint, and wait for the welcome of the node.
fn greet(shared: &SharedSession, patience: Duration) -> Result<(), Error> {
    let mut session = shared.lock();
    let endpoint = session.route.endpoint().clone();
    let unreachable = |why| Error::Unreachable { endpoint: endpoint.clone(), why };
    let until = Moment::now().after(patience);
    let stream = endpoint.connect_within(patience).map_err(|why| {
        session.cannot_connect(&why);
        unreachable(why)
    })?;
    let stream = Arc::new(stream);
    session.connect(Arc::clone(&stream));
    loop {
        session.flush();
        session.settle();
        let left = until.since(Moment::now());
        if session.is_greeted() || left.is_zero() {
            let welcomed = session.welcomed();
            if welcomed.is_err() {
                session.disconnect();
            }
            return welcomed;
        }
        let timeout = Timespec::try_from(left).map_err(|_| {
            unreachable(io::Error::other("Options::patience is too long for a timer"))
        })?;
        match poll(&mut [PollFd::new(&*stream, PollFlags::IN)], Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(why) => return Err(unreachable(why.into())),
        }
        let mut buffer = [0; 4096];
        let read = stream.receive(&mut buffer, RecvFlags::DONTWAIT);
        session.received(&stream, read.map(|count| &buffer[..count]));
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.show_client(f)
    }
}

impl Acquire<'_, Client> {
    /// Wait for the lock, and hold it.
    pub fn enter(self) -> Result<Grant, Error> {
        let ask = self.ask?;
        let (client, lock) = (self.client.clone(), ask.lock.clone());
        if let Some(fence) = client.handle.reenter(&ask) {
            let held = HeldLock::new(&client.handle, lock, fence);
            return Ok(Grant { client, held });
        }
        let fence = client.call(|machine, now| machine.acquire(now, ask)).granted()?;
        // If this thread was not scheduled for long, the grant may be lost already.
        client.handle.lock().check(&lock, fence)?;
        let held = HeldLock::new(&client.handle, lock, fence);
        Ok(Grant { client, held })
    }
}

impl Grant {
    /// Release the lock, and wait until the node confirms that it was held until now.
    ///
    /// [`ReleaseError::Lost`] means that the lock was lost before, and that other clients may have
    /// held it meanwhile.
    ///
    /// A lock that the client keeps ([`Options::keep`]) is released without the node. If the node
    /// has just taken the lock away, and the client has not been told, this is not an error.
    pub fn release(mut self) -> Result<(), ReleaseError> {
        if self.held.leave_kept() {
            return Ok(());
        }
        self.held.begin_release()?;
        let (lock, fence) = (&self.held.lock, self.held.fence);
        let outcome = self.client.threads.call(|machine, now| machine.release(now, lock, fence));
        self.held.end_release(outcome)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

    use doorway_protocol::{Greeting, Reply, Scope, Secret, SessionId, Welcome, put};

    use super::*;
    use crate::endpoint::Endpoint;

    /// A client that holds the lock `a`, and the node's end of its connection. If it keeps locks,
    /// it may keep this one.
    fn client(keeps: bool) -> (Client, UnixStream) {
        let name = format!("doorway-blocking-{keeps}-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("the system provides sockets");
        let listener = UnixListener::bind_addr(&address).expect("the system provides sockets");
        let node = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("the system provides sockets");
            let welcome = Welcome {
                version: if keeps { 5 } else { 1 },
                node: "one".to_owned(),
                scope: Scope::User,
                session: Some((SessionId(1), Secret([1; 16]))),
                ttl_ms: 60_000,
                lost: vec![],
                directory: None,
            };
            let mut bytes = vec![];
            put(&Greeting::Ok(welcome), &mut bytes);
            let mut buffer = [0; 4096];
            assert_ne!(stream.read(&mut buffer).expect("a greeting"), 0);
            stream.write_all(&bytes).expect("the system provides sockets");
            assert_ne!(stream.read(&mut buffer).expect("a request"), 0);
            bytes.clear();
            let fence = Fence::new(1, 1);
            let kept = Reply::Kept { number: 1, fence, more: 9 };
            let granted = Reply::Granted(1, fence);
            put(if keeps { &kept } else { &granted }, &mut bytes);
            stream.write_all(&bytes).expect("the system provides sockets");
            stream
        });
        let options = if keeps { Options::default().keep() } else { Options::default() };
        let client = Client::connect(Endpoint::Abstract(name), &options);
        let client = client.expect("the node listens");
        client.acquire("a").enter().expect("the lock is granted").keep();
        (client, node.join().expect("the node does not panic"))
    }

    #[test]
    fn a_forked_child_sends_nothing_and_ends_nothing() {
        let (mut client, mut node) = client(false);
        let handle = Arc::get_mut(&mut client.handle).expect("the client has no copies");
        let shared = Arc::clone(&handle.shared);
        handle.pretend_forked();
        let refused = client.acquire("a").enter().unwrap_err();
        assert!(refused.to_string().contains("forked"), "{refused}");
        let grant = || {
            let held = HeldLock::new(&client.handle, Name::new("a").unwrap(), Fence::new(1, 1));
            Grant { client: client.clone(), held }
        };
        let refused = grant().release().unwrap_err();
        assert!(refused.to_string().contains("forked"), "{refused}");
        drop(grant());
        drop(client);
        assert!(!shared.lock().closing && shared.lock().stream.is_some());
        node.set_nonblocking(true).unwrap();
        let error = node.read(&mut [0; 4096]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "the node receives nothing");
        shared.lock().closing = true;
        shared.lock().kick();
    }

    #[test]
    fn a_forked_child_never_enters_a_kept_lock_again() {
        let (mut client, _node) = client(true);
        let lock = Name::new("a").unwrap();
        assert!(client.handle.leave_kept(&lock, Fence::new(1, 1)));
        let again = client.acquire("a").enter().unwrap();
        assert_eq!(again.fence(), Fence::new(1, 2), "the parent does");
        drop(again);
        let handle = Arc::get_mut(&mut client.handle).expect("the client has no copies");
        let shared = Arc::clone(&handle.shared);
        handle.pretend_forked();
        let refused = client.acquire("a").enter().unwrap_err();
        assert!(refused.to_string().contains("forked"), "{refused}");
        assert!(!client.handle.leave_kept(&lock, Fence::new(1, 2)));
        shared.lock().closing = true;
        shared.lock().kick();
    }
}
