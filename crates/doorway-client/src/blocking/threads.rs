//! How the threads of one client wait for the node and for each other.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, MutexGuard};
use std::task::{Wake, Waker};
use std::thread::{self, Thread};

use doorway_protocol::Moment;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::net::RecvFlags;

use crate::endpoint::Stream;
use crate::machine::SessionMachine;
use crate::session::{Outcome, Session, SharedSession};

/// What the threads of one client share.
///
/// At most one thread reads from the connection at a time: a caller that waits for its answer, or
/// the background thread if no caller waits.
pub(super) struct Threads {
    pub(super) shared: Arc<SharedSession>,
    /// Wakes the background thread.
    pub(super) kick: Arc<OwnedFd>,
    /// Wakes the caller that reads.
    nudge: OwnedFd,
}

impl Threads {
    pub(super) fn new(shared: Arc<SharedSession>, kick: Arc<OwnedFd>) -> io::Result<Self> {
        Ok(Self { shared, kick, nudge: event()? })
    }

    /// Make a request, and wait for the answer.
    pub(super) fn call(&self, make: impl FnOnce(&mut SessionMachine, Moment) -> u64) -> Outcome {
        let mut session = self.shared.lock();
        let number = make(&mut session.line, Moment::now());
        session.expect(number);
        session.flush();
        if session.line.next_due() < session.plan {
            session.kick();
        }
        self.wait(session, number)
    }

    /// Wait for an answer: read from the connection, or let the thread that reads wake us.
    fn wait<'a>(&'a self, mut session: MutexGuard<'a, Session>, number: u64) -> Outcome {
        loop {
            session.settle();
            if let Some(outcome) = session.take(number) {
                hand_over(&mut session);
                return outcome;
            }
            match session.stream.clone() {
                Some(stream) if !session.reading => {
                    session.reading = true;
                    let may_be_refused = session.line.may_be_refused(number);
                    drop(session);
                    let mut buffer = [0; 4096];
                    let flags = if may_be_refused {
                        self.await_bytes(&stream);
                        RecvFlags::DONTWAIT
                    } else {
                        RecvFlags::empty()
                    };
                    let read = stream.receive(&mut buffer, flags);
                    session = self.shared.lock();
                    session.reading = false;
                    session.received(&stream, read.map(|count| &buffer[..count]));
                }
                _ => {
                    session.watch(number, &waker());
                    drop(session);
                    thread::park();
                    session = self.shared.lock();
                }
            }
        }
    }

    /// Wake the caller that reads, because something happened that does not come over the
    /// connection.
    pub(super) fn nudge(&self) {
        wake(&self.nudge);
    }

    /// Wait until there is something to read, or until another thread nudges us.
    fn await_bytes(&self, stream: &Stream) {
        let mut fds = [PollFd::new(stream, PollFlags::IN), PollFd::new(&self.nudge, PollFlags::IN)];
        // If `poll` fails, the caller looks at the session once too often, which does no harm.
        let _ = poll(&mut fds, None);
        if !fds[1].revents().is_empty() {
            let _ = rustix::io::read(&self.nudge, &mut [0; 8]);
        }
    }
}

/// A caller stops reading: another caller reads now, or the background thread. While the session
/// keeps a lock, the background thread must read at once, because entering again reads nothing.
fn hand_over(session: &mut Session) {
    let unread = session.line.keeps() && !session.watching;
    if !session.reading && !session.wake_one() && (session.relying || unread) {
        session.relying = false;
        session.kick();
    }
}

/// Create an event that wakes a thread out of `poll`.
pub(super) fn event() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// Wake the thread that polls this event.
pub(super) fn wake(event: &OwnedFd) {
    // Writing fails only if the counter is full, and then the thread wakes anyway.
    let _ = rustix::io::write(event, &1_u64.to_ne_bytes());
}

/// The waker of the current thread.
fn waker() -> Waker {
    struct ThreadWaker(Thread);
    impl Wake for ThreadWaker {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    thread_local! {
        static WAKER: Waker = Waker::from(Arc::new(ThreadWaker(thread::current())));
    }
    WAKER.with(Clone::clone)
}
