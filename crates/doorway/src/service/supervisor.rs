//! Supervises the command while its locks are held.
//!
//! Signals to this process are forwarded to the command, job control works as if the command had
//! been started by the shell itself, and if the lease cannot be renewed the command is ended before
//! the lease expires.

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
use super::lost_policy::{OnLost, Shutdown, ShutdownStep};
use super::signals::{self, Signals};
use super::stderr::print_line;
use super::terminal::Terminal;

/// How often to look whether the command's background processes have ended, after the command has.
const LOOK: Duration = Duration::from_millis(20);

/// A command that was asked to end longer ago than this has handled that, and has gone on.
const RECENT: Duration = Duration::from_mins(1);

/// A running command and everything that is needed to supervise it.
pub(crate) struct Supervisor<'a> {
    /// The locks that are held for the command.
    pub(crate) grants: &'a Grants,
    /// The session with the node.
    pub(crate) link: &'a mut Link,
    /// Waits for signals, for the node and for deadlines.
    pub(crate) event_loop: &'a mut EventLoop,
    /// The command.
    pub(crate) child: Child,
    /// The controlling terminal, if there is one.
    pub(crate) terminal: Option<Terminal>,
    /// What to do to the command when a lock is about to be lost.
    pub(crate) on_lost: &'a OnLost,
    /// When to do it.
    pub(crate) shutdown: Shutdown,
    /// Also report what is not a problem.
    pub(crate) verbose: bool,
    /// The last signal with which somebody asked for the end of the command, and when.
    pub(crate) asked_to_end: Option<(Signal, Moment)>,
}

/// How the command ended.
pub(crate) struct Outcome {
    /// Its exit code, or the signal that ended it.
    pub(crate) change: Change,
    /// True if a lock was lost while the command ran.
    pub(crate) lost: bool,
    /// The signal with which somebody asked for the end of the command shortly before it ended, if
    /// somebody did.
    pub(crate) asked_to_end: Option<Signal>,
    /// True if background processes of the command still run and hold the locks.
    pub(crate) others: bool,
    /// The signal of a key, such as Ctrl-C, that ended the command. The key was meant for the whole
    /// job of which this process is a part, for example a script. But the terminal sent the signal
    /// to the command's process group only, because that group was in the foreground.
    pub(crate) key: Option<Signal>,
}

impl Supervisor<'_> {
    /// Wait until the command has ended. If a lock is lost, wait until its whole process group has.
    pub(crate) fn run(mut self) -> Outcome {
        let mut ended = None;
        let change = loop {
            let look = if ended.is_some() { Moment::now().after(LOOK) } else { Moment::NEVER };
            let signal = self.event_loop.wait(self.link, self.next().min(look));
            // Deadlines come before signals: if this process was stopped until the lease had
            // expired, the SIGCONT that continued it must not continue the command.
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
            // A process of the group that has closed the inherited descriptors cannot be seen, and
            // may still run.
            self.child.signal(Signal::SIGKILL);
        }
        self.child.bury();
        let recent = |(_, at): &(Signal, Moment)| Moment::now().since(*at) < RECENT;
        let asked_to_end = self.asked_to_end.filter(recent).map(|(signal, _)| signal);
        Outcome { change, lost, asked_to_end, others: self.child.left_others(), key }
    }

    /// True if there is nothing left to wait for once the command has ended.
    ///
    /// While the lock is held, background processes of the command may go on. If the lock is lost
    /// they have the same time as the command to end, and are killed after it.
    fn is_over(&self) -> bool {
        !self.shutdown.has_begun() || self.shutdown.is_done() || !self.child.left_others()
    }

    /// When to look again at the latest.
    fn next(&self) -> Moment {
        if *self.on_lost == OnLost::Ignore {
            return Moment::NEVER;
        }
        self.shutdown.next(self.deadline())
    }

    /// When the lease expires. Without a session the lock is lost already, and an event said so.
    fn deadline(&self) -> Moment {
        self.link.machine.deadline().unwrap_or(Moment::NEVER)
    }

    /// Handle the events of the session, and end the command if that is due.
    fn look(&mut self) {
        let now = Moment::now();
        let mut why = String::from("the node does not answer");
        while let Some(event) = self.link.event() {
            match event {
                Event::Lost { reason, .. } => {
                    // Without a session the lease has expired; with one, the node took the lock.
                    self.shutdown.lose(now, self.link.machine.ttl().is_none());
                    why = reason;
                    if *self.on_lost == OnLost::Ignore {
                        print_line(&format!(
                            "lost {}: {why}; the command goes on without it",
                            self.grants.names()
                        ));
                    }
                }
                Event::Welcome { node, resumed, ttl, .. } => {
                    self.shutdown.set_ttl(ttl);
                    self.back(&node, resumed);
                }
                Event::Stopping { within } if self.verbose => {
                    print_line(&format!("the node will stop within {} s", within.as_secs()));
                }
                _ => {}
            }
        }
        if *self.on_lost == OnLost::Ignore {
            return;
        }
        let begun = self.shutdown.has_begun();
        match self.shutdown.due(now, self.deadline()) {
            Some(ShutdownStep::Tell) => {
                self.tell();
                print_line(&format!(
                    "lost {}: {why}; telling the command to end",
                    self.grants.names()
                ));
            }
            Some(ShutdownStep::Kill) => {
                self.child.signal(Signal::SIGKILL);
                if !begun {
                    print_line(&format!(
                        "lost {}: {why}; killing the command",
                        self.grants.names()
                    ));
                } else if self.verbose {
                    print_line("the command has not ended in time; killing it");
                }
            }
            None => {}
        }
    }

    /// The session is connected again, on another socket.
    fn back(&self, node: &str, resumed: bool) {
        let kept = self.link.session().map_or(Ok(()), |session| self.child.keep(session));
        if self.verbose {
            let how = if resumed { "was resumed" } else { "is a new one" };
            print_line(&format!("connected to {node} again; the session {how}"));
        }
        if let Err(error) = kept {
            print_line(&format!(
                "cannot start `cat` to keep the new connection open ({error}): if this wrapper is \
                 killed, the lock is free while the command runs"
            ));
        }
    }

    /// Do to the command what `--on-lost` says.
    fn tell(&self) {
        match self.on_lost {
            OnLost::Signal(signal) => {
                self.child.signal(*signal);
                // A stopped process handles the signal only after it is continued.
                self.child.signal(Signal::SIGCONT);
            }
            OnLost::Kill => self.child.signal(Signal::SIGKILL),
            OnLost::Exec(line) => self.exec(line),
            OnLost::Ignore => {}
        }
    }

    /// Run the command line of `--on-lost exec:`.
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

    /// Forward a signal to the command. Returns how the command ended, if the signal says so.
    fn signal(&mut self, signal: Signal) -> Option<Change> {
        match signal {
            Signal::SIGCHLD => return self.changes(),
            // The terminal stops this process because it read or wrote in the background. That
            // does not concern the command.
            Signal::SIGTTIN | Signal::SIGTTOU => {}
            Signal::SIGCONT => self.go_on(),
            _ => {
                if [Signal::SIGTERM, Signal::SIGINT].contains(&signal) {
                    self.asked_to_end = Some((signal, Moment::now()));
                }
                self.child.signal(signal);
            }
        }
        None
    }

    /// Handle the changes of the command's state. Returns how it ended, if it has.
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

    /// The command was stopped. If it only needs the terminal, and this process is in the
    /// foreground, it gets the terminal. Otherwise this process stops too, so that the shell shows
    /// its prompt.
    fn stopped(&mut self, by: i32) {
        let Some(terminal) = &self.terminal else { return };
        let group = self.child.process();
        let wants = by == Signal::SIGTTIN as i32 || by == Signal::SIGTTOU as i32;
        if wants && terminal.is_ours() {
            terminal.give(group);
            return self.child.signal(Signal::SIGCONT);
        }
        if by != Signal::SIGTSTP as i32 && !wants {
            return; // Somebody stopped it with SIGSTOP, and will continue it.
        }
        let had = terminal.take_from(group);
        if had {
            // Ctrl-Z was meant for the whole job, such as the script around this process. But only
            // the command's group was in the foreground, so only the command got the signal.
            let _ = kill(Pid::from_raw(0), Signal::SIGTSTP);
        }
        signals::take(Signal::SIGTSTP);
        let continued = Signals::is_pending(Signal::SIGCONT);
        // Either this process was continued, or it was not stopped at all: the system does not
        // stop a process whose group is orphaned, because no shell could continue it. In both cases
        // the command goes on as well.
        self.link.tick(Moment::now(), self.next());
        self.look();
        if had && self.terminal.as_ref().is_some_and(Terminal::is_ours) {
            self.terminal.iter().for_each(|terminal| terminal.give(group));
        }
        if wants && !continued {
            // The group is orphaned, so nobody can give the command the terminal either. Continued,
            // it would only ask for the terminal again and be stopped again. The system sends
            // SIGHUP to stopped processes of an orphaned group, and so does this, but only once: a
            // command that ignores SIGHUP stays stopped.
            if !self.child.hang_up() {
                return;
            }
        }
        self.go_on();
    }

    /// Continue the command, unless it is being ended.
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
