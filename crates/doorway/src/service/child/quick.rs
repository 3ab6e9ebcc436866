//! Starting a command without a copy of this process.
//!
//! Between fork and exec, a child process has a copy of the page tables of its parent, and both pay
//! for the pages that they write to. `posix_spawn` does without. It cannot tie the child to its
//! parent, or give it the terminal, or let the user stop it before exec. So a command with a
//! terminal is started by fork, as is one that cannot be started here for any reason: then the
//! error is told in one way.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{CString, OsString};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;

use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawnp};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::Pid as ProcessId;
use rustix::process::Pid;

use super::InheritedSignals;

/// Start a command in a process group of its own; `None` if that is not possible.
pub(super) fn spawn(
    words: &[OsString],
    variables: &[(&'static str, String)],
    keeps: &[OwnedFd],
    before: InheritedSignals,
) -> Option<Pid> {
    if before.ignored_children {
        return None; // A child cannot be started with a signal ignored that this process receives.
    }
    let arguments: Vec<CString> = words.iter().cloned().map(text).collect::<Option<_>>()?;
    let mut attributes = PosixSpawnAttr::init().ok()?;
    let flags = PosixSpawnFlags::POSIX_SPAWN_SETPGROUP
        | PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK
        | PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF;
    attributes.set_flags(flags).ok()?;
    attributes.set_pgroup(ProcessId::from_raw(0)).ok()?;
    attributes.set_sigmask(&before.mask).ok()?;
    // The standard library ignores this signal in every program.
    attributes.set_sigdefault(&SigSet::from(Signal::SIGPIPE)).ok()?;
    let mut actions = PosixSpawnFileActions::init().ok()?;
    for kept in keeps {
        // A descriptor that is duplicated to itself stays open at exec.
        actions.add_dup2(kept.as_raw_fd(), kept.as_raw_fd()).ok()?;
    }
    let environment = environment(variables)?;
    let program = arguments.first()?;
    let process = posix_spawnp(program, &actions, &attributes, &arguments, &environment).ok()?;
    Pid::from_raw(process.as_raw())
}

/// The environment of this process with these variables, as `NAME=value`.
fn environment(variables: &[(&'static str, String)]) -> Option<Vec<CString>> {
    let mut all: BTreeMap<OsString, OsString> = env::vars_os().collect();
    all.extend(variables.iter().map(|(name, value)| ((*name).into(), value.into())));
    let line = |(mut name, value): (OsString, OsString)| {
        name.push("=");
        name.push(value);
        text(name)
    };
    all.into_iter().map(line).collect()
}

/// A text for the system; `None` if it has a zero byte.
fn text(text: OsString) -> Option<CString> {
    CString::new(text.into_vec()).ok()
}
