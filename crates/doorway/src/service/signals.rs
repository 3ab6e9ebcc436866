//! The signals of this process, read from a descriptor like everything else that happens.
//!
//! They are blocked from the first moment on, so that none is lost between two looks, and so that
//! nothing interrupts what is half done. The command that is run gets the mask that we were given.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, SigmaskHow, Signal, raise};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Those that are not ours to read: two that nobody can, those that a fault of our own raises at
/// the place where it happened, the one that is ignored because writes say the same, and those that
/// a limit of the system sends to whoever exceeds it.
const OTHERS: [Signal; 12] = [
    Signal::SIGKILL,
    Signal::SIGSTOP,
    Signal::SIGSEGV,
    Signal::SIGBUS,
    Signal::SIGFPE,
    Signal::SIGILL,
    Signal::SIGTRAP,
    Signal::SIGABRT,
    Signal::SIGSYS,
    Signal::SIGPIPE,
    Signal::SIGXCPU,
    Signal::SIGXFSZ,
];

/// The signals of this process.
pub(crate) struct Signals {
    descriptor: SignalFd,
    /// The mask that we were started with.
    before: SigSet,
}

impl Signals {
    /// Block them all and read them from now on.
    pub(crate) fn read_all() -> nix::Result<Self> {
        let mut ours = SigSet::empty();
        Signal::iterator().filter(|signal| !OTHERS.contains(signal)).for_each(|signal| {
            ours.add(signal);
        });
        let before = ours.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Self { descriptor: SignalFd::with_flags(&ours, flags)?, before })
    }

    /// The next one, if there is one.
    pub(crate) fn next(&self) -> Option<Signal> {
        loop {
            let info = self.descriptor.read_signal().ok()??;
            // What the standard library has no word for (those of real time) is not blocked.
            if let Ok(signal) = Signal::try_from(info.ssi_signo.cast_signed()) {
                return Some(signal);
            }
        }
    }

    /// Were we started with this signal ignored, as under nohup(1)? Blocked as it is, we read it
    /// all the same.
    pub(crate) fn is_ignored(signal: Signal) -> bool {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
        mask >> (signal as i32 - 1) & 1 == 1
    }

    /// The mask that a command gets.
    pub(crate) fn before(&self) -> SigSet {
        self.before
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// What a signal does to a program that does nothing about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It ends.
    Ends,
    /// It stops until it is continued.
    Stops,
    /// Nothing.
    Nothing,
}

/// What this signal does to a program that does nothing about it.
pub(crate) fn effect(signal: Signal) -> Effect {
    match signal {
        Signal::SIGTSTP | Signal::SIGTTIN | Signal::SIGTTOU => Effect::Stops,
        Signal::SIGCHLD | Signal::SIGCONT | Signal::SIGWINCH | Signal::SIGURG => Effect::Nothing,
        _ => Effect::Ends,
    }
}

/// Let this signal do to us what it does by itself. Where it stops us, this returns when someone
/// continues us, or at once where nobody could.
pub(crate) fn take(signal: Signal) {
    let mut only = SigSet::empty();
    only.add(signal);
    // A signal that exists can be unblocked, blocked and raised: there is no error to report.
    let _ = only.thread_unblock();
    let _ = raise(signal);
    let _ = only.thread_block();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_a_program_is_told_from_what_does_not() {
        for (signal, expected) in [
            (Signal::SIGTERM, Effect::Ends),
            (Signal::SIGUSR1, Effect::Ends),
            (Signal::SIGTSTP, Effect::Stops),
            (Signal::SIGWINCH, Effect::Nothing),
            (Signal::SIGCONT, Effect::Nothing),
        ] {
            assert_eq!(effect(signal), expected, "{signal}");
        }
    }
}
