//! Running other programs.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

/// The variable that tells tests the name of [`skips`].
const SKIPS: &str = "DOORWAY_SKIPPED";

/// Is this an automatic run (`CI=true`)?
pub(crate) fn ci() -> bool {
    env::var("CI").is_ok_and(|value| value == "true")
}

/// `cargo` with these arguments, separated by spaces.
pub(crate) fn cargo(words: &str) -> Command {
    let mut cargo = command(&format!("cargo {words}"));
    if ci() {
        // Nothing is edited and built again, so that preparing for it would be a waste.
        cargo.env("CARGO_INCREMENTAL", "0");
    }
    cargo
}

/// The program that the first word names, with the other words as arguments.
pub(crate) fn command(words: &str) -> Command {
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

/// The file into which tests of this process's stages write that they were skipped, and why.
pub(crate) fn skips() -> PathBuf {
    let file = target().join(format!("skipped-{}", std::process::id()));
    std::path::absolute(&file).unwrap_or(file)
}

/// Run the command with its output shown, and fail if it fails.
pub(crate) fn succeed(command: &mut Command) -> anyhow::Result<()> {
    let shown = shown(command);
    println!("$ {shown}");
    let status =
        command.env(SKIPS, skips()).status().with_context(|| format!("cannot run `{shown}`"))?;
    ensure!(status.success(), "`{shown}` failed");
    Ok(())
}

/// Run the command, fail if it fails, and return what it printed on standard output.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let shown = shown(command);
    let done =
        command.env(SKIPS, skips()).output().with_context(|| format!("cannot run `{shown}`"))?;
    // Tests tell on standard output what has failed.
    let (said, errors) =
        (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    ensure!(done.status.success(), "`{shown}` failed:\n{said}{errors}");
    Ok(String::from_utf8(done.stdout)?)
}

/// Run the command without showing its output. Did it succeed?
pub(crate) fn quietly(command: &mut Command) -> bool {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// The directory into which cargo builds.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from)
}

/// The command as a person would type it.
pub(crate) fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
