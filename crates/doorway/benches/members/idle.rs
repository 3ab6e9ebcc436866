//! What daemons cost while nobody asks for anything.

use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::place::Process;

/// How many ticks the kernel counts in a second of processor time.
const TICKS: f64 = 100.0;

/// The part of a core that each of these processes uses, in per cent.
pub(crate) fn used(processes: &[u32], time: Duration) -> Vec<f64> {
    let ticks = |process: &u32| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
        let (_, rest) = stat.rsplit_once(')').expect("a name");
        let fields: Vec<&str> = rest.split_whitespace().collect();
        [11, 12].map(|at: usize| fields[at].parse::<f64>().expect("a number")).iter().sum::<f64>()
    };
    let before: Vec<f64> = processes.iter().map(ticks).collect();
    sleep(time);
    let spent = processes.iter().zip(before).map(|(process, before)| ticks(process) - before);
    spent.map(|ticks| ticks / TICKS / time.as_secs_f64() * 100.0).collect()
}

/// How often each of these processes waits for its disk in a second (fsync, fdatasync). None if
/// strace is not installed or not allowed.
pub(crate) fn syncs(processes: &[u32], time: Duration) -> Option<Vec<f64>> {
    let file = |process: &u32| {
        std::env::temp_dir().join(format!("doorway-syncs-{}-{process}", std::process::id()))
    };
    let traces: Vec<Process> = processes
        .iter()
        .map(|process| trace(&["-f", "-e", "trace=fsync,fdatasync"], *process, &file(process)))
        .collect::<Option<_>>()?;
    sleep(time);
    for trace in &traces {
        trace.signal("INT");
    }
    for trace in traces {
        trace.end();
    }
    let count = |process: &u32| {
        let text = fs::read_to_string(file(process)).unwrap_or_default();
        let _ = fs::remove_file(file(process));
        // A call of one thread may be shown in two lines while another thread does something.
        let calls = text.lines().filter(|it| it.contains("sync(") && !it.contains("resumed"));
        calls.count() as f64 / time.as_secs_f64()
    };
    Some(processes.iter().map(count).collect())
}

/// strace of a process or a thread, into a file, once it has begun. None if it is not installed or
/// not allowed.
fn trace(options: &[&str], process: u32, file: &std::path::Path) -> Option<Process> {
    let mut strace = Command::new("strace");
    strace.args(options).arg("-o").arg(file).arg("-p").arg(process.to_string());
    strace.stdin(Stdio::null()).stderr(Stdio::null());
    let mut trace = Process::try_spawn(&mut strace).ok()?;
    sleep(Duration::from_millis(300));
    (!trace.has_ended()).then_some(trace)
}

/// Hold up one thread of a process, by its name, for a time. False if that is not possible.
///
/// A thread that is traced stops at each system call until its tracer lets it go on. So the thread
/// stands still while strace itself is stopped, and the other threads of its process go on.
pub(crate) fn hold_up(process: u32, thread: &str, time: Duration) -> bool {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let named = tasks.map(|task| task.path()).find(|path| {
        fs::read_to_string(path.join("comm")).is_ok_and(|name| name.trim_end() == thread)
    });
    let number = named.and_then(|path| path.file_name()?.to_str()?.parse().ok());
    let Some(number) = number else { return false };
    let Some(trace) = trace(&[], number, "/dev/null".as_ref()) else { return false };
    trace.signal("STOP");
    sleep(time);
    trace.signal("CONT");
    trace.signal("INT");
    trace.end();
    true
}
