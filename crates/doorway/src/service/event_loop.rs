//! The event loop: waits for signals, deadlines and the connection to the node.

use std::io;

use doorway_client::Moment;
use doorway_protocol::Timer;
use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::exit::{self, Exit};
use super::link::Link;
use super::signals::Signals;

/// Everything that the loop waits for.
pub(crate) struct EventLoop {
    /// The signals of this process.
    pub(crate) signals: Signals,
    /// A timer for the next deadline. Its clock also runs while the machine is suspended.
    alarm: Timer,
    /// When the timer expires.
    rings: Moment,
    /// Also return when there is something to read on standard input.
    pub(crate) wakes_on_input: bool,
}

impl EventLoop {
    /// Block the signals of this process and make the timer.
    pub(crate) fn new() -> Result<Self, Exit> {
        let failed =
            |error: io::Error| Exit::new(exit::SYSTEM, format!("cannot wait for signals: {error}"));
        let signals = Signals::read_all().map_err(|error| failed(error.into()))?;
        let alarm = Timer::new().map_err(failed)?;
        Ok(Self { signals, alarm, rings: Moment::NEVER, wakes_on_input: false })
    }

    /// Wait until a signal comes, the node sends something, something is due for the link, or
    /// `until` is reached. Returns the signal, if one came. This may also return without a reason.
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
        // This fails if a debugger interrupts it. Then nothing is ready.
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
