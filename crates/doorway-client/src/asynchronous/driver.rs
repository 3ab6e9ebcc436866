//! The task that reads, sends heartbeats, notices losses and reconnects.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::{Moment, Timer};
use rustix::net::RecvFlags;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::endpoint::Stream;
use crate::error::Error;
use crate::session::SharedSession;

/// A connection that the reactor watches.
type WatchedStream = AsyncFd<Arc<Stream>>;

/// The background task of a client.
pub(super) struct Driver {
    shared: Arc<SharedSession>,
    kicked: Arc<Notify>,
    stream: Option<WatchedStream>,
    /// The connection once more, watched for writing, and only while something could not be sent. A
    /// Unix socket becomes writable whenever the node reads, so watching it always would double the
    /// number of wake-ups.
    blocked: Option<AsyncFd<OwnedFd>>,
    timer: AsyncFd<Timer>,
    /// When the timer runs out.
    set: Moment,
    /// The attempt to connect that is under way.
    attempt: Option<JoinHandle<io::Result<Stream>>>,
}

/// What woke the driver.
enum Wakeup {
    Stream,
    Timer,
    Kick,
    Dialled(io::Result<Stream>),
}

impl Drop for Driver {
    /// Without a driver nothing is read and no heartbeat is sent, so the session is lost and all
    /// requests are refused.
    fn drop(&mut self) {
        let mut session = self.shared.lock();
        if session.closing {
            return; // No caller is left, and grants that were left to the session are not lost.
        }
        session.line.end("the runtime of this client has ended");
        session.settle();
    }
}

/// Wait for the end of an attempt to connect, or forever if there is none.
async fn dialled(attempt: &mut Option<JoinHandle<io::Result<Stream>>>) -> io::Result<Stream> {
    match attempt {
        Some(attempt) => attempt.await.map_err(io::Error::other)?,
        None => std::future::pending().await,
    }
}

/// Let the reactor watch a descriptor.
#[allow(deprecated, reason = "its successor is unsafe, and these descriptors never change")]
fn watch<T: AsRawFd>(what: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    AsyncFd::with_interest(what, interest)
}

impl Driver {
    pub(super) fn new(shared: Arc<SharedSession>, kicked: Arc<Notify>) -> io::Result<Self> {
        let timer = watch(Timer::new()?, Interest::READABLE)?;
        let (set, stream, blocked, attempt) = (Moment::NEVER, None, None, None);
        Ok(Self { shared, kicked, stream, blocked, timer, set, attempt })
    }

    /// Serve the client until its last copy is dropped.
    pub(super) async fn run(mut self) {
        while let Some((due, blocked)) = self.look() {
            self.set_timer(due);
            self.watch_writing(blocked);
            let mut attempt = self.attempt.take();
            let woken = tokio::select! {
                () = self.transfer() => Wakeup::Stream,
                () = self.time() => Wakeup::Timer,
                () = self.kicked.notified() => Wakeup::Kick,
                stream = dialled(&mut attempt) => Wakeup::Dialled(stream),
            };
            match woken {
                Wakeup::Timer => self.set = Moment::NEVER,
                Wakeup::Dialled(stream) => {
                    attempt = None;
                    // If this failed, the next turn of the loop tries again.
                    let _ = self.dialled(stream);
                }
                Wakeup::Stream | Wakeup::Kick => {}
            }
            self.attempt = attempt;
        }
    }

    /// Connect to the next endpoint, and wait for the welcome of the node.
    pub(super) async fn greet(&mut self, patience: Duration) -> Result<(), Error> {
        let endpoint = self.shared.lock().route.endpoint().clone();
        let until = tokio::time::Instant::now() + patience;
        let mut attempt = Some(self.dial(patience));
        let stream = dialled(&mut attempt).await;
        self.dialled(stream).map_err(|why| Error::Unreachable { endpoint, why })?;
        // Without a welcome at the end of this time, the node does not answer.
        let _ = tokio::time::timeout_at(until, self.await_greeting()).await;
        let mut session = self.shared.lock();
        session.welcomed().inspect_err(|_| session.disconnect())
    }

    /// Wait until the node has answered the greeting or closed the connection.
    async fn await_greeting(&mut self) {
        loop {
            let blocked = {
                let mut session = self.shared.lock();
                session.flush();
                session.settle();
                if session.is_greeted() {
                    return;
                }
                session.is_blocked()
            };
            self.watch_writing(blocked);
            self.transfer().await;
        }
    }

    /// Do everything that is due. Returns until when to wait and whether something could not be
    /// sent, or nothing if the client is gone.
    fn look(&mut self) -> Option<(Moment, bool)> {
        let now = Moment::now();
        let connect = {
            let mut session = self.shared.lock();
            if session.closing {
                return None;
            }
            session.line.tick(now);
            session.flush();
            session.settle();
            let wanted = session.line.wants_connection() && self.attempt.is_none();
            wanted && now >= session.route.due()
        };
        if connect {
            self.attempt = Some(self.dial(self.shared.attempt));
        }
        let mut session = self.shared.lock();
        if session.stream.is_none() {
            (self.stream, self.blocked) = (None, None);
        }
        let mut due = session.line.next_due();
        if session.line.wants_connection() && self.attempt.is_none() {
            due = due.min(session.route.due());
        }
        session.plan = due;
        Some((due, session.is_blocked()))
    }

    /// Begin to connect. That may block, so a thread for blocking work does it.
    fn dial(&self, limit: Duration) -> JoinHandle<io::Result<Stream>> {
        let endpoint = self.shared.lock().route.endpoint().clone();
        tokio::task::spawn_blocking(move || endpoint.connect_within(limit))
    }

    /// Use the connection that an attempt has made, or go on with the next endpoint.
    fn dialled(&mut self, stream: io::Result<Stream>) -> io::Result<()> {
        let watched = stream.and_then(|stream| watch(Arc::new(stream), Interest::READABLE));
        match watched {
            Ok(watched) => {
                self.shared.lock().connect(Arc::clone(watched.get_ref()));
                (self.stream, self.blocked) = (Some(watched), None);
                Ok(())
            }
            Err(why) => {
                self.shared.lock().cannot_connect(&why);
                Err(why)
            }
        }
    }

    /// Watch the connection for writing if something could not be sent, and only then. If that
    /// fails, the next heartbeat tries again.
    fn watch_writing(&mut self, blocked: bool) {
        if !blocked {
            self.blocked = None;
        } else if let (None, Some(stream)) = (&self.blocked, &self.stream) {
            let same = stream.get_ref().as_fd().try_clone_to_owned();
            self.blocked = same.and_then(|same| watch(same, Interest::WRITABLE)).ok();
        }
    }

    /// Wait until bytes can be received, or until more can be sent, and do that.
    async fn transfer(&self) {
        tokio::select! {
            () = self.incoming() => {}
            () = self.outgoing() => {}
        }
    }

    async fn incoming(&self) {
        let Some(stream) = &self.stream else { return std::future::pending().await };
        let Ok(mut ready) = stream.readable().await else {
            return std::future::pending().await; // The runtime is ending.
        };
        let mut buffer = [0; 4096];
        let read = stream.get_ref().receive(&mut buffer, RecvFlags::DONTWAIT);
        if !matches!(read, Ok(count) if count == buffer.len() || count == 0) {
            // Everything was read: the next bytes make the connection ready again.
            ready.clear_ready();
        }
        self.shared.lock().received(stream.get_ref(), read.map(|count| &buffer[..count]));
    }

    async fn outgoing(&self) {
        let Some(blocked) = &self.blocked else { return std::future::pending().await };
        let Ok(mut ready) = blocked.writable().await else {
            return std::future::pending().await; // The runtime is ending.
        };
        let mut session = self.shared.lock();
        session.flush();
        if session.is_blocked() {
            ready.clear_ready();
        }
    }

    /// Wait until the timer runs out.
    async fn time(&self) {
        match self.timer.readable().await {
            Ok(mut ready) => {
                self.timer.get_ref().clear();
                ready.clear_ready();
            }
            Err(_) => std::future::pending().await,
        }
    }

    /// Let the timer run out at this moment. A timer that is set to an earlier moment stays as it
    /// is: waking too early does no harm.
    fn set_timer(&mut self, due: Moment) {
        if due >= self.set {
            return;
        }
        self.set = due;
        self.timer.get_ref().set(due);
    }
}
