//! A command that runs while its locks are held: acquire them, run the command, release them.

use std::ffi::OsString;
use std::time::Duration;

use doorway_client::{Event, Moment};
use doorway_protocol::Window;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::acquire::{Grants, acquire};
use super::child::{Child, Plan};
use super::event_loop::EventLoop;
use super::exit::Exit;
use super::link::Link;
use super::lock_request::LockRequest;
use super::lost_policy::{OnLost, Shutdown};
use super::release::release;
use super::signals;
use super::supervisor::{Outcome, Supervisor};
use super::terminal::Terminal;

/// A command, and the locks that are held while it runs.
pub(crate) struct GuardedCommand<'a> {
    /// Which locks to acquire, and how.
    pub(crate) wanted: LockRequest<'a>,
    /// The command and its arguments.
    pub(crate) command: &'a [OsString],
    /// Whether only this process holds the locks, and not the command.
    pub(crate) close: bool,
    /// What to do to the command when a lock is about to be lost.
    pub(crate) on_lost: &'a OnLost,
    /// How long the command has to end then.
    pub(crate) grace: Option<Duration>,
    /// How long to hold the locks at least.
    pub(crate) hold_at_least: Option<Duration>,
    /// Also report what is not a problem.
    pub(crate) verbose: bool,
    /// The window of time in which the command is run once, if it has one.
    pub(crate) window: Option<Window>,
}

/// How a guarded command ended.
pub(crate) struct CommandOutcome {
    /// How the command ended.
    pub(crate) end: Outcome,
    /// False if a lock was lost before the command had ended, and nobody noticed until now.
    pub(crate) kept: bool,
}

impl GuardedCommand<'_> {
    /// Wait for the locks, and run the command while they are held. `inside` is called when they
    /// are held, with the time that it took.
    pub(crate) fn run(
        &self,
        link: &mut Link,
        event_loop: &mut EventLoop,
        inside: impl FnOnce(&Grants, &Link, Duration),
    ) -> Result<CommandOutcome, Exit> {
        let begin = Moment::now();
        let grants = acquire(&self.wanted, link, event_loop)?;
        let entered = Moment::now();
        inside(&grants, link, entered.since(begin));
        let terminal = Terminal::ours();
        let child = Child::spawn(Plan {
            words: self.command,
            variables: grants.variables().into_iter().chain(self.window_variable()).collect(),
            before: event_loop.signals.before(),
            terminal: terminal.as_ref().filter(|terminal| terminal.is_interactive()),
            session: link.session().filter(|_| !self.close),
            holder: link.machine.holder().filter(|_| !self.close),
        });
        let end = child.map(|child| {
            let shutdown = Shutdown::new(grants.ttl, self.grace);
            let (on_lost, verbose) = (self.on_lost, self.verbose);
            let (grants, link, event_loop) = (&grants, &mut *link, &mut *event_loop);
            Supervisor {
                grants,
                link,
                event_loop,
                child,
                terminal,
                on_lost,
                shutdown,
                verbose,
                asked_to_end: None,
            }
            .run()
        });
        let mut lost = end.as_ref().is_ok_and(|end| end.lost);
        if let Some(least) = self.hold_at_least.filter(|_| !lost) {
            lost = linger(entered.after(least), link, event_loop);
        }
        // A lost lock needs no release, and a lock that background processes hold must not get one.
        let done = lost || end.as_ref().is_ok_and(|end| end.others);
        let kept = done || release(&grants, link, event_loop);
        let end = end?;
        if let Some(key) = end.key {
            interrupt(key);
        }
        Ok(CommandOutcome { end, kept })
    }

    fn window_variable(&self) -> Option<(&'static str, String)> {
        self.window.map(|window| ("DOORWAY_WINDOW", window.to_string()))
    }
}

/// Hold the lock until this moment, or until a signal comes. Returns true if the lock was lost
/// meanwhile, which does no harm: the command had it all the time.
fn linger(until: Moment, link: &mut Link, event_loop: &mut EventLoop) -> bool {
    while Moment::now() < until {
        match event_loop.wait(link, until) {
            Some(signal) if signals::react(signal) => return false,
            _ => {}
        }
        while let Some(event) = link.event() {
            if matches!(event, Event::Lost { .. }) {
                return true;
            }
        }
    }
    false
}

/// Send the signal of a key, such as Ctrl-C, to the whole job of which this process is a part, and
/// end by it. A shell ends its script only if it sees that the signal ended this process.
fn interrupt(key: Signal) {
    let _ = kill(Pid::from_raw(0), key);
    signals::take(key);
}
