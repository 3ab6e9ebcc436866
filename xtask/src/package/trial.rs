//! A trial of the package: install it into an empty directory, use it there, and remove it.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, ensure};

use super::{DIRECTORY, pack};
use crate::programs::built;
use crate::run::{command, quietly, succeed};

/// Tenths of a second until the service must listen.
const PATIENCE: u32 = 300;

/// A directory that dpkg takes for the root of a machine without packages.
struct Scratch(PathBuf);

/// Try the package with the program that the tests have built.
pub(crate) fn try_out() -> anyhow::Result<()> {
    let package = pack(&built("doorway")?, "none")?;
    let scratch = Scratch::new()?;
    succeed(scratch.dpkg("--install").arg(&package))?;
    scratch.use_it()?;
    succeed(scratch.dpkg("--purge").arg("doorway"))?;
    let left = scratch.files()?;
    ensure!(left.is_empty(), "left behind: {left:?}");
    fs::remove_dir_all(&scratch.0)?;
    Ok(())
}

impl Scratch {
    fn new() -> anyhow::Result<Self> {
        let root = fs::canonicalize(DIRECTORY)?.join("scratch");
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        for directory in ["info", "updates"] {
            fs::create_dir_all(root.join("var/lib/dpkg").join(directory))?;
        }
        fs::write(root.join("var/lib/dpkg/status"), "")?;
        Ok(Self(root))
    }

    /// dpkg on this root. The libraries that the package depends on are those of this machine, and
    /// its scripts see in `DPKG_ROOT` that they must leave this machine alone.
    fn dpkg(&self, action: &str) -> Command {
        let force = "not-root,script-chrootless,depends,bad-path";
        let mut dpkg = command(&format!("dpkg --force-{}", force.replace(',', " --force-")));
        dpkg.arg(format!("--root={}", self.0.display()));
        dpkg.arg(format!("--log={}", self.0.join("var/lib/dpkg/log").display())).arg(action);
        dpkg
    }

    fn doorway(&self, words: &str) -> Command {
        let mut doorway = Command::new(self.0.join("usr/bin/doorway"));
        doorway.args(words.split_whitespace()).stdin(Stdio::null());
        doorway
    }

    /// Check the configuration, start the service with it, and run a command under a lock.
    fn use_it(&self) -> anyhow::Result<()> {
        let data = self.0.with_file_name("data");
        if data.exists() {
            fs::remove_dir_all(&data)?;
        }
        // The socket is not a file, so that the length of the path does not matter.
        let socket = format!("@doorway-package-{}", std::process::id());
        let serve = || {
            let mut serve = self.doorway("serve --config");
            serve.arg(self.0.join(super::EXAMPLE)).args(["--socket", &socket, "--data"]);
            serve.arg(&data);
            serve
        };
        succeed(serve().arg("--check"))?;
        let _service = Service(serve().spawn().context("the service does not start")?);
        let run = |words: &str| {
            let mut run = self.doorway(words);
            run.env("DOORWAY_SOCKET", &socket);
            run
        };
        let listens = |_| {
            sleep(Duration::from_millis(100));
            quietly(&mut run("status"))
        };
        ensure!((0..PATIENCE).any(listens), "the service does not listen");
        succeed(&mut run("run package -- true"))
    }

    /// Everything but dpkg's own files.
    fn files(&self) -> anyhow::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        let mut open = vec![self.0.clone()];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory)? {
                let path = entry?.path();
                if path == self.0.join("var/lib/dpkg") {
                    continue;
                }
                if path.is_dir() {
                    open.push(path.clone());
                }
                files.push(path);
            }
        }
        // The directories above dpkg's own.
        files.retain(|path| !self.0.join("var/lib/dpkg").starts_with(path));
        Ok(files)
    }
}

/// A service that is killed when this value is dropped.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
