//! A terminal with a program in it, and someone who types and reads.

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
    /// What has been shown and not yet been expected.
    shown: String,
}

impl Pty {
    /// A shell in a terminal of its own, with job control; `doorway` uses the node of this place.
    pub(crate) fn shell(place: &Place) -> Self {
        let mut pty = Self::new(place, &["bash", "--norc", "--noprofile", "-i"]);
        pty.expect("$ ");
        pty
    }

    /// A program in a terminal of its own.
    pub(crate) fn new(place: &Place, words: &[&str]) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags).expect("a terminal");
        grantpt(&ours).expect("it is ours");
        unlockpt(&ours).expect("it can be opened");
        let size = Winsize { ws_row: 24, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&ours, size).expect("it has a size");
        let name = ptsname(&ours, Vec::new()).expect("it has a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let theirs = open(name, flags, Mode::empty()).expect("its other side");
        let stdio = || Stdio::from(theirs.try_clone().expect("a descriptor"));
        // It makes its standard input the terminal that controls the program.
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait"]).args(words).stdin(stdio()).stdout(stdio());
        command.stderr(stdio()).env("DOORWAY_SOCKET", place.socket()).env("TERM", "dumb");
        command.env("PS1", "$ ").env("D", crate::place::DOORWAY).current_dir(&place.directory);
        let program = command.spawn().expect("setsid(1) of util-linux runs");
        Self { ours: File::from(ours), program, shown: String::new() }
    }

    /// Type this.
    pub(crate) fn type_in(&mut self, text: &str) {
        self.ours.write_all(text.as_bytes()).expect("someone reads");
    }

    /// Wait until this is shown; what was shown up to there is returned.
    pub(crate) fn expect(&mut self, text: &str) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.shown.find(text) {
                let rest = self.shown.split_off(at + text.len());
                return std::mem::replace(&mut self.shown, rest);
            }
            let mut look = [PollFd::new(&self.ours, PollFlags::IN)];
            let while_ = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
            if poll(&mut look, Some(&while_)).expect("a descriptor") > 0 {
                let mut bytes = [0; 4096];
                let count = self.ours.read(&mut bytes).unwrap_or(0);
                self.shown.push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
            assert!(Instant::now() < end, "not shown: {text:?} but {:?}", self.shown);
        }
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
