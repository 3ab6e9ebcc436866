//! The command that runs while the lock is held, in a process group of its own.

mod before_exec;
mod quick;

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

/// How to run a command.
pub(crate) struct Plan<'a> {
    /// The command and its arguments.
    pub(crate) words: &'a [OsString],
    /// Variables that are added to its environment.
    pub(crate) variables: Vec<(&'static str, String)>,
    /// How this process handled signals when it was started. The command starts the same way.
    pub(crate) before: InheritedSignals,
    /// The terminal, if the command should be in its foreground from the start.
    pub(crate) terminal: Option<&'a Terminal>,
    /// The descriptor of the session, which the command inherits. Without one, the command is
    /// killed when this process ends.
    pub(crate) session: Option<BorrowedFd<'a>>,
    /// The socket by which a node that was restarted sees that the command exists.
    pub(crate) holder: Option<BorrowedFd<'a>>,
}

/// The running command.
pub(crate) struct Child {
    process: Pid,
    before: InheritedSignals,
    /// A pipe that the command and its descendants inherit. It reaches its end when the last of
    /// them has ended. None if the command inherits no descriptors.
    others: Option<OwnedFd>,
    /// True once the command has been sent SIGHUP.
    hung_up: bool,
}

/// A change of the command's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The command ended with this exit code.
    Exited(u8),
    /// This signal ended the command.
    Killed(i32),
    /// This signal stopped the command.
    Stopped(i32),
    /// The command was continued.
    Continued,
}

impl Child {
    /// Start the command.
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
            if let Some(holder) = plan.holder {
                keeps.push(holder.try_clone_to_owned().map_err(|error| failed(&error))?);
            }
        }
        if plan.session.is_some()
            && !Terminal::exists()
            && let Some(process) = quick::spawn(plan.words, &plan.variables, &keeps, plan.before)
        {
            return Ok(Self { process, before: plan.before, others, hung_up: false });
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
            // The child took the terminal before exec failed.
            plan.terminal.inspect(|terminal| terminal.take());
            failed(&error)
        });
        // This closes our copies of the inherited descriptors, so that the pipe can reach its end.
        drop(command);
        let process = i32::try_from(spawned?.id()).ok().and_then(Pid::from_raw);
        let process = process.expect("a process has a number");
        Ok(Self { process, before: plan.before, others, hung_up: false })
    }

    /// The process id of the command, which is also that of its process group.
    pub(crate) fn process(&self) -> Pid {
        self.process
    }

    /// The change since the last call, if there was one.
    ///
    /// The end of the command is returned again and again until [`Self::bury`] reaps it. Until then
    /// no other process can get its process id or that of its group.
    pub(crate) fn change(&self) -> Option<Change> {
        let look = |options| waitid(WaitId::Pid(self.process), options | WaitIdOptions::NOHANG);
        match look(WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(None) => {}
            Ok(Some(status)) => return ended(&status),
            // Something else has reaped the child, so its exit code is unknown.
            Err(rustix::io::Errno::CHILD) => return Some(Change::Exited(exit::SYSTEM)),
            Err(_) => return None,
        }
        let status = look(WaitIdOptions::STOPPED | WaitIdOptions::CONTINUED).ok()??;
        let stopped = status.stopping_signal().map(Change::Stopped);
        stopped.or_else(|| status.continued().then_some(Change::Continued))
    }

    /// Send a signal to the command and its process group.
    pub(crate) fn signal(&self, signal: Signal) {
        let group = nix::unistd::Pid::from_raw(self.process.as_raw_nonzero().get());
        // The group exists until its leader is reaped, but the command may have left it.
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

    /// Reap the command, which has ended.
    pub(crate) fn bury(&self) {
        let _ = waitid(WaitId::Pid(self.process), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    }

    /// Keep this new descriptor of the session open until the last process of the command has
    /// ended.
    ///
    /// The command has inherited only the descriptor of the first connection. A `cat` inherits the
    /// new one and ends together with the command's processes.
    pub(crate) fn keep(&self, session: BorrowedFd<'_>) -> io::Result<()> {
        let Some(others) = &self.others else { return Ok(()) };
        // Nobody writes to the pipe: `cat` blocks until its last writer has ended, and ends then.
        let mut keeper = Command::new("cat");
        keeper.stdin(others.try_clone()?).stdout(Stdio::null()).stderr(Stdio::null());
        keeper.current_dir("/");
        let keeps = vec![session.try_clone_to_owned()?];
        let before = self.before;
        BeforeExec { before, terminal: None, keeps, dies_with: None }.set(&mut keeper);
        keeper.spawn().map(drop)
    }

    /// True if a process of the command still has the descriptor of the session.
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
