//! The signals of this process, read from a descriptor like everything else that happens.
//!
//! They are blocked from the first moment on, so that none is lost between two looks, and so that
//! nothing interrupts what is half done. The command that is run gets the mask that we were given.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, SigmaskHow, Signal, raise};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::child::hear_of_children;

/// Those that are not ours to read: two that nobody can, those that a fault of our own raises at
/// the place where it happened, and those that are ignored or sent because writes say the same.
/// Nor are those of real time, for which the standard library has no word.
const OTHERS: [Signal; 10] = [
    Signal::SIGKILL,
    Signal::SIGSTOP,
    Signal::SIGSEGV,
    Signal::SIGBUS,
    Signal::SIGFPE,
    Signal::SIGILL,
    Signal::SIGTRAP,
    Signal::SIGSYS,
    Signal::SIGPIPE,
    Signal::SIGXFSZ,
];

/// What we were started with, and a command gets.
#[derive(Clone, Copy)]
pub(crate) struct InheritedSignals {
    /// The signals that were blocked.
    pub(crate) mask: SigSet,
    /// The ends of children were not heard of.
    pub(crate) deaf: bool,
}

/// The signals of this process.
pub(crate) struct Signals {
    descriptor: SignalFd,
    before: InheritedSignals,
}

impl Signals {
    /// Block them all and read them from now on.
    pub(crate) fn read_all() -> nix::Result<Self> {
        let mut ours = SigSet::empty();
        Signal::iterator().filter(|signal| !OTHERS.contains(signal)).for_each(|signal| {
            ours.add(signal);
        });
        let mask = ours.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let before = InheritedSignals { mask, deaf: hear_of_children()? };
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Self { descriptor: SignalFd::with_flags(&ours, flags)?, before })
    }

    /// The next one, if there is one.
    ///
    /// One that we were started to ignore, as under nohup(1), is ignored: we read it only because
    /// it is blocked.
    pub(crate) fn next(&self) -> Option<Signal> {
        loop {
            let info = self.descriptor.read_signal().ok()??;
            let signal = Signal::try_from(info.ssi_signo.cast_signed()).ok()?;
            if effect(signal) == Effect::Nothing || !is_listed("SigIgn:", signal) {
                return Some(signal);
            }
        }
    }

    /// Has this signal come, and is still to be read?
    pub(crate) fn is_pending(signal: Signal) -> bool {
        ["SigPnd:", "ShdPnd:"].iter().any(|list| is_listed(list, signal))
    }

    /// What a command gets.
    pub(crate) fn before(&self) -> InheritedSignals {
        self.before
    }
}

/// Does the system list this signal for us there?
fn is_listed(list: &str, signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix(list));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal as i32 - 1) & 1 == 1
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

/// Let a signal that came to us do what it does by itself, but for the end: that is the caller's,
/// who has something to give back. Is it the end?
#[must_use]
pub(crate) fn react(signal: Signal) -> bool {
    let effect = effect(signal);
    if effect == Effect::Stops {
        take(signal);
    }
    effect == Effect::Ends
}

/// Let this signal do to us what it does by itself. Where it stops us, this returns when someone
/// continues us, or at once where nobody could.
pub(crate) fn take(signal: Signal) {
    let mut only = SigSet::empty();
    only.add(signal);
    // A signal that exists can be raised, unblocked and blocked: there is no error to report. It is
    // raised while it is blocked, so that it counts once if it has come to our group as well.
    let _ = raise(signal);
    let _ = only.thread_unblock();
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
