//! The thread that gives signs of life, notices losses and connects again.

use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::mpsc::{self, TryRecvError};
use std::thread;
use std::time::Duration;

use doorway_protocol::{Backoff, Moment, Timer};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::RecvFlags;

use super::shared::{Inner, Shared};
use crate::endpoint::{Stream, reconnect};

/// How soon the background looks again while callers come and go. They read by themselves, so until
/// then a loss of which the node tells may go unnoticed.
const GLANCE: Duration = Duration::from_millis(20);

/// The thread in the background.
pub(super) struct Background {
    shared: Arc<Shared>,
    timer: Timer,
    /// How many calls there were when it last looked.
    calls: u64,
    /// When to try again to connect.
    retry: Moment,
    backoff: Backoff,
    /// A connection that is being made.
    attempt: Option<mpsc::Receiver<Stream>>,
}

/// What the background waits for.
struct Watch {
    read: bool,
    write: bool,
    until: Moment,
}

impl Background {
    pub(super) fn new(shared: Arc<Shared>) -> std::io::Result<Self> {
        let (timer, backoff) = (Timer::new()?, reconnect());
        Ok(Self { shared, timer, calls: 0, retry: Moment(0), backoff, attempt: None })
    }

    /// Look after the client until nobody needs it.
    pub(super) fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let mut inner = shared.lock();
        while !inner.closing {
            self.look(&shared, &mut inner);
            let watch = self.plan(&mut inner);
            let stream = inner.session.stream.clone();
            drop(inner);
            let flags = |on, flag| if on { flag } else { PollFlags::empty() };
            let interest = flags(watch.read, PollFlags::IN) | flags(watch.write, PollFlags::OUT);
            self.timer.set(watch.until);
            let (kick, timer) = (shared.kick.as_fd(), self.timer.as_fd());
            let mut fds = vec![
                PollFd::from_borrowed_fd(kick, PollFlags::IN),
                PollFd::from_borrowed_fd(timer, PollFlags::IN),
            ];
            if let Some(stream) = stream.as_ref().filter(|_| !interest.is_empty()) {
                fds.push(PollFd::new(stream, interest));
            }
            // Whatever it says, looking is never wrong.
            let _ = poll(&mut fds, None);
            let readable = fds.get(2).is_some_and(|fd| !fd.revents().is_empty());
            if !fds[0].revents().is_empty() {
                let _ = rustix::io::read(kick, &mut [0; 8]);
            }
            inner = shared.lock();
            inner.away = false;
            if let Some(stream) = stream.filter(|_| readable && watch.read && !inner.reading) {
                let mut buffer = [0; 4096];
                let read = stream.receive(&mut buffer, RecvFlags::DONTWAIT);
                inner.session.received(&stream, read.map(|count| &buffer[..count]));
            }
        }
    }

    /// Do all that is due.
    fn look(&mut self, shared: &Arc<Shared>, inner: &mut Inner) {
        let now = Moment::now();
        let answers = inner.session.answers;
        inner.session.line.tick(now);
        inner.session.flush();
        inner.session.settle();
        if inner.reading && inner.session.answers != answers {
            // Whoever reads would not see the answer that came from here.
            shared.nudge();
        }
        if inner.session.line.wants_connection() {
            self.connect(shared, inner, now);
        }
    }

    /// Connect again. That may take long, and signs of losses must not wait for it: another thread
    /// tries, and says so.
    fn connect(&mut self, shared: &Arc<Shared>, inner: &mut Inner, now: Moment) {
        if let Some(attempt) = &self.attempt {
            match attempt.try_recv() {
                Ok(stream) => {
                    self.attempt = None;
                    inner.session.connect(Arc::new(stream));
                    inner.session.wake_one();
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => self.attempt = None,
            }
        } else if now >= self.retry {
            self.retry = now.after(self.backoff.next_delay());
            let (found, attempt) = mpsc::channel();
            let shared = Arc::clone(shared);
            let dial = move || {
                if let Ok(stream) = shared.endpoint.connect_within(shared.attempt) {
                    // If nobody takes it, nobody needs it any more.
                    let _ = found.send(stream);
                }
                drop(found);
                shared.lock().session.kick();
            };
            if thread::Builder::new().name("doorway-dial".to_owned()).spawn(dial).is_ok() {
                self.attempt = Some(attempt);
            }
        }
    }

    /// What to wait for.
    fn plan(&mut self, inner: &mut Inner) -> Watch {
        let now = Moment::now();
        let mut until = inner.session.line.next_due();
        let busy = inner.calls != std::mem::replace(&mut self.calls, inner.calls);
        if inner.session.line.is_talking() {
            self.backoff.reset();
        }
        if inner.session.stream.is_none() {
            if self.attempt.is_none() {
                until = until.min(self.retry.max(now));
            }
        } else if busy {
            until = until.min(now.after(GLANCE));
        }
        // A caller that has been reading for a while says so when it leaves.
        inner.away = inner.session.stream.is_some() && !busy && inner.reading;
        inner.plan = until;
        let read = inner.session.stream.is_some() && !busy && !inner.reading;
        Watch { read, write: inner.session.is_blocked(), until }
    }
}
