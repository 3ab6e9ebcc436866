//! A terminal with a program in it, for a test that types and reads.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::place::{PATIENCE, Place, children, signal_group};

/// A terminal.
pub(crate) struct Pty {
    ours: File,
    program: Child,
    /// What the program has written since the last text that the test waited for.
    shown: String,
}

impl Pty {
    /// A shell in a terminal of its own, with job control; `doorway` uses the node of this place.
    pub(crate) fn shell(place: &Place) -> Self {
        let mut pty = Self::new(place, &["bash", "--norc", "--noprofile", "-i"], 200);
        pty.expect("$ ");
        pty
    }

    /// A program in a terminal of its own, with this many columns.
    pub(crate) fn new(place: &Place, words: &[&str], columns: u16) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags).expect("a terminal");
        grantpt(&ours).expect("the terminal belongs to this process");
        unlockpt(&ours).expect("the terminal can be opened");
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&ours, size).expect("the terminal has a size");
        let name = ptsname(&ours, Vec::new()).expect("the terminal has a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let theirs = open(name, flags, Mode::empty()).expect("the other side opens");
        let stdio = || Stdio::from(theirs.try_clone().expect("a descriptor"));
        // setsid(1) makes its standard input the controlling terminal of the program.
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait"]).args(words).stdin(stdio()).stdout(stdio());
        command.stderr(stdio()).env("DOORWAY_SOCKET", place.socket()).env("TERM", "dumb");
        command.env("PS1", "$ ").env("D", crate::place::DOORWAY).current_dir(&place.directory);
        let program = command.spawn().expect("setsid(1) of util-linux runs");
        Self { ours: File::from(ours), program, shown: String::new() }
    }

    /// Type this text.
    pub(crate) fn type_in(&mut self, text: &str) {
        self.ours.write_all(text.as_bytes()).expect("the program reads");
    }

    /// Wait until this text is shown, and return everything that was shown up to its end.
    pub(crate) fn expect(&mut self, text: &str) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.shown.find(text) {
                let rest = self.shown.split_off(at + text.len());
                return std::mem::replace(&mut self.shown, rest);
            }
            let mut look = [PollFd::new(&self.ours, PollFlags::IN)];
            let moment = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
            if poll(&mut look, Some(&moment)).expect("a descriptor") > 0 {
                let mut bytes = [0; 4096];
                let count = self.ours.read(&mut bytes).unwrap_or(0);
                self.shown.push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
            assert!(Instant::now() < end, "not shown: {text:?} but {:?}", self.shown);
        }
    }

    /// Wait for the shell's prompt, and check the exit code of the last command.
    pub(crate) fn expect_exit_code(&mut self, code: i32) {
        self.expect("$ ");
        self.type_in("echo code-$?\n");
        self.expect(&format!("code-{code}\r\n"));
    }

    /// Type a line, which a `cat` in the foreground repeats.
    pub(crate) fn expect_echo(&mut self, line: &str) {
        self.type_in(&format!("{line}\n"));
        self.expect(&format!("{line}\r\n{line}"));
    }

    /// Stop the job in the foreground with Ctrl-Z, and wait for the shell's prompt.
    pub(crate) fn stop_job(&mut self) {
        self.type_in("\x1a");
        self.expect("Stopped");
        self.expect("$ ");
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        for child in children(self.program.id()) {
            for grandchild in children(child) {
                for one in children(grandchild) {
                    signal_group(one, "KILL");
                }
                signal_group(grandchild, "KILL");
            }
            signal_group(child, "KILL");
        }
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}
