//! The whole terminal for a live display: the alternate screen, and keys without Enter.

use std::io::{self, IsTerminal as _, Write as _};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::getpgrp;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};

/// Switches to the alternate screen and hides the cursor.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l";

/// Shows the cursor and what the terminal showed before.
const LEAVE: &[u8] = b"\x1b[?25h\x1b[?1049l";

/// The alternate screen. It is left when this is dropped.
pub(crate) struct Screen {
    /// The modes of the terminal before, if keys are read from it.
    modes: Option<Termios>,
}

impl Screen {
    /// Switch to the alternate screen, and read single keys if standard input is the terminal.
    pub(crate) fn enter() -> Self {
        write(ENTER);
        // A job in the background must not change the modes of the one in the foreground.
        let stdin = io::stdin();
        let in_front = tcgetpgrp(&stdin).is_ok_and(|group| group == getpgrp());
        let modes = (stdin.is_terminal() && in_front).then(|| tcgetattr(&stdin).ok()).flatten();
        if let Some(before) = &modes {
            let mut keys = before.clone();
            keys.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
            // Without this mode keys are read after Enter, which does no harm.
            let _ = tcsetattr(&stdin, OptionalActions::Now, &keys);
        }
        Self { modes }
    }

    /// True if the terminal's keys are read.
    pub(crate) fn has_keys(&self) -> bool {
        self.modes.is_some()
    }

    /// True if the user has pressed `q`, or the terminal is gone.
    pub(crate) fn is_quit(&self) -> bool {
        if !self.has_keys() {
            return false;
        }
        let stdin = io::stdin();
        let mut look = [PollFd::new(&stdin, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        if !poll(&mut look, Some(&now)).is_ok_and(|ready| ready > 0) {
            return false;
        }
        let mut keys = [0; 64];
        match rustix::io::read(&stdin, &mut keys) {
            Ok(0) | Err(_) => true,
            Ok(count) => keys[..count].iter().any(|key| matches!(key, b'q' | b'Q')),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if let Some(before) = &self.modes {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
        write(LEAVE);
    }
}

/// Write to the terminal. If it is gone, the next frame will fail.
fn write(bytes: &[u8]) {
    let mut stdout = io::stdout();
    let _ = stdout.write_all(bytes).and_then(|()| stdout.flush());
}
