//! The speed of the simulator in events per second with all checks on, compared with a binary heap
//! that does nothing else.
//!
//! `cargo xtask bench simulate` takes a minute. `--smoke` runs everything at toy size, and `--json`
//! prints the rates for programs. `--before REVISION` compares two builds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use doorway_core::Shape;
use doorway_lab::simulate::{self, Delay, Dice, Distribution, Workload};

#[path = "shared/rates.rs"]
mod rates;
use rates::Rates;

/// One run to measure.
struct Run {
    size: usize,
    entries: u64,
    workload: Workload,
    delay: Distribution,
}

/// Events per second of a standard binary heap that holds `pending` events and does nothing else:
/// each event is taken out and put back with a later time. A simulator that uses such a heap cannot
/// be faster.
fn bare_heap(pending: usize, events: u64) -> f64 {
    let mut dice = Dice::new(1);
    let mut heap: BinaryHeap<_> =
        (0..pending).map(|id| Reverse((dice.below(1 << 20), id))).collect();
    let begin = Instant::now();
    for _ in 0..events {
        if let Some(Reverse((at, id))) = heap.pop() {
            heap.push(Reverse((at + dice.below(1 << 20), id)));
        }
    }
    events as f64 / begin.elapsed().as_secs_f64()
}

fn row(rates: &mut Rates, name: &str, run: Run, limit: f64) {
    let (size, delay) = (run.size, run.delay.to_string());
    let begin = Instant::now();
    let ran = simulate::run(name, size, &Shape::default(), |options| {
        options.workload = run.workload;
        options.delay = Delay::Distribution(run.delay);
        options.entries = run.entries;
    });
    let seconds = begin.elapsed().as_secs_f64();
    let (report, _) = ran.expect("a possible run");
    assert_eq!(report.violation, None);
    let rate = report.events as f64 / seconds;
    rates.line(&format!(
        "{name:<16} {size:>8} {delay:<18} {:>6.2} M/s {:>5.2} {:>10.3} {:>7} MiB",
        rate / 1e6,
        rate / limit,
        report.messages_per_entry,
        peak_memory(),
    ));
    rates.add(&format!("{name} {size} {delay}"), rate);
}

/// The peak memory of this program so far in MiB; 0 if the system does not tell.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

fn main() {
    let smoke = std::env::args().any(|arg| arg == "--smoke" || arg == "--test");
    let scale = |full: u64| if smoke { (full / 1000).max(10) } else { full };
    let limit = bare_heap(10_000, scale(10_000_000));
    let mut rates = Rates::new();
    rates.line(&format!("a binary heap of 10,000 events alone: {:.2} M/s", limit / 1e6));
    rates.line("algorithm               n delay              events  heaps  msgs/entry    memory");
    let closed = |think| Workload::Closed { think: Distribution::Exponential(think) };
    for delay in [
        Distribution::Constant(1.0),
        Distribution::Uniform(0.5, 1.5),
        Distribution::Exponential(1.0),
    ] {
        for (size, entries) in [(10, 1_000_000), (100, 100_000), (1_000, 10_000)] {
            let delay = delay.clone();
            let run = Run { size, entries: scale(entries), workload: closed(10.0), delay };
            row(&mut rates, "ricart-agrawala", run, limit);
        }
    }
    let plane = if smoke { 13 } else { 10_303 };
    let run = Run {
        size: plane,
        entries: scale(20_000),
        workload: closed(10.0),
        delay: Distribution::Uniform(0.5, 1.5),
    };
    row(&mut rates, "maekawa", run, limit);
    for name in ["raymond-tree", "naimi-trehel"] {
        for size in [1_000, 1_000_000] {
            let size = if smoke { size / 1000 + 2 } else { size };
            let (entries, workload) = (scale(1_000_000), closed(size as f64 / 2.0));
            let run = Run { size, entries, workload, delay: Distribution::Uniform(0.5, 1.5) };
            row(&mut rates, name, run, limit);
        }
    }
    rates.finish();
}
