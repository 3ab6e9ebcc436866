//! What happens between fork and exec: the only unsafe code of the command.
#![allow(unsafe_code, reason = "the standard library runs what is set here in the forked child")]

use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, sigaction, signal};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, getpgrp, getppid, set_parent_process_death_signal, setpgid};
use rustix::termios::tcsetpgrp;

use crate::service::signals::InheritedSignals;

/// What the child does to itself before it becomes the command.
pub(super) struct BeforeExec {
    /// What we were started with.
    pub(super) before: InheritedSignals,
    /// Where to take the terminal for the child's group, if it is to have it.
    pub(super) terminal: Option<OwnedFd>,
    /// What the command keeps open.
    pub(super) keeps: Vec<OwnedFd>,
    /// Who started it, if it is to die when that is gone.
    pub(super) dies_with: Option<Pid>,
}

impl BeforeExec {
    /// Have it done when this command is spawned.
    pub(super) fn set(self, command: &mut Command) {
        let steps = move || self.steps().map_err(Into::into);
        // SAFETY: between fork and exec only calls that are safe in a signal handler are allowed.
        // The steps are system calls alone: they allocate nothing, take no lock, read no variable
        // that another thread could have been writing (there is no other thread), and do not
        // panic. What they use was made before the fork and lives as long as the command.
        unsafe { command.pre_exec(steps) };
    }

    fn steps(&self) -> rustix::io::Result<()> {
        setpgid(None, None)?;
        if let Some(terminal) = &self.terminal {
            // Without the terminal the command still runs, and stops if it needs one.
            let _ = tcsetpgrp(terminal, getpgrp());
        }
        for kept in &self.keeps {
            fcntl_setfd(kept, FdFlags::empty())?;
        }
        if let Some(parent) = self.dies_with {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have been gone before that.
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

/// Whoever started us may ignore that its children end, and so would we: a command that ends would
/// vanish without a word. Have the system tell us; did it not until now?
pub(crate) fn hear_of_children() -> nix::Result<bool> {
    // SAFETY: what a signal does by itself is set, no handler of ours.
    let before = unsafe { signal(nix::sys::signal::SIGCHLD, SigHandler::SigDfl)? };
    Ok(matches!(before, SigHandler::SigIgn))
}

/// What we were started with is what a command begins with.
fn hand_on(before: InheritedSignals) -> nix::Result<()> {
    if before.deaf {
        // SAFETY: a signal is ignored, which is no handler of ours.
        unsafe { signal(nix::sys::signal::SIGCHLD, SigHandler::SigIgn)? };
    }
    before.mask.thread_set_mask()
}

/// A key that stops jobs may be pressed before the command has begun. Stopped here, it would keep
/// whoever started it waiting for its beginning, with nobody there to continue it: so the signal is
/// handed back, and comes again when the command runs. The beginning of a command undoes this.
fn hand_back_stops() -> nix::Result<()> {
    extern "C" fn hand_back(signal: libc::c_int) {
        if let Ok(signal) = nix::sys::signal::Signal::try_from(signal) {
            let _ = nix::sys::signal::kill(nix::unistd::getppid(), signal);
        }
    }
    let handler = SigHandler::Handler(hand_back);
    let ours = SigAction::new(handler, SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler makes system calls alone, and the signal is one that has no other use
    // here. One that was ignored stays so, for a command would not be told that otherwise.
    unsafe {
        let before = sigaction(nix::sys::signal::SIGTSTP, &ours)?;
        if matches!(before.handler(), SigHandler::SigIgn) {
            sigaction(nix::sys::signal::SIGTSTP, &before)?;
        }
    }
    Ok(())
}

/// Have a command begin a session of its own, with nothing open but its standard descriptors and no
/// signal blocked, as is fit for what goes on when we are gone.
pub(crate) fn detach(command: &mut Command) {
    let steps = || {
        rustix::process::setsid()?;
        let (first, last) = (3, u32::MAX);
        // SAFETY: a system call with numbers alone. It has descriptors closed when the command
        // begins, which nothing between here and there uses but for the one that the standard
        // library closes then anyway. Where the kernel does not know the call nothing happens.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, libc::CLOSE_RANGE_CLOEXEC) };
        Ok(SigSet::empty().thread_set_mask()?)
    };
    // SAFETY: as above, system calls alone.
    unsafe { command.pre_exec(steps) };
}

/// Have a command begin with what we were started with.
pub(crate) fn restore(command: &mut Command, before: InheritedSignals) {
    let steps = move || Ok(hand_on(before)?);
    // SAFETY: as above, a system call alone.
    unsafe { command.pre_exec(steps) };
}
