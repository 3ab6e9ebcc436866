//! The speed of the search in distinct states per second, on the specification of Lamport's
//! algorithm, on one thread and on all. States are counted as TLC counts them.
//!
//! `cargo bench --bench lamport_mutex` takes a few seconds, `-- --full` adds the 37.7 million
//! states of four processes, and `-- --smoke` runs everything at toy size. On a busy machine the
//! CPU time says more than the elapsed time.

#[path = "../tests/lab/lamport_mutex.rs"]
mod lamport_mutex;

use std::time::Instant;

use doorway_lab::check::{self, End, Model, Scope};
use lamport_mutex::LamportMutex;

fn row(size: usize, max_clock: u64, model: &impl Model, threads: usize) {
    let (begin, worked) = (Instant::now(), processor_seconds());
    let scope = Scope { limit: 100_000_000, threads, record: false };
    let (end, progress) = check::search(model, scope);
    let (seconds, worked) = (begin.elapsed().as_secs_f64(), processor_seconds() - worked);
    assert_eq!(end, End::Exhausted);
    println!(
        "{size:>2} {max_clock:>8} {threads:>7} {:>10} {:>11} {:>5} {seconds:>7.2} s \
         {worked:>7.2} s {:>6.2} M/s {:>6} MiB",
        progress.states,
        progress.steps + 1,
        progress.depth + 1,
        progress.states as f64 / seconds / 1e6,
        peak_memory(),
    );
}

/// The CPU time of this program so far in seconds; 0 if the system does not tell.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    ticks as f64 / 100.0
}

/// The peak memory of this program so far in MiB; 0 if the system does not tell.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

fn main() {
    let asked = |flag: &str| std::env::args().any(|arg| arg == flag);
    let smoke = asked("--smoke") || asked("--test");
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    println!(
        " n maxClock threads   distinct   generated depth      time      work distinct     memory"
    );
    let max_clock = if smoke { 3 } else { 6 };
    for threads in [1, all] {
        row(3, max_clock, &LamportMutex::<3>::new(max_clock), threads);
    }
    if smoke || asked("--full") {
        let max_clock = if smoke { 2 } else { 4 };
        row(4, max_clock, &LamportMutex::<4>::new(max_clock), all);
    }
}
