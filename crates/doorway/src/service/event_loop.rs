//! One turn of the loop: wait until something happens, and say what.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use doorway_client::Moment;
use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use super::exit::{self, Exit};
use super::link::Link;
use super::signals::Signals;

/// What is waited on.
pub(crate) struct EventLoop {
    /// The signals of this process.
    pub(crate) signals: Signals,
    /// Rings when something is due, by a clock that runs while the machine sleeps.
    alarm: OwnedFd,
    /// When it rings.
    rings: Moment,
    /// Also return when there is something to read on standard input.
    pub(crate) wakes_on_input: bool,
}

impl EventLoop {
    /// Begin to listen.
    pub(crate) fn new() -> Result<Self, Exit> {
        let failed = |error: io::Error| Exit::new(exit::SYSTEM, format!("cannot listen: {error}"));
        let signals = Signals::read_all().map_err(|error| failed(error.into()))?;
        let alarm = timerfd_create(
            TimerfdClockId::Boottime,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        );
        let alarm = alarm.map_err(|error| failed(error.into()))?;
        Ok(Self { signals, alarm, rings: Moment::NEVER, wakes_on_input: false })
    }

    /// Wait until `until`, or something is due for the link, or something came over it, or a signal
    /// came, which is returned. Call it again and again: it may return for no reason.
    pub(crate) fn wait(&mut self, link: &mut Link, until: Moment) -> Option<Signal> {
        self.ring_at(until.min(link.next_due()));
        let mut waits = Vec::with_capacity(3);
        waits.push(PollFd::new(&self.signals, PollFlags::IN));
        waits.push(PollFd::new(&self.alarm, PollFlags::IN));
        if let Some((socket, flags)) = link.interest() {
            waits.push(PollFd::from_borrowed_fd(socket, flags));
        }
        let stdin = io::stdin();
        if self.wakes_on_input {
            waits.push(PollFd::new(&stdin, PollFlags::IN));
        }
        // It fails where a debugger interrupts it: then there is nothing to see.
        let _ = poll(&mut waits, None::<&Timespec>);
        let happened: Vec<bool> = waits.iter().map(|one| !one.revents().is_empty()).collect();
        drop(waits);
        if happened[1] {
            self.rings = Moment::NEVER;
            let _ = rustix::io::read(self.alarm.as_fd(), &mut [0; 8]);
        }
        let now = Moment::now();
        if happened.get(2) == Some(&true) {
            link.read(now);
        }
        link.tick(now, until);
        if happened[0] { self.signals.next() } else { None }
    }

    fn ring_at(&mut self, moment: Moment) {
        if moment == self.rings {
            return;
        }
        self.rings = moment;
        // A zero would switch it off, as is right for what never comes.
        let at = if moment == Moment::NEVER { 0 } else { moment.0.max(1) };
        let at = Timespec {
            tv_sec: (at / 1_000_000_000).cast_signed(),
            tv_nsec: (at % 1_000_000_000).cast_signed(),
        };
        let timer = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: at };
        let set = timerfd_settime(&self.alarm, TimerfdTimerFlags::ABSTIME, &timer);
        set.map(drop).expect("a timer of ours can be set");
    }
}
