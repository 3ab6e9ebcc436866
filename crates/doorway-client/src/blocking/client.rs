//! The blocking client.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use doorway_protocol::{Code, Fence, Life, LockReport, Locks, Moment, Name, NodeStatus, Refusal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::RecvFlags;

use super::background::Background;
use super::grant::Grant;
use super::shared::{Inner, Shared, bell, wake};
use crate::acquire::Acquire;
use crate::endpoint::Endpoint;
use crate::error::{Error, Lost};
use crate::machine::{SessionMachine, State};
use crate::options::Options;
use crate::session::{LossNotifier, Node, Outcome, Session, forked};

/// A session at a node. A copy is the same session, which ends with its last copy and grant: the
/// node is told so if that can be sent at once, or finds the connection closed; where a network
/// swallows both, the session ends with its TTL.
///
/// A process that was forked from this one must connect by itself: here all that it asks for is
/// refused, and what it drops stays with its parent.
#[derive(Clone)]
pub struct Client {
    pub(super) handle: Arc<Handle>,
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

    /// Ask for something and wait for the answer.
    pub(super) fn call(&self, make: impl FnOnce(&mut SessionMachine, Moment) -> u64) -> Outcome {
        if self.is_here() { self.shared.call(make) } else { Outcome::Refused(forked()) }
    }
}

impl Client {
    /// Open a session.
    pub fn connect(endpoint: &Endpoint, options: &Options) -> Result<Self, Error> {
        let unreachable = |why| Error::Unreachable { endpoint: endpoint.clone(), why };
        let kick = Arc::new(bell().map_err(unreachable)?);
        let nudge = bell().map_err(unreachable)?;
        let kicks = Arc::clone(&kick);
        let session = Session::new(endpoint, options, Box::new(move || wake(&kicks)))?;
        let state = Mutex::new(Inner {
            session,
            reading: false,
            calls: 0,
            away: false,
            plan: Moment(0),
            closing: false,
        });
        let (endpoint, attempt) = (endpoint.clone(), options.attempt());
        let shared = Arc::new(Shared { endpoint, attempt, state, kick, nudge });
        greet(&shared, options.patience)?;
        let background = Background::new(Arc::clone(&shared)).map_err(unreachable)?;
        let thread = thread::Builder::new().name("doorway".to_owned());
        thread.spawn(|| background.run()).map_err(unreachable)?;
        Ok(Self {
            handle: Arc::new(Handle { shared, life: options.life, process: std::process::id() }),
        })
    }

    /// Ask for a lock: `client.acquire("deploy").enter()?`.
    pub fn acquire(&self, lock: &str) -> Acquire<'_, Self> {
        Acquire::new(self, lock)
    }

    /// Acquire several locks, all or none. They are taken in the order of their names, so that
    /// nobody who does the same can wait in a circle.
    pub fn lock_all<'a>(
        &self,
        locks: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<Grant>, Error> {
        let names: Result<BTreeSet<Name>, _> = locks.into_iter().map(Name::new).collect();
        names?.iter().map(|name| self.acquire(name.as_str()).enter()).collect()
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
    pub fn release(&self, lock: &str, fence: Fence) -> Result<bool, Error> {
        let name = Name::new(lock)?;
        self.handle.call(|machine, now| machine.release(now, &name, fence)).released()
    }

    /// Give a sign of life for the session without a connection that holds this grant.
    pub fn renew(&self, lock: &str, fence: Fence) -> Result<(), Error> {
        let name = Name::new(lock)?;
        self.handle.call(|machine, now| machine.renew(now, &name, fence)).done()
    }

    /// All about a lock.
    pub fn inspect(&self, lock: &str) -> Result<LockReport, Error> {
        let name = Name::new(lock)?;
        self.handle.call(|machine, now| machine.inspect(now, &name)).lock()
    }

    /// The locks whose names begin like this, after that one.
    pub fn list(&self, prefix: &str, after: Option<&Name>) -> Result<Locks, Error> {
        self.handle.call(|machine, now| machine.list(now, prefix, after)).locks()
    }

    /// The node, as it is now.
    pub fn status(&self) -> Result<NodeStatus, Error> {
        self.handle.call(SessionMachine::status).status()
    }

    /// Take the lock from whoever holds it with this fence.
    pub fn break_lock(&self, lock: &str, fence: Fence) -> Result<(), Error> {
        let name = Name::new(lock)?;
        self.handle.call(|machine, now| machine.break_lock(now, &name, fence)).done()
    }

    /// Wait until nobody is inside or waits any more, without entering.
    pub fn await_free(&self, lock: &str) -> Result<(), Error> {
        let name = Name::new(lock)?;
        self.handle.call(|machine, now| machine.await_free(now, &name)).done()
    }
}

/// Make the first connection, and wait for the welcome.
fn greet(shared: &Arc<Shared>, patience: Duration) -> Result<(), Error> {
    let unreachable = |why| Error::Unreachable { endpoint: shared.endpoint.clone(), why };
    let until = Moment::now().after(patience);
    let stream = Arc::new(shared.endpoint.connect_within(patience).map_err(unreachable)?);
    let mut inner = shared.lock();
    inner.session.connect(Arc::clone(&stream));
    loop {
        inner.session.flush();
        inner.session.settle();
        if let Some(refusal) = inner.session.closed.take() {
            return Err(Error::Refused(refusal));
        }
        if inner.session.line.is_talking() {
            return Ok(());
        }
        let left = until.since(Moment::now());
        if inner.session.stream.is_none() || left.is_zero() {
            let text = "whoever listens there does not answer".to_owned();
            return Err(Error::Refused(Refusal { code: Code::Unavailable, text }));
        }
        let timeout = Timespec::try_from(left)
            .map_err(|_| unreachable(io::Error::other("the patience is longer than time")))?;
        let interest = PollFlags::IN;
        let mut fds = [PollFd::new(&*stream, interest)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(why) => return Err(unreachable(why.into())),
        }
        let mut buffer = [0; 4096];
        let read = stream.receive(&mut buffer, RecvFlags::DONTWAIT);
        inner.session.received(&stream, read.map(|count| &buffer[..count]));
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

impl Acquire<'_, Client> {
    /// Enter when it is our turn.
    pub fn enter(self) -> Result<Grant, Error> {
        let ask = self.ask?;
        let lock = ask.lock.clone();
        let handle = Arc::clone(&self.client.handle);
        let fence = handle.call(|machine, now| machine.acquire(now, ask)).granted()?;
        // It may have been granted long ago, if nobody ran since.
        handle.shared.lock().session.check(&lock, fence)?;
        Ok(Grant::new(handle, lock, fence))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

    use doorway_protocol::{Greeting, Reply, Scope, Secret, SessionId, Welcome, put};

    use super::*;

    /// A client that was granted its first request, and the connection at its node.
    fn client() -> (Client, UnixStream) {
        let name = format!("doorway-blocking-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("sockets work");
        let listener = UnixListener::bind_addr(&address).expect("sockets work");
        let node = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("sockets work");
            let welcome = Welcome {
                version: 1,
                node: "one".to_owned(),
                scope: Scope::User,
                session: Some((SessionId(1), Secret([1; 16]))),
                ttl_ms: 60_000,
                lost: vec![],
            };
            let mut bytes = vec![];
            put(&Greeting::Ok(welcome), &mut bytes);
            let mut heard = [0; 4096];
            assert_ne!(stream.read(&mut heard).expect("a greeting"), 0);
            stream.write_all(&bytes).expect("sockets work");
            assert_ne!(stream.read(&mut heard).expect("a request"), 0);
            bytes.clear();
            put(&Reply::Granted(1, Fence::new(1, 1)), &mut bytes);
            stream.write_all(&bytes).expect("sockets work");
            stream
        });
        let client = Client::connect(&Endpoint::Abstract(name), &Options::default());
        let client = client.expect("it listens");
        client.acquire("a").enter().expect("it is granted").keep();
        (client, node.join().expect("it does not panic"))
    }

    #[test]
    fn a_child_that_was_forked_says_and_ends_nothing() {
        let (mut client, mut node) = client();
        let handle = Arc::get_mut(&mut client.handle).expect("there are no copies");
        let shared = Arc::clone(&handle.shared);
        handle.process += 1;
        let refused = client.acquire("a").enter().unwrap_err();
        assert!(refused.to_string().contains("forked"), "{refused}");
        let grant =
            Grant::new(Arc::clone(&client.handle), Name::new("a").unwrap(), Fence::new(1, 1));
        drop((grant, client));
        assert!(!shared.lock().closing && shared.lock().session.stream.is_some());
        node.set_nonblocking(true).unwrap();
        let heard = node.read(&mut [0; 4096]).unwrap_err();
        assert_eq!(heard.kind(), io::ErrorKind::WouldBlock, "the node hears nothing");
        shared.lock().closing = true;
        shared.lock().session.kick();
    }
}
