//! A trial of the package: install it into an empty directory, look for its files, use it there,
//! and remove it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, ensure};

use super::{COMPLETIONS, DIRECTORY, EXAMPLE, pack};
use crate::programs::built;
use crate::run::{command, output, quietly, succeed};

/// Tenths of a second until the service must listen.
const PATIENCE: u32 = 300;

/// Files that must be there, each with a text that it has. They are named here once more, so that a
/// mistake in the list from which the package is made is found.
const EXPECTED: [(&str, &str); 10] = [
    ("usr/share/man/man1/doorway.1.gz", ".TH DOORWAY 1"),
    ("usr/share/man/man1/doorway-run.1.gz", ".TH DOORWAY-RUN 1"),
    ("usr/share/bash-completion/completions/doorway", "complete -F _doorway"),
    ("usr/share/fish/vendor_completions.d/doorway.fish", "complete -c doorway"),
    ("usr/share/zsh/vendor-completions/_doorway", "#compdef doorway"),
    ("usr/lib/systemd/system/doorway.service", "ExecStart=/usr/bin/doorway serve"),
    ("usr/lib/sysusers.d/doorway.conf", "u doorway "),
    (EXAMPLE, "node ="),
    ("usr/share/doc/doorway/copyright", "Apache-2.0"),
    ("usr/share/doc/doorway/third-party-licences.gz", "Permission is hereby granted"),
];

/// A directory that dpkg takes for the root of a machine without packages.
struct Scratch(PathBuf);

/// Try the package with the program that the tests have built.
pub(crate) fn try_out() -> anyhow::Result<()> {
    let package = pack(&built("doorway")?, "none")?;
    let scratch = Scratch::new()?;
    succeed(scratch.dpkg("--install").arg(&package))?;
    scratch.check_files()?;
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

    /// Check that the files of the package are there, with what belongs into them, and that every
    /// command has a manual page.
    fn check_files(&self) -> anyhow::Result<()> {
        for (path, text) in EXPECTED {
            let content = content(&self.0.join(path)).with_context(|| format!("/{path}"))?;
            ensure!(content.contains(text), "/{path} has no `{text}`");
        }
        for (shell, path) in COMPLETIONS {
            let script = fs::read_to_string(self.0.join(path))?;
            ensure!(script.contains("once-per"), "the completions for {shell} lack an option");
        }
        let pages = self.0.join("usr/share/man/man1");
        for command in commands(&output(&mut self.doorway("help"))?) {
            let page = pages.join(format!("doorway-{command}.1.gz"));
            let text = content(&page).with_context(|| page.display().to_string())?;
            ensure!(text.contains(".SH SYNOPSIS"), "{} has no synopsis", page.display());
        }
        Ok(())
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
            serve.arg(self.0.join(EXAMPLE)).args(["--socket", &socket, "--data"]);
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

/// The text of a file, which may be compressed.
fn content(path: &Path) -> anyhow::Result<String> {
    if path.extension().is_some_and(|ending| ending == "gz") {
        return output(command("gzip --decompress --stdout").arg(path));
    }
    Ok(fs::read_to_string(path)?)
}

/// The commands in the groups of the help, without `help` itself.
fn commands(help: &str) -> Vec<&str> {
    let lines = help.lines().filter_map(|line| line.strip_prefix("  "));
    let entries = lines.filter(|line| line.starts_with(|letter: char| letter.is_ascii_lowercase()));
    let names = entries.filter_map(|line| line.split_once("  ")).map(|(name, _)| name);
    names.filter(|name| *name != "help" && !name.contains(' ')).collect()
}

/// A service that is killed when this value is dropped.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
