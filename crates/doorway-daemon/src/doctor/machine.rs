//! What the node needs of the machine: clocks, permissions and limits.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::{Duration, SystemTime};

use doorway_node::members::BOOT_CLOCK_BOUND;
use doorway_protocol::Scope;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use super::Finding;
use crate::directory::{DirectoryError, examine};
use crate::serve::{connections_for, files_for};
use crate::settings::{Settings, Socket};

/// 2026-01-01 UTC, in seconds since 1970. An earlier date is surely wrong.
const TOO_EARLY: u64 = 1_767_225_600;

/// For how long the rates of two clocks are compared. Both are read within microseconds of each
/// other, so this tells rates apart that differ by a hundredth of a percent.
const SAMPLE: Duration = Duration::from_millis(100);

/// How many times two clocks are read to find their times at one moment.
const READINGS: usize = 20;

/// More connections than the node of one user has, as a rule.
const USUAL: usize = 100;

/// Whether the clocks are right. Deadlines need a clock that runs while the machine sleeps;
/// certificates need the right date.
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
            Finding::ok("clocks", "the date is plausible")
        });
    }
    findings.push(rate());
    findings
}

/// Whether the adjusted clock of this machine runs at nearly the rate of its raw clock. A time
/// service may slew the former by so much that a node would count on its lease for too long.
fn rate() -> Finding {
    let [adjusted, raw] = both_clocks();
    std::thread::sleep(SAMPLE);
    let [adjusted_later, raw_later] = both_clocks();
    judge_rate(adjusted_later.saturating_sub(adjusted), raw_later.saturating_sub(raw))
}

/// The adjusted and the raw clock at one moment: of several readings, the one that took least time.
fn both_clocks() -> [Duration; 2] {
    let read = |clock| Duration::try_from(clock_gettime(clock)).unwrap_or_default();
    let readings = (0..READINGS).map(|_| {
        let before = read(ClockId::MonotonicRaw);
        let adjusted = read(ClockId::Monotonic);
        let raw = read(ClockId::MonotonicRaw);
        (raw.saturating_sub(before), [adjusted, raw])
    });
    readings.min().map_or_else(Default::default, |(_, both)| both)
}

/// Judge what two clocks have counted in the same time.
fn judge_rate(adjusted: Duration, raw: Duration) -> Finding {
    let percent = (adjusted.as_secs_f64() / raw.as_secs_f64() - 1.0) * 100.0;
    let bound = f64::from(BOOT_CLOCK_BOUND) / 10.0;
    let what = match percent {
        _ if !percent.is_finite() => "the raw clock of this machine stands still".to_owned(),
        ..0.0 => format!("the clock of this machine is slowed down by {:.2} %", -percent),
        _ => format!("the clock of this machine is sped up by {percent:.2} %"),
    };
    if percent.abs() <= bound {
        Finding::ok("clocks", format!("{what}; leases allow for {bound} %"))
    } else {
        let remedy = "see `adjtimex --print` or `chronyc tracking`: the time service must not \
                      change the rate by more, or a lock may be given to two clients";
        Finding::wrong("clocks", format!("{what}, but leases allow for {bound} % only"), remedy)
    }
}

/// Whether this user may do what the node has to do.
pub(super) fn permissions(settings: &Settings, runs: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(data) = &settings.node.data {
        findings.push(directory("data", data, settings.scope));
    }
    if let Some(files) = &settings.tls {
        findings.push(secret("the key", &files.key));
    }
    if let Some(Socket::File(path, mode)) = &settings.socket {
        let parent = path.parent().unwrap_or(Path::new("/"));
        findings.push(directory("socket", parent, settings.scope));
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

/// Whether files can be made in the directory of a key, or the directory itself can be made.
fn directory(key: &str, path: &Path, scope: Scope) -> Finding {
    let name = format!("the directory for `{key}`, {}", path.display());
    let own = scope == Scope::User;
    let error = match examine(path, own) {
        Ok(true) => return Finding::ok("permissions", format!("{name}, can be written to")),
        Ok(false) => return Finding::ok("permissions", format!("{name}, can be made")),
        Err(error) => error,
    };
    let what = format!("{name}, cannot be used: {error}");
    let other = if own { "`doorway serve --local --data DIR`" } else { "`data` in the file" };
    match error {
        // The node of a machine mostly runs as a user of its own, who can do more than this one.
        DirectoryError::Denied { user, .. } if !own && user != 0 => {
            let what = format!("{name}, cannot be examined: {error}");
            Finding::warning("permissions", what, "examine it as root: `sudo doorway doctor`")
        }
        DirectoryError::Foreign { .. } => {
            let remedy = format!("let root remove it, or name another with {other}");
            Finding::wrong("permissions", what, remedy)
        }
        DirectoryError::Full(_) => {
            let remedy = format!("make room, or name another directory with {other}");
            Finding::wrong("permissions", what, remedy)
        }
        DirectoryError::NotADirectory(_) | DirectoryError::Denied { .. } => {
            let remedy = format!("name another directory with {other}");
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
            format!("cannot read {shown}: {error}"),
            "correct `key` under [tls]",
        ),
        Ok(meta) if meta.permissions().mode() & 0o007 != 0 => {
            let mode = meta.permissions().mode() & 0o777;
            let what = format!("{what}, {shown}, is open to everyone: its mode is {mode:o}");
            Finding::warning("permissions", what, format!("`chmod 600 {shown}`"))
        }
        Ok(_) => Finding::ok("permissions", format!("{what}, {shown}, is private")),
    }
}

/// Whether as many files may be open as connections need. That is judged by the limit of the node
/// if it runs, and otherwise by the limit up to which a node started from here would raise its own.
pub(super) fn limits(settings: &Settings, pid: Option<u32>) -> Finding {
    let connections = settings.limits.connections;
    let needed = files_for(connections) as u64;
    let running = pid.and_then(|pid| Some((files_of(pid)?, format!("by process {pid}"))));
    let (allowed, whose) = running.unwrap_or_else(|| {
        let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        (hard, "by a node that is started from here".to_owned())
    });
    if allowed >= needed {
        return Finding::ok("limits", format!("{needed} files may be open {whose}: enough"));
    }
    let room = connections_for(allowed as usize);
    let what = format!(
        "{allowed} files may be open {whose}: enough for {room} of {connections} connections"
    );
    // A user has few connections, and no unit of systemd to change.
    if settings.scope == Scope::User {
        let remedy = "raise the limit of this user in /etc/security/limits.conf";
        return if room >= USUAL {
            Finding::ok("limits", what)
        } else {
            Finding::warning("limits", what, remedy)
        };
    }
    let remedy = format!(
        "set LimitNOFILE={needed} in the unit of systemd, or lower `connections` under [limits]"
    );
    Finding::warning("limits", what, remedy)
}

/// How many files a process may have open, if this user may know.
fn files_of(pid: u32) -> Option<u64> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;
    use crate::settings::Overrides;

    fn local(data: &Path) -> Settings {
        let overrides = Overrides { data: Some(data.to_owned()), ..Overrides::default() };
        Settings::local(&overrides).unwrap()
    }

    #[test]
    fn a_directory_of_another_user_is_wrong_for_the_node_of_a_user() {
        let data = std::env::temp_dir().join(format!("doorway-foreign-{}", std::process::id()));
        fs::create_dir_all(&data).unwrap();
        assert_eq!(permissions(&local(&data), false)[0].verdict, Verdict::Ok);
        // Only root can give a directory away; `/` is root's for everybody else.
        let given = std::os::unix::fs::chown(&data, Some(12_345), None);
        let foreign = if given.is_ok() { data.as_path() } else { Path::new("/") };
        let found = &permissions(&local(foreign), false)[0];
        assert_eq!(found.verdict, Verdict::Wrong, "{found:?}");
        assert!(found.what.contains("belongs to uid"), "{found:?}");
        fs::remove_dir_all(data).unwrap();
    }

    #[test]
    fn a_clock_that_is_slewed_too_far_is_wrong() {
        let judged = |adjusted: u64, raw: u64| {
            let finding = judge_rate(Duration::from_millis(adjusted), Duration::from_millis(raw));
            (finding.verdict, finding.what)
        };
        let (verdict, what) = judged(1000, 1000);
        assert_eq!(verdict, Verdict::Ok);
        assert!(what.contains("sped up by 0.00 %; leases allow for 8.5 %"), "{what}");
        let (verdict, what) = judged(916, 1000);
        assert_eq!(verdict, Verdict::Ok);
        assert!(what.contains("slowed down by 8.40 %"), "{what}");
        for (adjusted, raw, part) in [
            (914, 1000, "slowed down by 8.60 %, but leases allow for 8.5 % only"),
            (1086, 1000, "sped up by 8.60 %"),
            (1000, 0, "stands still"),
            (0, 0, "stands still"),
        ] {
            let (verdict, what) = judged(adjusted, raw);
            assert_eq!(verdict, Verdict::Wrong, "{what}");
            assert!(what.contains(part), "{what}");
        }
        assert_eq!(rate().verdict, Verdict::Ok, "{:?}", rate().what);
    }

    #[test]
    fn the_soft_limit_of_a_shell_is_no_reason_for_a_warning() {
        let mut settings = local(Path::new("/tmp"));
        settings.limits.connections = 1;
        assert_eq!(limits(&settings, None).verdict, Verdict::Ok);
        assert_eq!(limits(&settings, Some(std::process::id())).verdict, Verdict::Ok);
        settings.limits.connections = 1 << 40;
        let found = limits(&settings, None);
        assert!(!found.what.contains("systemd") && found.verdict != Verdict::Wrong, "{found:?}");
        settings.scope = Scope::Machine;
        let found = limits(&settings, Some(std::process::id()));
        assert!(found.what.contains("by process"), "{found:?}");
        assert!(found.remedy.unwrap().contains("LimitNOFILE"));
    }
}
