//! Other revisions of this repository, for comparisons.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, ensure};

use crate::run::{command, succeed};

/// Write the files of a commit into a directory, unless they are there.
pub(crate) fn extract(commit: &str, directory: &Path) -> anyhow::Result<()> {
    if directory.join("Cargo.toml").exists() {
        return Ok(());
    }
    fs::create_dir_all(directory)?;
    let mut archive = command("git archive");
    let mut archive =
        archive.arg(commit).stdout(Stdio::piped()).spawn().context("cannot run git")?;
    let files = archive.stdout.take().context("git has no output")?;
    succeed(command("tar -x -C").arg(directory).stdin(files))?;
    ensure!(archive.wait()?.success(), "git does not know the commit {commit}");
    Ok(())
}
