//! Holding locks while a command runs: signals go to the command, and it ends before the lease.

use std::process::{Command, Stdio};
use std::time::Duration;

use doorway_client::{Event, Moment};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::acquire::Grants;
use super::child::{Change, Child};
use super::event_loop::EventLoop;
use super::exit::Exit;
use super::link::Link;
use super::lost_policy::{Due, OnLost, Shutdown};
use super::signals::{self, Signals};
use super::stderr::print_line;
use super::terminal::Terminal;

/// How often to look whether what the command left behind has ended too.
const LOOK: Duration = Duration::from_millis(20);

/// A command while it runs under its locks.
pub(crate) struct Supervisor<'a> {
    /// What was granted.
    pub(crate) grants: &'a Grants,
    /// The session.
    pub(crate) link: &'a mut Link,
    /// The signals and the time.
    pub(crate) event_loop: &'a mut EventLoop,
    /// The command.
    pub(crate) child: Child,
    /// The terminal, if there is one.
    pub(crate) terminal: Option<Terminal>,
    /// What to do when the lock is being lost.
    pub(crate) on_lost: &'a OnLost,
    /// When that is.
    pub(crate) shutdown: Shutdown,
    /// Say more than must be said.
    pub(crate) verbose: bool,
}

/// How it ended.
pub(crate) struct Outcome {
    /// What became of the command.
    pub(crate) change: Change,
    /// Was its lock lost while it ran?
    pub(crate) lost: bool,
    /// Does something that it started still run and hold the lock?
    pub(crate) others: bool,
    /// The key of the terminal that ended it, which was meant for all of the job that we are part
    /// of: the rest of it did not have the terminal, so the terminal did not tell it.
    pub(crate) key: Option<Signal>,
}

impl Supervisor<'_> {
    /// Wait until the command ends, and if its lock is lost, all of its group.
    pub(crate) fn run(mut self) -> Outcome {
        let mut ended = None;
        let change = loop {
            let look = if ended.is_some() { Moment::now().after(LOOK) } else { Moment::NEVER };
            let signal = self.event_loop.wait(self.link, self.next().min(look));
            // The time first: a command that was stopped must not go on without its lock.
            self.look();
            if let Some(signal) = signal {
                ended = self.signal(signal).or(ended);
            }
            if let Some(change) = ended
                && self.is_over()
            {
                break change;
            }
        };
        let group = self.child.process();
        let had = self.terminal.as_ref().is_some_and(|terminal| terminal.take_from(group));
        let interrupted = change == Change::Killed(Signal::SIGINT as i32);
        let key = (had && interrupted).then_some(Signal::SIGINT);
        let lost = self.shutdown.has_begun();
        if lost {
            // Whoever of the group closed what it was given is not seen, and may still be there.
            self.child.signal(Signal::SIGKILL);
        }
        self.child.bury();
        Outcome { change, lost, others: self.child.left_others(), key }
    }

    /// The command has ended. Is that all? What it leaves behind goes on if the lock is held; if it
    /// is lost, it has the same time to end, and is killed then.
    fn is_over(&self) -> bool {
        !self.shutdown.has_begun() || self.shutdown.is_done() || !self.child.left_others()
    }

    fn next(&self) -> Moment {
        if *self.on_lost == OnLost::Ignore {
            return Moment::NEVER;
        }
        self.shutdown.next(self.deadline())
    }

    /// Without a session the lock is lost already, and that was an event.
    fn deadline(&self) -> Moment {
        self.link.machine.deadline().unwrap_or(Moment::NEVER)
    }

    /// What has the node to say, and what is due?
    fn look(&mut self) {
        let now = Moment::now();
        let mut why = String::from("the node does not answer");
        while let Some(event) = self.link.event() {
            match event {
                Event::Lost { reason, .. } => {
                    // Without a session the lease is over; with one, the node took the lock.
                    self.shutdown.gone(now, self.link.machine.ttl().is_none());
                    why = reason;
                    if *self.on_lost == OnLost::Ignore {
                        print_line(&format!(
                            "lost {}: {why}; the command goes on",
                            self.grants.names()
                        ));
                    }
                }
                Event::Welcome { node, resumed, .. } => self.back(&node, resumed),
                Event::Stopping { within } if self.verbose => {
                    print_line(&format!("the node stops within {} s", within.as_secs()));
                }
                _ => {}
            }
        }
        if *self.on_lost == OnLost::Ignore {
            return;
        }
        let begun = self.shutdown.has_begun();
        match self.shutdown.due(now, self.deadline()) {
            Some(Due::Tell) => {
                self.tell();
                print_line(&format!("lost {}: {why}; the command must end", self.grants.names()));
            }
            Some(Due::Kill) => {
                self.child.signal(Signal::SIGKILL);
                if !begun {
                    print_line(&format!(
                        "lost {}: {why}; the command is killed",
                        self.grants.names()
                    ));
                } else if self.verbose {
                    print_line("the command is still there, and is killed");
                }
            }
            None => {}
        }
    }

    /// The node speaks with us again, on another connection.
    fn back(&self, node: &str, resumed: bool) {
        let kept = self.link.session().map_or(Ok(()), |session| self.child.keep(session));
        if self.verbose {
            let how = if resumed { "goes on" } else { "is a new one" };
            print_line(&format!("connected to {node} again; the session {how}"));
        }
        if let Err(error) = kept {
            print_line(&format!("if this wrapper is killed the lock is free: no `cat`: {error}"));
        }
    }

    /// Tell the command that it must end.
    fn tell(&self) {
        match self.on_lost {
            OnLost::Signal(signal) => {
                self.child.signal(*signal);
                // One that is stopped would not hear it.
                self.child.signal(Signal::SIGCONT);
            }
            OnLost::Kill => self.child.signal(Signal::SIGKILL),
            OnLost::Exec(line) => self.exec(line),
            OnLost::Ignore => {}
        }
    }

    fn exec(&self, line: &str) {
        let mut command = Command::new("sh");
        command.args(["-c", line]).stdin(Stdio::null());
        command.envs(self.grants.variables());
        command.env("DOORWAY_PID", self.child.process().as_raw_nonzero().to_string());
        super::child::restore(&mut command, self.event_loop.signals.before());
        if let Err(error) = command.spawn() {
            print_line(&format!("cannot run `{line}`: {error}"));
        }
    }

    /// What a signal to us means for the command; its end, if it was that.
    fn signal(&mut self, signal: Signal) -> Option<Change> {
        match signal {
            Signal::SIGCHLD => return self.changes(),
            // A stop that the terminal sent us because we wrote to it is ours alone.
            Signal::SIGTTIN | Signal::SIGTTOU => {}
            Signal::SIGCONT => self.go_on(),
            _ => self.child.signal(signal),
        }
        None
    }

    fn changes(&mut self) -> Option<Change> {
        while let Some(change) = self.child.change() {
            match change {
                Change::Exited(_) | Change::Killed(_) => return Some(change),
                Change::Stopped(by) => self.stopped(by),
                Change::Continued => {}
            }
        }
        None
    }

    /// The command stopped. If it only wants the terminal, which we have, it gets it; else we stop
    /// too, so that the shell has its prompt again.
    fn stopped(&mut self, by: i32) {
        let Some(terminal) = &self.terminal else { return };
        let group = self.child.process();
        let wants = by == Signal::SIGTTIN as i32 || by == Signal::SIGTTOU as i32;
        if wants && terminal.is_ours() {
            terminal.give(group);
            return self.child.signal(Signal::SIGCONT);
        }
        if by != Signal::SIGTSTP as i32 && !wants {
            return; // Someone stopped it on purpose, and will continue it.
        }
        let had = terminal.take_from(group);
        if had {
            // The key was meant for all of the job that we are part of, such as the script around
            // us, which did not have the terminal.
            let _ = kill(Pid::from_raw(0), Signal::SIGTSTP);
        }
        signals::take(Signal::SIGTSTP);
        let continued = Signals::is_pending(Signal::SIGCONT);
        // Someone continued us, or nobody could have: then the command goes on as well.
        self.link.tick(Moment::now(), self.next());
        self.look();
        if had && self.terminal.as_ref().is_some_and(Terminal::is_ours) {
            self.terminal.iter().for_each(|terminal| terminal.give(group));
        }
        if wants && !continued {
            // Nor could anyone give it the terminal, and it would only ask again: so it is told
            // what the system tells those whom nobody can continue. Once, for it may not care.
            if !self.child.hang_up() {
                return;
            }
        }
        self.go_on();
    }

    /// We are continued, and so is the command.
    fn go_on(&mut self) {
        if !self.shutdown.has_begun() {
            self.child.signal(Signal::SIGCONT);
        }
    }
}

/// The exit code of a command that ended.
pub(crate) fn exit_code(change: Change) -> Exit {
    match change {
        Change::Exited(code) => Exit::quiet(code),
        Change::Killed(signal) => Exit::signal(signal),
        Change::Stopped(_) | Change::Continued => Exit::quiet(0),
    }
}
