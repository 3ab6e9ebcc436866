//! The command that runs under the lock: a process group of its own.

mod before_exec;

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill, killpg};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitId, WaitIdOptions, WaitIdStatus, getpid, waitid};

use super::exit::{self, Exit};
use super::signals::InheritedSignals;
use super::terminal::Terminal;
use before_exec::BeforeExec;
pub(crate) use before_exec::{detach, hear_of_children, restore};

/// What is to be run, and how.
pub(crate) struct Plan<'a> {
    /// The command and its arguments.
    pub(crate) words: &'a [OsString],
    /// What it finds in its environment besides ours.
    pub(crate) variables: Vec<(&'static str, String)>,
    /// What we were started with, and it gets.
    pub(crate) before: InheritedSignals,
    /// The terminal, if it is to have it from the beginning.
    pub(crate) terminal: Option<&'a Terminal>,
    /// The session's descriptor, which the command keeps open; without it the command dies with
    /// us.
    pub(crate) session: Option<BorrowedFd<'a>>,
}

/// The command while it runs.
pub(crate) struct Child {
    process: Pid,
    before: InheritedSignals,
    /// Ends when the last process that came out of the command is gone. None if the command got no
    /// descriptor of ours.
    others: Option<OwnedFd>,
    /// True once the command has been sent SIGHUP.
    hung_up: bool,
}

/// What became of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It ended with this exit code.
    Exited(u8),
    /// A signal ended it.
    Killed(i32),
    /// A signal stopped it.
    Stopped(i32),
    /// It goes on.
    Continued,
}

impl Child {
    /// Run the command.
    pub(crate) fn spawn(plan: Plan<'_>) -> Result<Self, Exit> {
        let [program, arguments @ ..] = plan.words else {
            return Err(Exit::new(exit::USAGE, "no command to run"));
        };
        let failed = |error: &io::Error| cannot_run(program, error);
        let mut keeps = Vec::new();
        let mut others = None;
        if let Some(session) = plan.session {
            keeps.push(session.try_clone_to_owned().map_err(|error| failed(&error))?);
            let pipe = pipe_with(PipeFlags::CLOEXEC).map_err(|error| failed(&error.into()))?;
            others = Some(pipe.0);
            keeps.push(pipe.1);
        }
        let terminal = plan.terminal.map(|terminal| terminal.descriptor().try_clone_to_owned());
        let mut command = Command::new(program);
        command.args(arguments).envs(plan.variables);
        BeforeExec {
            before: plan.before,
            terminal: terminal.transpose().map_err(|error| failed(&error))?,
            keeps,
            dies_with: plan.session.is_none().then(getpid),
        }
        .set(&mut command);
        let spawned = command.spawn().map_err(|error| {
            // It took the terminal before it turned out that it cannot begin.
            plan.terminal.inspect(|terminal| terminal.take());
            failed(&error)
        });
        // With the command go our copies of what it keeps, so that the pipe can end.
        drop(command);
        let process = i32::try_from(spawned?.id()).ok().and_then(Pid::from_raw);
        let process = process.expect("a process has a number");
        Ok(Self { process, before: plan.before, others, hung_up: false })
    }

    /// Its process, and the group that it leads.
    pub(crate) fn process(&self) -> Pid {
        self.process
    }

    /// What has become of it since the last look, if anything. Its end is there to be seen again
    /// and again, until it is buried: so long nobody else has its number, nor that of its group.
    pub(crate) fn change(&self) -> Option<Change> {
        let look = |options| waitid(WaitId::Pid(self.process), options | WaitIdOptions::NOHANG);
        match look(WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(None) => {}
            Ok(Some(status)) => return ended(&status),
            // Whoever took it away did not say how it ended.
            Err(rustix::io::Errno::CHILD) => return Some(Change::Exited(exit::SYSTEM)),
            Err(_) => return None,
        }
        let status = look(WaitIdOptions::STOPPED | WaitIdOptions::CONTINUED).ok()??;
        let stopped = status.stopping_signal().map(Change::Stopped);
        stopped.or_else(|| status.continued().then_some(Change::Continued))
    }

    /// Send a signal to the command and all of its group.
    pub(crate) fn signal(&self, signal: Signal) {
        let group = nix::unistd::Pid::from_raw(self.process.as_raw_nonzero().get());
        // The group is there until its leader is buried; the command may have left it.
        if killpg(group, signal).is_err() || signal == Signal::SIGKILL {
            let _ = kill(group, signal);
        }
    }

    /// Send SIGHUP to the command and its group, once. Returns false if that was done before.
    pub(crate) fn hang_up(&mut self) -> bool {
        let first = !std::mem::replace(&mut self.hung_up, true);
        if first {
            self.signal(Signal::SIGHUP);
        }
        first
    }

    /// It has ended, and we know how.
    pub(crate) fn bury(&self) {
        let _ = waitid(WaitId::Pid(self.process), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    }

    /// Have this new descriptor of the session kept open for as long as the old one would have
    /// been: the command has only the one that it was started with.
    pub(crate) fn keep(&self, session: BorrowedFd<'_>) -> io::Result<()> {
        let Some(others) = &self.others else { return Ok(()) };
        // It reads nothing until the last one that could write is gone, and ends then.
        let mut keeper = Command::new("cat");
        keeper.stdin(others.try_clone()?).stdout(Stdio::null()).stderr(Stdio::null());
        keeper.current_dir("/");
        let keeps = vec![session.try_clone_to_owned()?];
        let before = self.before;
        BeforeExec { before, terminal: None, keeps, dies_with: None }.set(&mut keeper);
        keeper.spawn().map(drop)
    }

    /// Does any process that came out of the command still have the session's descriptor?
    pub(crate) fn left_others(&self) -> bool {
        let Some(others) = &self.others else { return false };
        let mut look = [PollFd::new(others, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut look, Some(&now)).is_ok_and(|ended| ended == 0)
    }
}

fn ended(status: &WaitIdStatus) -> Option<Change> {
    let exited = status.exit_status().map(|code| Change::Exited(code as u8));
    exited.or_else(|| status.terminating_signal().map(Change::Killed))
}

fn cannot_run(program: &OsString, error: &io::Error) -> Exit {
    let code = match error.kind() {
        ErrorKind::NotFound => exit::NOT_FOUND,
        ErrorKind::OutOfMemory | ErrorKind::WouldBlock => exit::SYSTEM,
        _ => exit::CANNOT_RUN,
    };
    Exit::new(code, format!("cannot run {}: {error}", program.display()))
}
