//! Tools that stages need: whether they are there, and how they are installed.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

use super::Outcome::{self, Skipped};
use crate::run::{cargo, ci, command, quietly, succeed};

/// Is this cargo tool installed? It is installed if it is missing and that is allowed.
pub(crate) fn have(tool: &str) -> bool {
    let there = || quietly(&mut cargo(&format!("{tool} --version")));
    there() || may_install() && install_tool(tool)
}

/// May this run install tools? In CI and as root, it may. Any other user is told what is missing:
/// installing takes minutes and changes their machine.
pub(super) fn may_install() -> bool {
    ci() || fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0)
}

/// Build and install a cargo tool in the way that takes the least time: without optimisation,
/// without debug information and without parts that are not used here.
fn install_tool(tool: &str) -> bool {
    let features = match tool {
        "nextest" => " --no-default-features --features default-no-update",
        _ => "",
    };
    let mut install = cargo(&format!("install cargo-{tool} --locked --debug{features}"));
    succeed(install.env("CARGO_PROFILE_DEV_DEBUG", "0")).is_ok()
}

/// Find out whether Debian packages are there of which `there` finds what is in them. They are
/// installed if they are missing and that is allowed; otherwise their names are told.
pub(super) fn needs(there: fn() -> bool, packages: &str) -> Option<Outcome> {
    let found = there() || may_install() && install(packages) && there();
    (!found).then(|| Skipped(format!("`apt-get install {packages}` installs what it needs")))
}

/// Install Debian packages, as root or by a `sudo` that asks for no password; otherwise this fails.
/// A fresh machine needs `apt-get update` first. Another stage may be installing something, so this
/// waits for its turn.
pub(super) fn install(packages: &str) -> bool {
    let sudo = if quietly(&mut command("sudo -n true")) { "sudo -n " } else { "" };
    let apt = |words: &str| {
        succeed(&mut command(&format!("{sudo}apt-get -o DPkg::Lock::Timeout=600 {words}"))).is_ok()
    };
    let install = || apt(&format!("install -y {packages}"));
    install() || apt("update") && install()
}

/// Make a virtual environment of Python in this place, and install these packages into it. False if
/// that is not possible.
pub(crate) fn venv(place: &Path, packages: &[&str]) -> bool {
    let mut pip = Command::new(place.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(packages);
    succeed(Command::new("python3").args(["-m", "venv"]).arg(place)).is_ok()
        && succeed(&mut pip).is_ok()
}
