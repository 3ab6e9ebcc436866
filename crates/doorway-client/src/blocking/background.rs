//! The thread that sends heartbeats, notices losses and reconnects.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::mpsc::{self, TryRecvError};
use std::thread;
use std::time::Duration;

use doorway_protocol::{Moment, Timer};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::RecvFlags;

use super::threads::Threads;
use crate::endpoint::Stream;
use crate::session::Session;

/// How soon the background thread wakes again while callers are active.
///
/// Active callers read from the connection themselves, so the thread leaves it to them. Until it
/// reads again, a loss that the node reports may go unnoticed.
const GLANCE: Duration = Duration::from_millis(20);

/// The background thread of a client.
pub(super) struct Background {
    threads: Arc<Threads>,
    timer: Timer,
    /// How many calls there had been at the last look.
    calls: u64,
    /// A connection that another thread is making.
    attempt: Option<mpsc::Receiver<io::Result<Stream>>>,
}

/// What the background thread waits for.
struct Watch {
    read: bool,
    write: bool,
    until: Moment,
}

impl Background {
    pub(super) fn new(threads: Arc<Threads>) -> io::Result<Self> {
        Ok(Self { threads, timer: Timer::new()?, calls: 0, attempt: None })
    }

    /// Serve the client until its last copy is dropped.
    pub(super) fn run(mut self) {
        let threads = Arc::clone(&self.threads);
        let mut session = threads.shared.lock();
        while !session.closing {
            self.look(&mut session);
            let watch = self.plan(&mut session);
            let stream = session.stream.clone();
            drop(session);
            let flags = |on, flag| if on { flag } else { PollFlags::empty() };
            let interest = flags(watch.read, PollFlags::IN) | flags(watch.write, PollFlags::OUT);
            self.timer.set(watch.until);
            let (kick, timer) = (threads.kick.as_fd(), self.timer.as_fd());
            let mut fds = vec![
                PollFd::from_borrowed_fd(kick, PollFlags::IN),
                PollFd::from_borrowed_fd(timer, PollFlags::IN),
            ];
            if let Some(stream) = stream.as_ref().filter(|_| !interest.is_empty()) {
                fds.push(PollFd::new(stream, interest));
            }
            // If `poll` fails, we look at the session once too often, which does no harm.
            let _ = poll(&mut fds, None);
            let readable = fds.get(2).is_some_and(|fd| !fd.revents().is_empty());
            if !fds[0].revents().is_empty() {
                let _ = rustix::io::read(kick, &mut [0; 8]);
            }
            session = threads.shared.lock();
            session.relying = false;
            if let Some(stream) = stream.filter(|_| readable && watch.read && !session.reading) {
                let mut buffer = [0; 4096];
                let read = stream.receive(&mut buffer, RecvFlags::DONTWAIT);
                session.received(&stream, read.map(|count| &buffer[..count]));
            }
        }
    }

    /// Do everything that is due.
    fn look(&mut self, session: &mut Session) {
        let now = Moment::now();
        let answers = session.answers;
        session.line.tick(now);
        session.flush();
        session.settle();
        if session.reading && session.answers != answers {
            // The caller that reads would not see an answer that did not come over the connection.
            self.threads.nudge();
        }
        if session.line.wants_connection() {
            self.connect(session, now);
        }
    }

    /// Reconnect. That may take long, and noticing losses must not wait for it, so another thread
    /// makes the connection and wakes this one.
    fn connect(&mut self, session: &mut Session, now: Moment) {
        if let Some(attempt) = &self.attempt {
            match attempt.try_recv() {
                Ok(stream) => {
                    self.attempt = None;
                    match stream {
                        Ok(stream) => session.connect(Arc::new(stream)),
                        Err(why) => session.cannot_connect(&why),
                    }
                    session.wake_one();
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => self.attempt = None,
            }
        }
        if session.line.wants_connection() && self.attempt.is_none() && now >= session.route.due() {
            let (found, attempt) = mpsc::channel();
            let shared = Arc::clone(&self.threads.shared);
            let endpoint = session.route.endpoint().clone();
            let dial = move || {
                // If the receiver is gone, so is the client.
                let _ = found.send(endpoint.connect_within(shared.attempt));
                drop(found);
                shared.lock().kick();
            };
            match thread::Builder::new().name("doorway-dial".to_owned()).spawn(dial) {
                Ok(_) => self.attempt = Some(attempt),
                Err(why) => session.cannot_connect(&why),
            }
        }
    }

    /// Decide what to wait for.
    fn plan(&mut self, session: &mut Session) -> Watch {
        let now = Moment::now();
        let mut until = session.line.next_due();
        let called = session.calls != std::mem::replace(&mut self.calls, session.calls);
        // Callers that enter a lock again that the session keeps do not read.
        let busy = called && !session.line.keeps();
        if session.stream.is_none() {
            if self.attempt.is_none() && session.line.wants_connection() {
                until = until.min(session.route.due().max(now));
            }
        } else if busy {
            until = until.min(now.after(GLANCE));
        }
        // A caller that has been reading for a while wakes us when it stops.
        session.relying = session.stream.is_some() && !busy && session.reading;
        session.plan = until;
        let read = session.stream.is_some() && !busy && !session.reading;
        session.watching = read;
        Watch { read, write: session.is_blocked(), until }
    }
}
