//! The command that runs under the lock: a process group of its own.

mod before_exec;

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::{Command, Stdio};

use nix::sys::signal::{SigSet, Signal, kill, killpg};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitOptions, getpid, waitpid};

use super::exit::{self, Exit};
use super::terminal::Terminal;
use before_exec::BeforeExec;
pub(crate) use before_exec::{detach, restore};

/// What is to be run, and how.
pub(crate) struct Plan<'a> {
    /// The command and its arguments.
    pub(crate) words: &'a [OsString],
    /// What it finds in its environment besides ours.
    pub(crate) variables: Vec<(&'static str, String)>,
    /// The mask of signals it gets.
    pub(crate) mask: SigSet,
    /// The terminal, if it is to have it from the beginning.
    pub(crate) terminal: Option<&'a Terminal>,
    /// The session's descriptor, which the command keeps open; without it the command dies with
    /// us.
    pub(crate) session: Option<BorrowedFd<'a>>,
}

/// The command while it runs.
pub(crate) struct Child {
    process: Pid,
    /// Ends when the last process that came out of the command is gone. None if the command got no
    /// descriptor of ours.
    others: Option<OwnedFd>,
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
            mask: plan.mask,
            terminal: terminal.transpose().map_err(|error| failed(&error))?,
            keeps,
            dies_with: plan.session.is_none().then(getpid),
        }
        .set(&mut command);
        let spawned = command.spawn().map_err(|error| failed(&error));
        // With the command go our copies of what it keeps, so that the pipe can end.
        drop(command);
        let process = i32::try_from(spawned?.id()).ok().and_then(Pid::from_raw);
        let process = process.expect("a process has a number");
        Ok(Self { process, others })
    }

    /// Its process, and the group that it leads.
    pub(crate) fn process(&self) -> Pid {
        self.process
    }

    /// What has become of it since the last look, if anything. Once it has ended do not ask again.
    pub(crate) fn change(&self) -> Option<Change> {
        let options = WaitOptions::NOHANG | WaitOptions::UNTRACED | WaitOptions::CONTINUED;
        let (_, status) = waitpid(Some(self.process), options).ok()??;
        status
            .exit_status()
            .map(|code| Change::Exited(code as u8))
            .or_else(|| status.terminating_signal().map(Change::Killed))
            .or_else(|| status.stopping_signal().map(Change::Stopped))
            .or_else(|| status.continued().then_some(Change::Continued))
    }

    /// Send a signal to the command and all of its group.
    pub(crate) fn signal(&self, signal: Signal) {
        let group = nix::unistd::Pid::from_raw(self.process.as_raw_nonzero().get());
        // The group is there until its leader has been waited for; the command may have left it.
        if killpg(group, signal).is_err() {
            let _ = kill(group, signal);
        }
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
        BeforeExec { mask: SigSet::empty(), terminal: None, keeps, dies_with: None }
            .set(&mut keeper);
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

fn cannot_run(program: &OsString, error: &io::Error) -> Exit {
    let code = match error.kind() {
        ErrorKind::NotFound => exit::NOT_FOUND,
        ErrorKind::OutOfMemory | ErrorKind::WouldBlock => exit::SYSTEM,
        _ => exit::CANNOT_RUN,
    };
    Exit::new(code, format!("cannot run {}: {error}", program.display()))
}
