//! One turn of the loop: wait until something happens, and say what.

use std::io;

use doorway_client::Moment;
use doorway_protocol::Timer;
use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::exit::{self, Exit};
use super::link::Link;
use super::signals::Signals;

/// What is waited on.
pub(crate) struct Turns {
    /// The signals of this process.
    pub(crate) signals: Signals,
    /// Rings when something is due, by a clock that runs while the machine sleeps.
    alarm: Timer,
    /// When it rings.
    rings: Moment,
}

impl Turns {
    /// Begin to listen.
    pub(crate) fn new() -> Result<Self, Exit> {
        let failed = |error: io::Error| Exit::new(exit::SYSTEM, format!("cannot listen: {error}"));
        let signals = Signals::read_all().map_err(|error| failed(error.into()))?;
        let alarm = Timer::new().map_err(failed)?;
        Ok(Self { signals, alarm, rings: Moment::NEVER })
    }

    /// Wait until `until`, or something is due for the link, or something came over it, or a signal
    /// came, which is returned. Call it again and again: it may return for no reason.
    pub(crate) fn turn(&mut self, link: &mut Link, until: Moment) -> Option<Signal> {
        self.ring_at(until.min(link.next_due()));
        let mut waits = Vec::with_capacity(3);
        waits.push(PollFd::new(&self.signals, PollFlags::IN));
        waits.push(PollFd::new(&self.alarm, PollFlags::IN));
        if let Some((socket, flags)) = link.interest() {
            waits.push(PollFd::from_borrowed_fd(socket, flags));
        }
        // It fails where a debugger interrupts it: then there is nothing to see.
        let _ = poll(&mut waits, None::<&Timespec>);
        let happened: Vec<bool> = waits.iter().map(|one| !one.revents().is_empty()).collect();
        drop(waits);
        if happened[1] {
            self.rings = Moment::NEVER;
            self.alarm.clear();
        }
        let now = Moment::now();
        if happened.get(2) == Some(&true) {
            link.read(now);
        }
        link.tick(now, until);
        if happened[0] { self.signals.next() } else { None }
    }

    fn ring_at(&mut self, moment: Moment) {
        if moment != self.rings {
            self.rings = moment;
            self.alarm.set(moment);
        }
    }
}
