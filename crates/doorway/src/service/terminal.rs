//! The controlling terminal, and which process group is in its foreground.
//!
//! The command has a process group of its own. In the background it would be stopped as soon as it
//! reads from the terminal or changes its modes. So it is put in the foreground, as a shell does
//! with a job, and this process takes the terminal back when the command has ended or stopped.

use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::process::{Pid, getpgrp};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// The controlling terminal.
pub(crate) struct Terminal {
    descriptor: File,
}

impl Terminal {
    /// The controlling terminal of this process, if there is one.
    ///
    /// If none of the standard descriptors is a terminal there is no user to type, and this does
    /// not look for one.
    pub(crate) fn ours() -> Option<Self> {
        let standard = [io::stdin().is_terminal(), io::stderr().is_terminal()];
        if !standard.contains(&true) && !io::stdout().is_terminal() {
            return None;
        }
        let descriptor = File::options().read(true).write(true).open("/dev/tty").ok()?;
        Some(Self { descriptor })
    }

    /// True if this process has a terminal.
    pub(crate) fn exists() -> bool {
        File::open("/dev/tty").is_ok()
    }

    /// True if the process group of this process is in the foreground.
    pub(crate) fn is_ours(&self) -> bool {
        self.has(getpgrp())
    }

    /// True if this process group is in the foreground.
    pub(crate) fn has(&self, group: Pid) -> bool {
        tcgetpgrp(&self.descriptor).is_ok_and(|has| has == group)
    }

    /// True if the command should be in the foreground from the start: if this process is, and
    /// standard input and output are terminals.
    ///
    /// In `doorway run x -- make | less` standard output is a pipe, and `less` needs the terminal.
    pub(crate) fn is_interactive(&self) -> bool {
        self.is_ours() && io::stdin().is_terminal() && io::stdout().is_terminal()
    }

    /// Put this process group in the foreground.
    ///
    /// A process in the background may do this too, because SIGTTOU is blocked.
    pub(crate) fn give(&self, group: Pid) {
        // This fails if the terminal has hung up. Then there is no foreground.
        let _ = tcsetpgrp(&self.descriptor, group);
    }

    /// Put this process in the foreground.
    pub(crate) fn take(&self) {
        self.give(getpgrp());
    }

    /// Put this process in the foreground if the given group is there. Returns true if it was.
    pub(crate) fn take_from(&self, group: Pid) -> bool {
        let had = self.has(group);
        if had {
            self.take();
        }
        had
    }

    /// The descriptor, with which a child puts itself in the foreground before exec.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
