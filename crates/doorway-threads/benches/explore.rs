//! Measures the explorer: different states per second on one thread.
//!
//! `cargo bench --bench explore` takes a few seconds; `-- --smoke` runs everything at toy size. On
//! a busy machine the CPU time says more than the elapsed time.

use std::time::Instant;

use doorway_threads::algorithms::dijkstra::Dijkstra;
use doorway_threads::check::Check;

/// The CPU time of this program so far, if the system tells it.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    ticks as f64 / 100.0
}

fn row(times: u64, what: &str, check: &Check) {
    let (begin, worked) = (Instant::now(), processor_seconds());
    let mut states = 0;
    for _ in 0..times {
        let report = check.run();
        assert_eq!(report.exclusion, Some(true));
        states = report.progress.states;
    }
    let (seconds, worked) = (begin.elapsed().as_secs_f64(), processor_seconds() - worked);
    let rate = |seconds: f64| (times * states) as f64 / seconds / 1e6;
    let n = check.n;
    println!(
        "{n} {what:<20} {times:>3} times {states:>8} states: {:>5.2} M/s, {:>5.2} M/s while at work",
        rate(seconds),
        rate(worked.max(0.01)),
    );
}

fn main() {
    let smoke = std::env::args().any(|arg| arg == "--smoke" || arg == "--test");
    let (n, times) = if smoke { (2, 1) } else { (4, 20) };
    println!("Dijkstra's algorithm on one thread; goal: 1 M/s for exclusion among 4.");
    let mut exclusion = Check::of::<Dijkstra>(n);
    exclusion.waiting = false;
    row(times, "exclusion", &exclusion);
    row(times.min(3), "and waiting", &Check::of::<Dijkstra>(n));
    row(times, "exclusion, buffered", &Check::of::<Dijkstra>(n.min(3)).buffered(""));
}
