//! What the machine gives: clocks, permissions and room.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::SystemTime;

use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use super::Finding;
use crate::serve::files_for;
use crate::settings::{Settings, Socket};

/// 2026-01-01 UTC, in seconds since 1970: no clock that is right is before.
const TOO_EARLY: u64 = 1_767_225_600;

/// Deadlines need a clock that runs while the machine sleeps; certificates need the right date.
pub(super) fn clocks() -> Vec<Finding> {
    let (boot, steady) = (clock_gettime(ClockId::Boottime), clock_gettime(ClockId::Monotonic));
    let asleep = boot.tv_sec.saturating_sub(steady.tv_sec);
    let mut findings = vec![if boot.tv_sec > 0 && asleep >= 0 {
        let slept = if asleep > 1 { format!(", {asleep} s of them asleep") } else { String::new() };
        Finding::ok("clocks", format!("CLOCK_BOOTTIME runs: {} s since boot{slept}", boot.tv_sec))
    } else {
        Finding::wrong("clocks", "CLOCK_BOOTTIME does not run", "use Linux 2.6.39 or later")
    }];
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    if now.as_secs() < TOO_EARLY {
        let remedy = "set the date, and keep it right with NTP: certificates depend on it";
        findings.push(Finding::wrong("clocks", "the date of this machine is too early", remedy));
    } else {
        let unsure = Path::new("/run/systemd/timesync").exists()
            && !Path::new("/run/systemd/timesync/synchronized").exists();
        findings.push(if unsure {
            let remedy = "see `timedatectl`: certificates depend on the date, locks do not";
            Finding::warning("clocks", "the date has not been set by NTP since boot", remedy)
        } else {
            Finding::ok("clocks", "the date is believable")
        });
    }
    findings
}

/// May this user do what the node has to?
pub(super) fn permissions(settings: &Settings, runs: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(data) = &settings.node.data {
        findings.push(directory("data", data));
    }
    if let Some(files) = &settings.tls {
        findings.push(secret("the key", &files.key));
    }
    if let Some(Socket::File(path, mode)) = &settings.socket {
        let parent = path.parent().unwrap_or(Path::new("/"));
        findings.push(directory("socket", parent));
        if let Ok(meta) = fs::metadata(path)
            && runs
            && meta.mode() & 0o777 != *mode
        {
            let what =
                format!("{} has mode {:o}, not {mode:o}", path.display(), meta.mode() & 0o777);
            let remedy = "restart the node: it sets the mode when it starts";
            findings.push(Finding::warning("permissions", what, remedy));
        }
    }
    findings
}

/// A directory in which files can be made, if it exists; or that can be made itself.
fn directory(what: &str, path: &Path) -> Finding {
    let shown = path.display();
    let parent = path.parent().unwrap_or(Path::new("/"));
    let (place, missing) = if path.exists() { (path, false) } else { (parent, true) };
    let remedy = format!(
        "as its owner: `install -d -o {} {shown}`, or let systemd do it (StateDirectory=, \
         RuntimeDirectory=)",
        user()
    );
    if !place.is_dir() {
        let what =
            format!("the directory for `{what}`, {shown}, cannot be: {} is none", place.display());
        return Finding::wrong("permissions", what, remedy);
    }
    match rustix::fs::access(place, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK) {
        Ok(()) if missing => {
            Finding::ok("permissions", format!("the directory for `{what}`, {shown}, can be made"))
        }
        Ok(()) => {
            Finding::ok("permissions", format!("the directory for `{what}`, {shown}, is ours"))
        }
        Err(error) => {
            let what = format!("user {} may not write to {}: {error}", user(), place.display());
            Finding::wrong("permissions", what, remedy)
        }
    }
}

/// A file that nobody else may read.
fn secret(what: &str, path: &Path) -> Finding {
    let shown = path.display();
    match fs::metadata(path) {
        Err(error) => Finding::wrong(
            "permissions",
            format!("cannot look at {shown}: {error}"),
            "see its path",
        ),
        Ok(meta) if meta.permissions().mode() & 0o007 != 0 => {
            let mode = meta.permissions().mode() & 0o777;
            let what = format!("{what}, {shown}, is open to everyone: its mode is {mode:o}");
            Finding::warning("permissions", what, format!("`chmod 600 {shown}`"))
        }
        Ok(_) => Finding::ok("permissions", format!("{what}, {shown}, is private")),
    }
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Is there room for as many connections as are allowed?
pub(super) fn limits(settings: &Settings) -> Vec<Finding> {
    let needed = files_for(settings.limits.connections) as u64;
    let own = getrlimit(Resource::Nofile);
    let hard = own.maximum.unwrap_or(u64::MAX);
    let finding = if own.current.unwrap_or(u64::MAX) >= needed {
        Finding::ok("limits", format!("{needed} files may be open, which is enough"))
    } else {
        let soft = own.current.unwrap_or(u64::MAX);
        let what = format!(
            "{soft} files may be open, and {} connections may need {needed}",
            settings.limits.connections
        );
        let remedy = if hard >= needed {
            format!("`ulimit -n {needed}`, or LimitNOFILE={needed} in the unit of systemd")
        } else {
            format!(
                "LimitNOFILE={needed} in the unit of systemd, or a lower `connections` under \
                 [limits]"
            )
        };
        Finding::warning("limits", what, remedy)
    };
    vec![finding]
}
