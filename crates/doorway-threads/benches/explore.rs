//! Distinct states a second of the explorer, on one thread.
//!
//! `cargo bench --bench explore` takes a minute; `-- --smoke` runs everything at toy size. On a busy
//! machine the seconds that the processor worked say more than those that went by.

use std::time::Instant;

use doorway_threads::algorithms::dijkstra::Dijkstra;
use doorway_threads::check::Check;

/// How long the processors have worked for this program so far, where the system tells.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    ticks as f64 / 100.0
}

fn row(n: usize, what: &str, check: &Check<Dijkstra>) {
    let (begin, worked) = (Instant::now(), processor_seconds());
    let report = check.run();
    let (seconds, worked) = (begin.elapsed().as_secs_f64(), processor_seconds() - worked);
    assert_eq!(report.exclusion, Some(true));
    let states = report.progress.states;
    let rate = |seconds: f64| states as f64 / seconds.max(1e-9) / 1e6;
    println!(
        "{n} {what:<18} {states:>9} states {seconds:>7.2} s {:>5.2} M/s, {worked:>7.2} s of work {:>5.2} M/s",
        rate(seconds),
        rate(worked.max(0.01)),
    );
}

fn main() {
    let smoke = std::env::args().any(|arg| arg == "--smoke" || arg == "--test");
    let n = if smoke { 2 } else { 4 };
    println!("Dijkstra's algorithm on one thread; goal: 1 M/s for exclusion among 4.");
    let mut exclusion = Check::new(n);
    exclusion.waiting = false;
    row(n, "exclusion", &exclusion);
    row(n, "and waiting", &Check::new(n));
    row(n.min(3), "buffered, exclusion", &Check::buffered(n.min(3), ""));
}
