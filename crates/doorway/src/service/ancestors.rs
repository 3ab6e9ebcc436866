//! The processes above this one, as the system shows them in `/proc`.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use super::owner::{Output, Process, is_unsettled};

/// How many processes are looked at.
const MOST: usize = 64;

/// The flag of a process that was forked and has executed no program since (`PF_FORKNOEXEC`).
const FORKED: u64 = 0x40;

/// How often processes are looked at that do not come to rest, and with which pause.
const LOOKS: (usize, Duration) = (50, Duration::from_millis(1));

/// The parent of this process, the parent of that one, and so on, as far as they can be seen. If
/// possible, they are shown as they are at rest.
pub(crate) fn ancestors() -> Vec<Process> {
    let mut found = look_up();
    for _ in 1..LOOKS.0 {
        if !is_unsettled(&found) {
            break;
        }
        sleep(LOOKS.1);
        found = look_up();
    }
    found
}

fn look_up() -> Vec<Process> {
    let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get() as u32);
    let mut next = parent.filter(|pid| *pid > 0);
    let mut found = Vec::new();
    while let Some(pid) = next
        && found.len() < MOST
        && let Some((process, parent)) = look(pid)
    {
        found.push(process);
        next = Some(parent).filter(|pid| *pid > 0);
    }
    found
}

/// Where the standard output of this process goes.
pub(crate) fn stdout() -> Output {
    output(Path::new("/proc/self/fd/1"))
}

/// A process and the number of its parent.
fn look(pid: u32) -> Option<(Process, u32)> {
    let directory = Path::new("/proc").join(pid.to_string());
    let stat = fs::read_to_string(directory.join("stat")).ok()?;
    // The name is in parentheses, and may contain parentheses itself.
    let (head, tail) = stat.rsplit_once(')')?;
    let name = head.split_once('(')?.1;
    let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let state = *fields.first()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    let file = fs::read_link(directory.join("exe"));
    let program = file.as_ref().ok().and_then(|file| file.file_name()?.to_str());
    // A program that was replaced by an upgrade still runs.
    let program = program.map_or(name, |file| file.strip_suffix(" (deleted)").unwrap_or(file));
    // This one file has many names, and the command decides what it is.
    let program = if program == "busybox" && name == "timeout" { name } else { program };
    let descriptors = fs::read_dir(directory.join("fd"));
    let mut process = Process {
        pid,
        program: program.to_owned(),
        command: fs::read(directory.join("cmdline")).unwrap_or_default(),
        started: number(19)?,
        is_busy: matches!(state, "R" | "D"),
        is_forked: number(6)? & FORKED != 0,
        is_readable: file.is_ok() && descriptors.is_ok(),
        stdout: output(&directory.join("fd/1")),
        ..Process::default()
    };
    for descriptor in descriptors.into_iter().flatten().flatten() {
        let path = descriptor.path();
        // The permissions of the link tell how the descriptor was opened.
        let (Output::Pipe(pipe), Ok(link)) = (output(&path), fs::symlink_metadata(&path)) else {
            continue;
        };
        if link.mode() & 0o400 != 0 {
            process.reads.push(pipe);
        }
        if link.mode() & 0o200 != 0 && descriptor.file_name() != "2" {
            process.writes.push(pipe);
        }
    }
    Some((process, u32::try_from(number(1)?).ok()?))
}

/// Where this descriptor leads to.
fn output(descriptor: &Path) -> Output {
    let Ok(target) = fs::read_link(descriptor) else { return Output::Other };
    let target = target.to_string_lossy();
    let number = |kind| {
        target.strip_prefix(kind)?.strip_prefix(":[")?.strip_suffix(']')?.parse::<u64>().ok()
    };
    let socket = || number("socket").map(Output::Socket);
    number("pipe").map(Output::Pipe).or_else(socket).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_ancestor_is_the_parent() {
        let all = ancestors();
        let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get() as u32);
        assert_eq!(all.first().map(|process| process.pid), parent);
        assert!(all.iter().all(|process| process.started > 0), "{all:?}");
    }

    #[test]
    fn both_ends_of_a_pipe_are_found() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let (own, _) = look(std::process::id()).unwrap();
        let pipe = own.reads.iter().find(|pipe| own.writes.contains(pipe));
        assert!(pipe.is_some() && own.is_readable && !own.is_forked, "{own:?}");
        drop((reader, writer));
    }
}
