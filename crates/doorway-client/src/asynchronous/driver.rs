//! The task that reads, gives signs of life, notices losses and connects again.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::{Backoff, Moment, Timer};
use rustix::net::RecvFlags;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::endpoint::{Stream, reconnect};
use crate::session::Shared;

/// A connection and its place in the reactor.
type WatchedStream = AsyncFd<Arc<Stream>>;

/// The task in the background.
pub(super) struct Driver {
    shared: Arc<Shared>,
    kicked: Arc<Notify>,
    stream: Option<WatchedStream>,
    /// The same connection, watched for writing while something could not be sent. A Unix socket
    /// becomes writable whenever the node reads: to be woken for that would double the wake-ups.
    blocked: Option<AsyncFd<OwnedFd>>,
    timer: AsyncFd<Timer>,
    /// When the timer runs out.
    set: Moment,
    /// When to try again to connect.
    retry: Moment,
    backoff: Backoff,
    /// A connection that is being made.
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
    /// Without a driver nobody reads and nobody gives signs of life: whoever still asks is told.
    fn drop(&mut self) {
        let mut session = self.shared.lock();
        if session.closing {
            return; // Nobody is left who could ask, and what was kept is not lost.
        }
        session.line.end("the runtime of this client has ended");
        session.settle();
    }
}

/// Wait for a connection that is being made.
async fn dialled(attempt: &mut Option<JoinHandle<io::Result<Stream>>>) -> io::Result<Stream> {
    match attempt {
        Some(attempt) => attempt.await.map_err(io::Error::other)?,
        None => std::future::pending().await,
    }
}

/// Let the reactor watch a descriptor.
#[allow(deprecated, reason = "its successor is unsafe, and what is watched here never changes")]
fn watch<T: AsRawFd>(what: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    AsyncFd::with_interest(what, interest)
}

impl Driver {
    pub(super) fn new(shared: Arc<Shared>, kicked: Arc<Notify>) -> io::Result<Self> {
        let timer = watch(Timer::new()?, Interest::READABLE)?;
        let (set, retry, backoff) = (Moment::NEVER, Moment(0), reconnect());
        let (stream, blocked, attempt) = (None, None, None);
        Ok(Self { shared, kicked, stream, blocked, timer, set, retry, backoff, attempt })
    }

    /// Look after the client until nobody needs it.
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
                    // It is tried again, until nobody wants anything any more.
                    let _ = stream.and_then(|stream| self.connected(stream));
                }
                Wakeup::Stream | Wakeup::Kick => {}
            }
            self.attempt = attempt;
        }
    }

    /// Make the first connection, and wait until the node has answered to it.
    pub(super) async fn greet(&mut self, patience: Duration) -> io::Result<()> {
        let mut attempt = Some(self.dial(patience));
        self.connected(dialled(&mut attempt).await?)?;
        loop {
            let blocked = {
                let mut session = self.shared.lock();
                session.flush();
                session.settle();
                if session.line.is_talking() || session.stream.is_none() {
                    return Ok(());
                }
                session.is_blocked()
            };
            self.watch_writing(blocked);
            self.transfer().await;
        }
    }

    /// Do all that is due. Says until when to wait, and whether something could not be sent.
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
            if session.line.is_talking() {
                self.backoff.reset();
            }
            let wanted = session.line.wants_connection() && self.attempt.is_none();
            wanted && now >= self.retry
        };
        if connect {
            self.retry = now.after(self.backoff.next_delay());
            self.attempt = Some(self.dial(self.shared.attempt));
        }
        let mut session = self.shared.lock();
        if session.stream.is_none() {
            (self.stream, self.blocked) = (None, None);
        }
        let mut due = session.line.next_due();
        if session.line.wants_connection() && self.attempt.is_none() {
            due = due.min(self.retry);
        }
        session.plan = due;
        Some((due, session.is_blocked()))
    }

    /// Connect. That may wait, so it is done forked.
    fn dial(&self, limit: Duration) -> JoinHandle<io::Result<Stream>> {
        let endpoint = self.shared.endpoint.clone();
        tokio::task::spawn_blocking(move || endpoint.connect_within(limit))
    }

    fn connected(&mut self, stream: Stream) -> io::Result<()> {
        let stream = Arc::new(stream);
        self.stream = Some(watch(Arc::clone(&stream), Interest::READABLE)?);
        self.blocked = None;
        self.shared.lock().connect(stream);
        Ok(())
    }

    /// Watch for writing if something could not be sent, and only then. Where that fails, it is
    /// tried again at the next sign of life.
    fn watch_writing(&mut self, blocked: bool) {
        if !blocked {
            self.blocked = None;
        } else if let (None, Some(stream)) = (&self.blocked, &self.stream) {
            let same = stream.get_ref().as_fd().try_clone_to_owned();
            self.blocked = same.and_then(|same| watch(same, Interest::WRITABLE)).ok();
        }
    }

    /// Wait for bytes, or until what could not be sent can be, and let them through.
    async fn transfer(&self) {
        tokio::select! {
            () = self.incoming() => {}
            () = self.outgoing() => {}
        }
    }

    async fn incoming(&self) {
        let Some(stream) = &self.stream else { return std::future::pending().await };
        let Ok(mut ready) = stream.readable().await else {
            return std::future::pending().await; // The runtime ends.
        };
        let mut buffer = [0; 4096];
        let read = stream.get_ref().receive(&mut buffer, RecvFlags::DONTWAIT);
        if !matches!(read, Ok(count) if count == buffer.len() || count == 0) {
            // Nothing is left: the next bytes make it ready again.
            ready.clear_ready();
        }
        self.shared.lock().received(stream.get_ref(), read.map(|count| &buffer[..count]));
    }

    async fn outgoing(&self) {
        let Some(blocked) = &self.blocked else { return std::future::pending().await };
        let Ok(mut ready) = blocked.writable().await else {
            return std::future::pending().await; // The runtime ends.
        };
        let mut session = self.shared.lock();
        session.flush();
        if session.is_blocked() {
            ready.clear_ready();
        }
    }

    /// Wait for the timer.
    async fn time(&self) {
        match self.timer.readable().await {
            Ok(mut ready) => {
                self.timer.get_ref().clear();
                ready.clear_ready();
            }
            Err(_) => std::future::pending().await,
        }
    }

    /// Let the timer run out by that moment, also if the machine sleeps until then. One that runs
    /// out earlier does no harm.
    fn set_timer(&mut self, due: Moment) {
        if due >= self.set {
            return;
        }
        self.set = due;
        self.timer.get_ref().set(due);
    }
}
