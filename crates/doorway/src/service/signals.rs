//! The signals of this process, read from a descriptor in the event loop.
//!
//! Signals are blocked from the start, so that none is lost between two reads and none interrupts
//! the program in the middle of something. The command gets the signal mask that this process was
//! started with.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, SigmaskHow, Signal, raise};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::child::hear_of_children;

/// Signals that are left alone: two that cannot be blocked, those that a fault of this process
/// raises, and two that a failed write reports anyway.
///
/// Real-time signals are left alone as well: [`Signal`] has no names for them.
const UNREAD: [Signal; 10] = [
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

/// How this process handled signals when it was started. The command starts the same way.
#[derive(Clone, Copy)]
pub(crate) struct InheritedSignals {
    /// Which signals were blocked.
    pub(crate) mask: SigSet,
    /// True if SIGCHLD was ignored.
    pub(crate) ignored_children: bool,
}

/// The signals of this process.
pub(crate) struct Signals {
    descriptor: SignalFd,
    before: InheritedSignals,
}

impl Signals {
    /// Block all signals, and read them from now on.
    pub(crate) fn read_all() -> nix::Result<Self> {
        let mut ours = SigSet::empty();
        Signal::iterator().filter(|signal| !UNREAD.contains(signal)).for_each(|signal| {
            ours.add(signal);
        });
        let mask = ours.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let before = InheritedSignals { mask, ignored_children: hear_of_children()? };
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Self { descriptor: SignalFd::with_flags(&ours, flags)?, before })
    }

    /// The next signal, if one has come.
    ///
    /// A signal that this process was started to ignore, as with nohup(1), is passed over: the
    /// descriptor reports it only because it is blocked.
    pub(crate) fn next(&self) -> Option<Signal> {
        loop {
            let info = self.descriptor.read_signal().ok()??;
            let signal = Signal::try_from(info.ssi_signo.cast_signed()).ok()?;
            if effect(signal) == Effect::Nothing || !is_listed("SigIgn:", signal) {
                return Some(signal);
            }
        }
    }

    /// True if this signal has come and has not been read yet.
    pub(crate) fn is_pending(signal: Signal) -> bool {
        ["SigPnd:", "ShdPnd:"].iter().any(|list| is_listed(list, signal))
    }

    /// How this process handled signals when it was started.
    pub(crate) fn before(&self) -> InheritedSignals {
        self.before
    }

    /// Read no more signals, and block only those that were blocked when this process was started.
    /// A signal that has come and was not read has its effect now.
    pub(crate) fn hand_back(self) -> nix::Result<()> {
        let Self { descriptor, before } = self;
        drop(descriptor);
        before.mask.thread_set_mask()
    }
}

/// True if this line of `/proc/self/status` lists the signal.
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

/// What a signal does to a process that does not handle it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The process ends.
    Ends,
    /// The process stops until it is continued.
    Stops,
    /// Nothing.
    Nothing,
}

/// What this signal does to a process that does not handle it.
pub(crate) fn effect(signal: Signal) -> Effect {
    match signal {
        Signal::SIGTSTP | Signal::SIGTTIN | Signal::SIGTTOU => Effect::Stops,
        Signal::SIGCHLD | Signal::SIGCONT | Signal::SIGWINCH | Signal::SIGURG => Effect::Nothing,
        _ => Effect::Ends,
    }
}

/// React to a signal as a process does that does not handle it, except that this does not end the
/// process: the caller may have locks to give back. Returns true if the caller has to end.
#[must_use]
pub(crate) fn react(signal: Signal) -> bool {
    let effect = effect(signal);
    if effect == Effect::Stops {
        take(signal);
    }
    effect == Effect::Ends
}

/// Let this signal have its default effect on this process. If it stops the process, this returns
/// when the process is continued, or at once if its group is orphaned and cannot be stopped.
pub(crate) fn take(signal: Signal) {
    let mut only = SigSet::empty();
    only.add(signal);
    // These calls fail only for signals that do not exist. The signal is raised while it is
    // blocked: if it was sent to the whole group as well, the two are merged into one.
    let _ = raise(signal);
    let _ = only.thread_unblock();
    let _ = only.thread_block();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_that_end_a_process_are_distinguished_from_others() {
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
