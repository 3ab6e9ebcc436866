//! A user of a test's own.
//!
//! The endpoint of a user's node depends on the user id alone. So tests of such a node run under
//! user ids that no real user has, which only root can do, and leave the node of the user who runs
//! them alone.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::place::{DOORWAY, signal};
use crate::skip::skip;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A user id that no real user has, with a copy of the program that it may run.
pub(crate) struct User {
    pub(crate) id: u32,
    pub(crate) directory: PathBuf,
}

impl User {
    /// A new user id; none if the tests do not run as root, or if this machine has a node.
    pub(crate) fn new() -> Option<Self> {
        let root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n");
        if !root || Path::new("/etc/doorway").exists() {
            skip("it needs root, and a machine without /etc/doorway");
            return None;
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let id = 2_000_000 + std::process::id() % 1_000_000 * 16 + number;
        let directory = PathBuf::from(format!("/tmp/doorway-test-{id}"));
        fs::create_dir_all(&directory).expect("a test can do that");
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777))
            .expect("a test can do that");
        // If this process wrote the copy, a process that another test starts meanwhile would
        // inherit the descriptor, and the copy could not be run ("text file busy"). cp(1) writes it
        // instead.
        let copied = Command::new("cp").arg(DOORWAY).arg(&directory).status();
        assert!(copied.is_ok_and(|status| status.success()), "a test can do that");
        Some(Self { id, directory })
    }

    /// A command of this user, with almost nothing in its environment.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        let id = self.id.to_string();
        command.args(["--reuid", &id, "--regid", &id, "--clear-groups"]).args(words);
        command.env_clear().env("PATH", "/usr/bin:/bin").current_dir(&self.directory);
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn doorway(&self, words: &str) -> Command {
        let program = self.directory.join("doorway").display().to_string();
        let words: Vec<&str> = [program.as_str()].into_iter().chain(words.split(' ')).collect();
        self.command(&words)
    }

    pub(crate) fn run(&self, words: &str) -> Output {
        self.doorway(words).output().expect("a test can do that")
    }

    /// The process of its node, if one runs.
    pub(crate) fn node(&self) -> Option<u32> {
        let done = self.run("status --no-start --json");
        let status: serde_json::Value = serde_json::from_slice(&done.stdout).ok()?;
        u32::try_from(status["pid"].as_u64()?).ok()
    }

    pub(crate) fn fence(&self) -> u64 {
        let done = self.run("run x -- printenv DOORWAY_FENCE");
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout)
            .expect("a test can do that")
            .trim()
            .parse()
            .expect("a test can do that")
    }
}

impl Drop for User {
    fn drop(&mut self) {
        // A test that failed may have left a holder, which would start the node again.
        for _ in 0..3 {
            let Some(node) = self.node() else { break };
            signal(node, "KILL");
        }
        let _ = fs::remove_dir_all(&self.directory);
        let _ = fs::remove_dir_all(format!("/var/tmp/doorway-{}", self.id));
    }
}

/// Bytes as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
