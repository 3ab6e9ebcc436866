//! Which process `doorway lock` ties a lock to.
//!
//! The lock belongs to the script, and it must be held when the script reads the fence. But the
//! parent of `doorway lock` is often not the script. In `$( ... )` a shell forks a copy of itself,
//! a *subshell*, which ends with the command substitution; so does `timeout`. This module finds the
//! shell that goes on: the one that reads what `doorway lock` prints. If it cannot know, it says
//! why, and the command ends before it has taken the lock.

use std::fmt;

/// What is known of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Process {
    /// The process ID.
    pub(crate) pid: u32,
    /// The file that the process executes, without its directory; its name if only that is known.
    pub(crate) program: String,
    /// The command line, as the system shows it.
    pub(crate) command: Vec<u8>,
    /// When the process was started, in ticks since the machine was.
    pub(crate) started: u64,
    /// True if the process runs at this moment, and does not wait for anything.
    pub(crate) is_busy: bool,
    /// True if the process was forked and has executed no other program since.
    pub(crate) is_forked: bool,
    /// False if the descriptors or the file of the process cannot be read, because it belongs to
    /// another user.
    pub(crate) is_readable: bool,
    /// Where its standard output goes.
    pub(crate) stdout: Output,
    /// The pipes that it can write to, without standard error.
    pub(crate) writes: Vec<u64>,
    /// The pipes that it can read from.
    pub(crate) reads: Vec<u64>,
}

/// Where the standard output of a process goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Output {
    /// To a pipe, with the number that the system gives it.
    Pipe(u64),
    /// To a socket. Who reads from its other end is not known.
    Socket(u64),
    /// To a file, to a terminal, or nowhere.
    #[default]
    Other,
}

/// Why the process is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnerError {
    /// There is no parent process that can be seen.
    NoParent,
    /// The parent process only waits for this command, or runs as long as the machine.
    Service,
    /// The parent process belongs to another user.
    Unreadable,
    /// The fence goes to another part of a pipeline.
    Pipeline,
    /// A subshell has no connection with the command substitution around it, so it may run in the
    /// background.
    Background,
    /// The fence goes to another program, which reads the output of this script.
    OtherProgram,
}

impl fmt::Display for OwnerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoParent => "the process that runs this command cannot be seen",
            Self::Service => {
                "the process that runs this command is not a script: it ends at once, or never"
            }
            Self::Unreadable => "the process that runs this command belongs to another user",
            Self::Pipeline => "the fence goes through a pipe to a process that is not the script",
            Self::Background => {
                "this command runs in a subshell that may end before the script or after it"
            }
            Self::OtherProgram => {
                "the fence goes to a program that reads the output of this script, and the lock \
                 would be released when this script ends"
            }
        })
    }
}

/// Is one of the shells that matter busy? A shell that is just starting a pipeline still has
/// descriptors that it is going to close, and must be looked at again.
pub(crate) fn is_unsettled(ancestors: &[Process]) -> bool {
    let script = ancestors.iter().position(|process| !process.is_forked && !process.is_wrapper());
    let matter = script.map_or(ancestors, |script| &ancestors[..=script]);
    matter.iter().any(|process| process.is_busy)
}

/// The process to tie the lock to. `stdout` is where this command prints the fence, and `ancestors`
/// are its parent, the parent of that, and so on.
pub(crate) fn owner<'a>(
    stdout: &Output,
    ancestors: &'a [Process],
) -> Result<&'a Process, OwnerError> {
    let wrappers = ancestors.iter().take_while(|process| process.is_wrapper()).count();
    let ancestors = &ancestors[wrappers..];
    let parent = ancestors.first().ok_or(OwnerError::NoParent)?;
    if !parent.is_shell() {
        return match parent {
            _ if parent.is_service() || parent.is_remote() => Err(OwnerError::Service),
            _ if parent.is_forked && !parent.is_readable => Err(OwnerError::Unreadable),
            _ => Ok(parent),
        };
    }
    // The shell that the system started, and above the parent all its subshells in between.
    let links = ancestors.windows(2).take_while(|pair| pair[0].is_subshell_of(&pair[1]));
    let (family, others) = ancestors.split_at(links.count() + 1);
    let script = &family[family.len() - 1];
    if let Some(reader) = substitution(stdout, family) {
        return reader;
    }
    if family.len() > 1 && family.iter().any(|shell| !shell.is_readable) {
        return Err(OwnerError::Unreadable);
    }
    // The subshell was forked for a part of a pipeline, or only inherits what the script has.
    let leaves_subshell = *stdout == parent.stdout && *stdout != script.stdout;
    match stdout {
        Output::Pipe(_) | Output::Socket(_) if leaves_subshell => Err(OwnerError::Pipeline),
        Output::Pipe(_) | Output::Socket(_)
            if *stdout == script.stdout && is_read_outside(stdout, others) =>
        {
            Err(OwnerError::OtherProgram)
        }
        _ => Ok(parent),
    }
}

/// The shell of the family with the outermost command substitution that this command runs in: it
/// reads what this command or one of the subshells writes. None if there is no such substitution.
fn substitution<'a>(
    stdout: &Output,
    family: &'a [Process],
) -> Option<Result<&'a Process, OwnerError>> {
    let own: &[u64] = if let Output::Pipe(pipe) = stdout { &[*pipe] } else { &[] };
    // Below the shell at `index` are this command and the subshells before that one.
    let written = |index: usize| {
        let below = family[..index].iter().enumerate();
        let by_shells =
            below.flat_map(|(at, shell)| shell.writes.iter().map(move |pipe| (at + 1, *pipe)));
        own.iter().map(|pipe| (0, *pipe)).chain(by_shells)
    };
    let reads = |index: usize| {
        written(index).find(|(_, pipe)| family[index].reads.contains(pipe)).map(|(by, _)| by)
    };
    let (reader, writer) = (0..family.len()).rev().find_map(|at| Some((at, reads(at)?)))?;
    // What the subshells below the writer print must go somewhere as well: to the next part of a
    // pipeline, say. Otherwise they may be a job in the background, which outlives the script.
    let below = &family[..writer.saturating_sub(1)];
    let script = &family[family.len() - 1];
    let is_connected =
        |shell: &Process| shell.writes.iter().any(|pipe| !script.writes.contains(pipe));
    Some(if below.iter().all(is_connected) {
        Ok(&family[reader])
    } else {
        Err(OwnerError::Background)
    })
}

/// Does a program around the script read what goes there, and may it use the fence? Services only
/// write it into a log, but one for remote users passes it on.
fn is_read_outside(stdout: &Output, others: &[Process]) -> bool {
    // Descriptors of that service cannot be seen. It reads what the first process writes that it
    // started.
    let starter = others.iter().find(|other| other.stdout != *stdout);
    let reads = |other: &Process| match stdout {
        Output::Pipe(pipe) => other.reads.contains(pipe) && !other.is_service(),
        Output::Socket(_) | Output::Other => false,
    };
    starter.is_some_and(Process::is_remote) || others.iter().any(reads)
}

/// Shells that fork subshells.
const SHELLS: [&str; 12] =
    ["ash", "bash", "busybox", "dash", "fish", "ksh", "lksh", "mksh", "posh", "rbash", "sh", "zsh"];

/// Programs that start another one, wait until it ends, and then end as well.
const WRAPPERS: [&str; 13] = [
    "chronic", "doas", "flock", "ltrace", "runuser", "setsid", "strace", "su", "sudo", "time",
    "timeout", "unbuffer", "xargs",
];

/// Programs that start a command at some time.
const SERVICES: [&str; 5] = ["atd", "cron", "crond", "init", "systemd"];

/// Programs that start a command for a user who is elsewhere.
const REMOTE: [&str; 4] = ["dropbear", "sshd", "sshd-auth", "sshd-session"];

impl Process {
    fn is_shell(&self) -> bool {
        let name = self.program.trim_end_matches(|c: char| c.is_ascii_digit() || "-.".contains(c));
        SHELLS.contains(&name)
    }

    fn is_wrapper(&self) -> bool {
        WRAPPERS.contains(&&*self.program) || self.program == "doorway"
    }

    fn is_service(&self) -> bool {
        SERVICES.contains(&&*self.program)
    }

    fn is_remote(&self) -> bool {
        REMOTE.contains(&&*self.program)
    }

    /// Is this a copy of that shell, which it forked?
    fn is_subshell_of(&self, parent: &Self) -> bool {
        let same = self.program == parent.program && self.command == parent.command;
        self.is_forked && same
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STDOUT: u64 = 1;

    /// A shell that runs a script, with pid 10. Its standard output is the pipe 1.
    fn script() -> Process {
        Process {
            pid: 10,
            program: "bash".into(),
            command: b"bash\0script\0".to_vec(),
            is_readable: true,
            stdout: Output::Pipe(STDOUT),
            writes: vec![STDOUT],
            ..Process::default()
        }
    }

    /// A subshell that writes to this pipe.
    fn subshell(pid: u32, pipe: u64) -> Process {
        let (stdout, writes) = (Output::Pipe(pipe), vec![pipe]);
        Process { pid, is_forked: true, stdout, writes, ..script() }
    }

    fn reads(pipe: u64, process: Process) -> Process {
        Process { reads: vec![pipe], ..process }
    }

    /// A process that is not a shell.
    fn program(pid: u32, program: &str) -> Process {
        let stdout = Output::Pipe(STDOUT);
        Process { pid, program: program.into(), is_readable: true, stdout, ..Process::default() }
    }

    fn pid(stdout: &Output, ancestors: &[Process]) -> Result<u32, OwnerError> {
        owner(stdout, ancestors).map(|process| process.pid)
    }

    #[test]
    fn the_shell_that_reads_the_fence_owns_the_lock() {
        let (two, three) = (Output::Pipe(2), Output::Pipe(3));
        let timeout = program(20, "timeout");
        for (what, stdout, ancestors) in [
            ("$(lock)", &two, vec![reads(2, script())]),
            ("$(lock 2>file)", &two, vec![subshell(11, 2), reads(2, script())]),
            ("$(timeout lock)", &two, vec![timeout.clone(), reads(2, script())]),
            ("$(timeout lock 2>file)", &two, vec![timeout, subshell(11, 2), reads(2, script())]),
            ("$(lock | cat)", &three, vec![subshell(11, 2), reads(2, script())]),
            (
                "$(function | cat)",
                &three,
                vec![subshell(12, 3), subshell(11, 2), reads(2, script())],
            ),
            ("$(x=$(lock); echo $x)", &three, vec![reads(3, subshell(11, 2)), reads(2, script())]),
            (
                "$(lock >file; cat file) in dash, where the subshell is redirected meanwhile",
                &Output::Other,
                vec![Process { stdout: Output::Other, ..subshell(11, 2) }, reads(2, script())],
            ),
            ("lock", &Output::Pipe(STDOUT), vec![script()]),
            ("lock | read", &two, vec![script()]),
            (
                "lock, run by cron",
                &Output::Pipe(STDOUT),
                vec![script(), reads(1, program(5, "cron"))],
            ),
            (
                "script | tee log, in a shell of a remote user",
                &Output::Pipe(STDOUT),
                vec![
                    script(),
                    Process { stdout: Output::Other, command: vec![], ..script() },
                    program(9, "sshd-session"),
                ],
            ),
        ] {
            assert_eq!(pid(stdout, &ancestors), Ok(10), "{what}");
        }
    }

    #[test]
    fn a_subshell_that_uses_the_fence_itself_owns_the_lock() {
        let two = Output::Pipe(2);
        let sub = subshell(11, STDOUT);
        for (what, stdout, ancestors) in [
            ("( f=$(lock); work )", &two, vec![reads(2, sub.clone()), script()]),
            (
                "( f=$(lock 2>file); work )",
                &two,
                vec![subshell(12, 2), reads(2, sub.clone()), script()],
            ),
            ("( lock >file; work )", &Output::Other, vec![sub.clone(), script()]),
            ("( lock | cat; work )", &two, vec![sub.clone(), script()]),
            ("( lock; work )", &Output::Pipe(STDOUT), vec![sub.clone(), script()]),
            (
                "( f=$(lock); work ) &, and the script has ended",
                &two,
                vec![reads(2, sub), program(1, "systemd")],
            ),
        ] {
            assert_eq!(pid(stdout, &ancestors), Ok(11), "{what}");
        }
    }

    #[test]
    fn a_script_is_not_a_subshell_of_the_script_that_runs_it() {
        let inner = |is_forked, command: &[u8]| Process {
            pid: 11,
            is_forked,
            command: command.to_vec(),
            ..reads(2, script())
        };
        for (is_forked, command) in [(false, &script().command[..]), (true, b"bash\0other\0")] {
            let ancestors = [inner(is_forked, command), script()];
            assert_eq!(pid(&Output::Pipe(2), &ancestors), Ok(11));
        }
    }

    #[test]
    fn a_busy_shell_is_looked_at_again() {
        let busy = |process: Process| Process { is_busy: true, ..process };
        let outer = busy(program(1, "init"));
        assert!(!is_unsettled(&[subshell(11, 2), script(), outer.clone()]));
        assert!(is_unsettled(&[subshell(11, 2), busy(script()), outer]));
        assert!(is_unsettled(&[program(9, "timeout"), busy(subshell(11, 2)), script()]));
    }

    #[test]
    fn a_program_that_is_no_shell_owns_the_lock() {
        let python = Process { is_forked: true, ..program(30, "python3.13") };
        assert_eq!(pid(&Output::Pipe(STDOUT), &[python.clone(), script()]), Ok(30));
        assert_eq!(pid(&Output::Pipe(2), &[program(9, "timeout"), python, script()]), Ok(30));
    }

    #[test]
    fn what_cannot_be_known_is_refused() {
        let two = Output::Pipe(2);
        let other = Process { pid: 9, command: b"sh\0".to_vec(), ..reads(STDOUT, script()) };
        let background = Process { stdout: Output::Other, ..subshell(12, STDOUT) };
        let foreign = Process { is_readable: false, ..subshell(11, STDOUT) };
        for (doubt, stdout, ancestors) in [
            (OwnerError::NoParent, &two, vec![]),
            (OwnerError::NoParent, &two, vec![program(3, "sudo")]),
            (OwnerError::Service, &two, vec![program(1, "systemd")]),
            (OwnerError::Service, &two, vec![program(7, "sshd-session"), program(1, "systemd")]),
            (OwnerError::Unreadable, &Output::Other, vec![foreign.clone(), script()]),
            (OwnerError::Unreadable, &two, vec![Process { program: "job".into(), ..foreign }]),
            // function | { read f; work; }
            (OwnerError::Pipeline, &two, vec![subshell(11, 2), script()]),
            // $( ( f=$(lock); work ) >/dev/null & )
            (
                OwnerError::Background,
                &Output::Pipe(3),
                vec![reads(3, background), subshell(11, 2), reads(2, script())],
            ),
            // subprocess.check_output("doorway lock; true", shell=True)
            (
                OwnerError::OtherProgram,
                &Output::Pipe(STDOUT),
                vec![script(), reads(STDOUT, program(9, "python3.13"))],
            ),
            // ssh HOST 'doorway lock; true'
            (
                OwnerError::OtherProgram,
                &Output::Socket(4),
                vec![
                    Process { stdout: Output::Socket(4), ..script() },
                    Process { stdout: Output::Other, ..program(9, "sshd-session") },
                ],
            ),
            // $(./script), which only runs `doorway lock`
            (OwnerError::OtherProgram, &Output::Pipe(STDOUT), vec![script(), other.clone()]),
            (
                OwnerError::OtherProgram,
                &Output::Pipe(STDOUT),
                vec![script(), program(20, "timeout"), subshell(8, STDOUT), other],
            ),
        ] {
            assert_eq!(pid(stdout, &ancestors), Err(doubt), "{ancestors:?}");
        }
    }
}
