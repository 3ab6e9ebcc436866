//! The terminal, and which process group has it.
//!
//! A command in a process group of its own would be stopped when it reads from the terminal or
//! changes its modes: so it gets the terminal, like a job of a shell, and we take it back whenever
//! the command has ended or stopped.

use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::process::{Pid, getpgrp};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// The terminal that controls us.
pub(crate) struct Terminal {
    descriptor: File,
}

impl Terminal {
    /// The terminal that controls us, if there is one.
    ///
    /// Where none of the standard descriptors is a terminal nobody is there to type: then it is not
    /// looked for, which costs nothing.
    pub(crate) fn ours() -> Option<Self> {
        let standard = [io::stdin().is_terminal(), io::stderr().is_terminal()];
        if !standard.contains(&true) && !io::stdout().is_terminal() {
            return None;
        }
        let descriptor = File::options().read(true).write(true).open("/dev/tty").ok()?;
        Some(Self { descriptor })
    }

    /// Is the terminal that of our group?
    pub(crate) fn is_ours(&self) -> bool {
        self.has(getpgrp())
    }

    /// Is the terminal that of this group?
    pub(crate) fn has(&self, group: Pid) -> bool {
        tcgetpgrp(&self.descriptor).is_ok_and(|has| has == group)
    }

    /// Does the command talk to a person? Then it is to have the terminal from the beginning. In
    /// `doorway run x -- make | less` it does not, and `less` is the one who needs it.
    pub(crate) fn is_talked_to(&self) -> bool {
        self.is_ours() && io::stdin().is_terminal() && io::stdout().is_terminal()
    }

    /// Give it to this group. Those who are not in the foreground may do that because we block the
    /// signal that would stop us.
    pub(crate) fn give(&self, group: Pid) {
        // It fails when the terminal has hung up: then nobody has it.
        let _ = tcsetpgrp(&self.descriptor, group);
    }

    /// Take it back.
    pub(crate) fn take(&self) {
        self.give(getpgrp());
    }

    /// Take it back from this group, if that has it.
    pub(crate) fn take_from(&self, group: Pid) -> bool {
        let had = self.has(group);
        if had {
            self.take();
        }
        had
    }

    /// Its descriptor, for the command to take the terminal before it begins.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
