//! Measures entering and leaving without contention, beside the locks of other crates in the same
//! run.
//!
//! `cargo bench --bench uncontended` takes a few seconds; `-- --smoke` runs everything once.

use std::time::Duration;

use doorway_threads::bench::{Contender, Plan, Row, Spread};

/// A lock of this crate, one of another crate, and how many times the time of that one ours may
/// take.
const RATIOS: [(&str, Contender, f64); 3] = [
    ("ticket", Contender::SpinTicket, 1.5),
    ("ttas", Contender::Spin, 1.5),
    ("peterson", Contender::Std, 3.0),
];

fn nanoseconds(rows: &[Row], name: &str) -> Spread {
    let row = rows.iter().find(|row| row.contender.name() == name).expect("a lock");
    row.alone.spread().expect("it was measured")
}

fn main() {
    let smoke = std::env::args().any(|arg| arg == "--smoke" || arg == "--test");
    let (runs, length) = if smoke { (1, 0) } else { (201, 1) };
    let length = Duration::from_millis(length);
    let plan = Plan { contenders: Contender::all(), crowds: Vec::new(), runs, length };
    let rows = plan.run(&mut |_| true).expect("no threads compete");
    println!("Nanoseconds to enter and leave alone, the median of {runs} runs, least to most.");
    for row in &rows {
        let spread = row.alone.spread().expect("it was measured");
        let (median, least, most) = (spread.median, spread.least, spread.most);
        println!("{:<22} {median:>8.2}   {least:.2} to {most:.2}", row.contender.name());
    }
    println!();
    for (ours, theirs, goal) in RATIOS {
        let (own, other) = (nanoseconds(&rows, ours), nanoseconds(&rows, theirs.name()));
        let (medians, least) = (own.median / other.median, own.least / other.least);
        let theirs = theirs.name();
        println!("{ours} against {theirs}: {medians:.2} times, at best {least:.2}; goal: {goal}");
    }
}
