//! What the threads of one client share.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use doorway_protocol::Moment;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::net::RecvFlags;

use crate::endpoint::{Endpoint, Stream};
use crate::machine::SessionMachine;
use crate::session::{Outcome, Session};

/// What the threads of one client share.
pub(super) struct Shared {
    pub(super) endpoint: Endpoint,
    /// How long one attempt to connect again may take.
    pub(super) attempt: Duration,
    pub(super) state: Mutex<Inner>,
    /// Written to when the background is to look.
    pub(super) kick: Arc<OwnedFd>,
    /// Written to when the caller that reads is to look.
    pub(super) nudge: OwnedFd,
}

pub(super) struct Inner {
    pub(super) session: Session,
    /// Does a caller read from the stream?
    pub(super) reading: bool,
    /// How often callers asked for something.
    pub(super) calls: u64,
    /// Is the background asleep until `plan`, relying on the caller that reads?
    pub(super) away: bool,
    pub(super) plan: Moment,
    /// Nobody needs the client any more.
    pub(super) closing: bool,
}

pub(super) type Locked<'a> = MutexGuard<'a, Inner>;

impl Shared {
    /// What was written while another thread panicked is as good as any: no step leaves half a
    /// state.
    pub(super) fn lock(&self) -> Locked<'_> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ask for something and wait for the answer.
    pub(super) fn call(&self, make: impl FnOnce(&mut SessionMachine, Moment) -> u64) -> Outcome {
        let mut inner = self.lock();
        let number = make(&mut inner.session.line, Moment::now());
        inner.session.expect(number);
        inner.calls += 1;
        inner.session.flush();
        if inner.session.line.next_due() < inner.plan {
            inner.session.kick();
        }
        self.wait(inner, number)
    }

    /// Ask for something of which nobody needs to know the answer.
    pub(super) fn tell(&self, make: impl FnOnce(&mut SessionMachine, Moment) -> u64) {
        let mut inner = self.lock();
        let number = make(&mut inner.session.line, Moment::now());
        inner.session.line.quiet(number);
        inner.calls += 1;
        inner.session.flush();
    }

    /// Wait for an answer: read by ourselves if nobody else does, or be woken by the one who reads.
    fn wait<'a>(&'a self, mut inner: Locked<'a>, number: u64) -> Outcome {
        loop {
            inner.session.settle();
            if let Some(outcome) = inner.session.take(number) {
                inner.leave();
                return outcome;
            }
            match inner.session.stream.clone() {
                Some(stream) if !inner.reading => {
                    inner.reading = true;
                    let may_be_refused = inner.session.line.may_be_refused(number);
                    drop(inner);
                    let mut buffer = [0; 4096];
                    let flags = if may_be_refused {
                        self.await_bytes(&stream);
                        RecvFlags::DONTWAIT
                    } else {
                        RecvFlags::empty()
                    };
                    let read = stream.receive(&mut buffer, flags);
                    inner = self.lock();
                    inner.reading = false;
                    inner.session.received(&stream, read.map(|count| &buffer[..count]));
                }
                _ => {
                    inner.session.watch(number, &waker());
                    drop(inner);
                    thread::park();
                    inner = self.lock();
                }
            }
        }
    }

    /// Let the caller that reads look, because something happened that it does not read.
    pub(super) fn nudge(&self) {
        wake(&self.nudge);
    }

    /// Wait until there is something to read, or until someone nudges us.
    fn await_bytes(&self, stream: &Stream) {
        let mut fds = [PollFd::new(stream, PollFlags::IN), PollFd::new(&self.nudge, PollFlags::IN)];
        // Whatever it says, looking is never wrong.
        let _ = poll(&mut fds, None);
        if !fds[1].revents().is_empty() {
            let _ = rustix::io::read(&self.nudge, &mut [0; 8]);
        }
    }
}

/// Something to wake a thread with that polls.
pub(super) fn bell() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// Wake whoever polls this.
pub(super) fn wake(bell: &OwnedFd) {
    // It fails only if it was done already more often than anyone can count.
    let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
}

impl Inner {
    /// A caller leaves: another one reads now, or the background.
    fn leave(&mut self) {
        if !self.reading && !self.session.wake_one() && self.away {
            self.away = false;
            self.session.kick();
        }
    }
}

/// What wakes the thread that is running.
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
