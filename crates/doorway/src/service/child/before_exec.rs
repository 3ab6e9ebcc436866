//! What a child process does between fork and exec, with unsafe code.
#![allow(unsafe_code, reason = "`pre_exec` runs a function in the forked child")]

use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, sigaction, signal};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, getpgrp, getppid, set_parent_process_death_signal, setpgid};
use rustix::termios::tcsetpgrp;

use crate::service::signals::InheritedSignals;

/// What the child process does before it becomes the command.
pub(super) struct BeforeExec {
    /// How this process handled signals when it was started. The command starts the same way.
    pub(super) before: InheritedSignals,
    /// The terminal to put the child's process group in the foreground of, if it should be there.
    pub(super) terminal: Option<OwnedFd>,
    /// Descriptors that the command inherits.
    pub(super) keeps: Vec<OwnedFd>,
    /// The parent process with which the command is killed, if it should be.
    pub(super) dies_with: Option<Pid>,
}

impl BeforeExec {
    /// Do this when the command is spawned.
    pub(super) fn set(self, command: &mut Command) {
        let steps = move || self.steps().map_err(Into::into);
        // SAFETY: between fork and exec only calls that are safe in a signal handler are allowed.
        // The steps are only system calls: they allocate nothing, take no lock, and do not panic.
        // They read no variable that another thread could have been writing, since there is no
        // other thread. The values that they use were made before the fork and live as long as the
        // command.
        unsafe { command.pre_exec(steps) };
    }

    fn steps(&self) -> rustix::io::Result<()> {
        setpgid(None, None)?;
        if let Some(terminal) = &self.terminal {
            // Without the terminal the command still runs; if it needs one, it is stopped.
            let _ = tcsetpgrp(terminal, getpgrp());
        }
        for kept in &self.keeps {
            fcntl_setfd(kept, FdFlags::empty())?;
        }
        if let Some(parent) = self.dies_with {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have ended before that call.
            if getppid() != Some(parent) {
                return Err(rustix::io::Errno::SRCH);
            }
        }
        hand_back_stops().and_then(|()| hand_on(self.before)).map_err(errno)
    }
}

fn errno(error: nix::Error) -> rustix::io::Errno {
    rustix::io::Errno::from_raw_os_error(error as i32)
}

/// Receive SIGCHLD when a child ends. Returns true if SIGCHLD was ignored until now.
///
/// A process inherits ignored signals from its parent. With SIGCHLD ignored, a command that ends
/// would vanish without its exit code.
pub(crate) fn hear_of_children() -> nix::Result<bool> {
    // SAFETY: this restores the default effect of the signal and sets no handler.
    let before = unsafe { signal(nix::sys::signal::SIGCHLD, SigHandler::SigDfl)? };
    Ok(matches!(before, SigHandler::SigIgn))
}

/// Handle signals in the child as this process did when it was started.
fn hand_on(before: InheritedSignals) -> nix::Result<()> {
    if before.ignored_children {
        // SAFETY: this ignores the signal and sets no handler.
        unsafe { signal(nix::sys::signal::SIGCHLD, SigHandler::SigIgn)? };
    }
    before.mask.thread_set_mask()
}

/// Send SIGTSTP back to the parent if it comes before exec.
///
/// The user may press Ctrl-Z before the child has become the command. If the child were stopped
/// here, the parent would wait for its exec forever, and nobody would continue it. The parent
/// forwards the signal to the command once it runs. Exec removes this handler.
fn hand_back_stops() -> nix::Result<()> {
    extern "C" fn hand_back(signal: libc::c_int) {
        if let Ok(signal) = nix::sys::signal::Signal::try_from(signal) {
            let _ = nix::sys::signal::kill(nix::unistd::getppid(), signal);
        }
    }
    let handler = SigHandler::Handler(hand_back);
    let ours = SigAction::new(handler, SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler makes only system calls, and nothing else here handles this signal. If
    // the signal was ignored it is ignored again, because a command inherits that.
    unsafe {
        let before = sigaction(nix::sys::signal::SIGTSTP, &ours)?;
        if matches!(before.handler(), SigHandler::SigIgn) {
            sigaction(nix::sys::signal::SIGTSTP, &before)?;
        }
    }
    Ok(())
}

/// Start a command detached from this process: in a session of its own, with no descriptors but the
/// standard ones, and with no signal blocked.
pub(crate) fn detach(command: &mut Command) {
    let steps = || {
        rustix::process::setsid()?;
        let (first, last) = (3, u32::MAX);
        // SAFETY: a system call that takes only numbers. It marks descriptors to be closed at exec.
        // Nothing uses them between here and exec, except for one of the standard library, which is
        // closed at exec anyway. On a kernel that does not know the call nothing happens.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, libc::CLOSE_RANGE_CLOEXEC) };
        Ok(SigSet::empty().thread_set_mask()?)
    };
    // SAFETY: as above, only system calls.
    unsafe { command.pre_exec(steps) };
}

/// Start a command with the signals handled as when this process was started.
pub(crate) fn restore(command: &mut Command, before: InheritedSignals) {
    let steps = move || Ok(hand_on(before)?);
    // SAFETY: as above, only system calls.
    unsafe { command.pre_exec(steps) };
}
