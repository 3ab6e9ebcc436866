//! `--once-per`: the current window of time, in which one host of all runs the command.
//!
//! The window is taken over a connection of its own, before the lock. It is not tied to this
//! process, so it stays taken however the command ends. If the command could not even be started,
//! the window is given back.

use std::time::Duration;

use doorway_client::{Answer, Code, Event, Fence, Moment, Name, Setup};
use doorway_protocol::{Backoff, Refusal, Window};
use rustix::rand::{GetRandomFlags, getrandom};

use super::event_loop::EventLoop;
use super::exit::{self, Exit};
use super::link::{Link, Persistence, QUICK};
use super::options::NodeArgs;
use super::query::unexpected_answer;
use super::signals;
use super::stderr::print_line;

/// The version of the protocol since which nodes have windows.
const WINDOWS: u16 = 4;

/// For how long to try to reach a node that serves, unless the command line says otherwise.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long to wait before asking again, at first and at most.
const DELAYS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// How long to wait for the answer when a window is given back.
const GIVING_BACK: Duration = Duration::from_secs(2);

/// Parses a period: a time with the bounds of a [`Window`].
pub(crate) fn period(text: &str) -> Result<Duration, String> {
    let period = super::options::seconds(text)?;
    Window::at(0, period).map_err(|error| error.to_string())?;
    Ok(period)
}

/// What runs once per period, and at which node.
pub(crate) struct OnceRequest<'a> {
    /// The lock of the command.
    pub(crate) lock: &'a Name,
    pub(crate) period: Duration,
    pub(crate) node: &'a NodeArgs,
    /// How this process describes itself; without a session.
    pub(crate) setup: Setup,
    pub(crate) persistence: Persistence,
    /// For how long to try to reach a node that serves; without this, for some time.
    pub(crate) within: Option<Duration>,
    pub(crate) verbose: bool,
}

/// A window that this process has taken.
pub(crate) struct TakenWindow {
    pub(crate) window: Window,
    /// The lock of the window.
    lock: Name,
    fence: Fence,
    /// When it ends.
    ends: Moment,
}

/// What came of the attempt to take the window.
pub(crate) enum Attempt {
    /// This process has it.
    Taken(TakenWindow),
    /// Another one had it before, as the node says in a sentence.
    TakenBefore(String),
}

impl TakenWindow {
    /// How much of it is left.
    pub(crate) fn left(&self) -> Duration {
        self.ends.since(Moment::now())
    }
}

impl OnceRequest<'_> {
    /// Take the current window, if nobody has taken it.
    pub(crate) fn take(&self, event_loop: &mut EventLoop) -> Result<Attempt, Exit> {
        let mut link = self.open()?;
        let within = self.within.unwrap_or(PATIENCE).max(QUICK);
        let end = Moment::now().after(within);
        greet(end, &mut link, event_loop)?;
        let mut key = [0; 16];
        let drawn = getrandom(&mut key, GetRandomFlags::empty());
        if drawn != Ok(key.len()) {
            return Err(Exit::new(exit::SYSTEM, "the system gives no random bytes"));
        }
        let again = self.persistence != Persistence::Once;
        let mut backoff = Backoff::new(DELAYS.0, DELAYS.1);
        loop {
            let now = Moment::now();
            let asked = link.machine.once(now, self.lock, self.period, key);
            match answer(asked, &mut link, event_loop)? {
                Ok(Answer::Window { lock, fence, left }) => {
                    let Some((_, window)) = Window::of(&lock) else {
                        return Err(unexpected_answer());
                    };
                    // The answer took some time, too.
                    return Ok(Attempt::Taken(TakenWindow {
                        window,
                        lock,
                        fence,
                        ends: now.after(left),
                    }));
                }
                Ok(_) => return Err(unexpected_answer()),
                Err(refusal) if refusal.code == Code::NotFree => {
                    return Ok(Attempt::TakenBefore(refusal.text));
                }
                Err(refusal) if again && may_pass(&refusal) && Moment::now() < end => {
                    pause(Moment::now().after(backoff.next_delay()), &mut link, event_loop)?;
                }
                Err(refusal) => return Err(Exit::refusal(&refusal, exit::UNAVAILABLE)),
            }
        }
    }

    /// Give a window back in which the command was not started.
    pub(crate) fn give_back(&self, taken: &TakenWindow, event_loop: &mut EventLoop) {
        let TakenWindow { window, lock, fence, .. } = taken;
        let until = Moment::now().after(GIVING_BACK);
        let given = self.open().is_ok_and(|mut link| {
            let asked = link.machine.release(Moment::now(), lock, *fence);
            link.flush();
            while Moment::now() < until && link.hopeless().is_none() {
                // Whatever signal comes, this does not take long.
                let _ = event_loop.wait(&mut link, until);
                while let Some(event) = link.event() {
                    // Another node than the one that granted the window does not have it.
                    if let Event::Released { number, held } = event
                        && number == asked
                    {
                        return held;
                    }
                }
            }
            false
        });
        if !given {
            print_line(&format!(
                "the window {window} could not be given back, so no host runs the command in it"
            ));
        }
    }

    /// Begin to connect.
    fn open(&self) -> Result<Link, Exit> {
        let mut link = self.node.link(self.setup.clone(), self.verbose, self.persistence)?;
        link.open()?;
        Ok(link)
    }
}

/// Wait until a node has welcomed this client, and check that it has windows.
fn greet(end: Moment, link: &mut Link, event_loop: &mut EventLoop) -> Result<(), Exit> {
    loop {
        pause(end, link, event_loop)?;
        while let Some(event) = link.event() {
            match event {
                Event::Welcome { version, .. } if version >= WINDOWS => return Ok(()),
                Event::Welcome { node, .. } => {
                    let text = format!(
                        "the node {node} is an older version, which does not know --once-per: \
                         upgrade it"
                    );
                    return Err(Exit::new(exit::UNAVAILABLE, text));
                }
                Event::Closed(refusal) => {
                    return Err(Exit::refusal(&refusal, exit::UNAVAILABLE));
                }
                _ => {}
            }
        }
        let now = Moment::now();
        if now >= end {
            return Err(Exit::new(exit::UNAVAILABLE, link.machine.no_node(now)));
        }
    }
}

/// Wait for the answer to this question.
fn answer(
    asked: u64,
    link: &mut Link,
    event_loop: &mut EventLoop,
) -> Result<Result<Answer, Refusal>, Exit> {
    link.flush();
    loop {
        pause(Moment::NEVER, link, event_loop)?;
        while let Some(event) = link.event() {
            match event {
                Event::Answer { number, answer } if number == asked => return Ok(Ok(answer)),
                Event::Refused { number, refusal } if number == asked => return Ok(Err(refusal)),
                Event::Unknown { number, refusal } if number == asked => {
                    let text = format!(
                        "{refusal}; it is not known whether this host has the window, so the \
                         command is not run"
                    );
                    return Err(Exit::new(exit::UNAVAILABLE, text));
                }
                Event::Closed(refusal) => return Ok(Err(refusal)),
                _ => {}
            }
        }
    }
}

/// Wait until something happens, or until this moment. A signal ends the command.
fn pause(until: Moment, link: &mut Link, event_loop: &mut EventLoop) -> Result<(), Exit> {
    if let Some(signal) = event_loop.wait(link, until)
        && signals::react(signal)
    {
        return Err(Exit::signal(signal as i32));
    }
    link.hopeless().map_or(Ok(()), Err)
}

/// Does the node refuse the request only for now? Its text says so.
fn may_pass(refusal: &Refusal) -> bool {
    let says = |words| refusal.text.contains(words);
    refusal.code == Code::Unavailable && (says("ask again") || says("try again"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_has_bounds() {
        assert_eq!(period("1h"), Ok(Duration::from_hours(1)));
        assert_eq!(period("90"), Ok(Duration::from_secs(90)));
        for (text, why) in [
            ("0", "a period has 1 s to 31 d"),
            ("0.5", "not 0.5 s"),
            ("32d", "not 2764800 s"),
            ("1.0005", "in whole milliseconds"),
            ("daily", "'daily' is not a time"),
        ] {
            let error = period(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
