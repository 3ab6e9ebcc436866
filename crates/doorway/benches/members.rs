//! How a group that agrees on its members behaves when machines come and go: real daemons on this
//! machine, with the shortest lease (2 s).
//!
//! - *holder dead, next in*: a client at one node holds a lock, and a client at another one waits.
//!   The first node is killed. The time until the second client is inside, which should be at most
//!   the lease and one second.
//! - *killed, serves again*: a node is killed and started at once. The time from its start to the
//!   first grant that it gives.
//! - *restart elsewhere, slowest lock*: one node stops in good order and starts again. The slowest
//!   `doorway run` at another node meanwhile, the start of its processes included.
//! - *idle*: the part of a core that a daemon uses if nobody asks for anything.
//!
//! `--smoke` does all of this once. `--json` prints JSON.

#[path = "../tests/run/members/group.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod group;
#[path = "../tests/run/place.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod place;

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use group::Group;
use place::until;

/// How many ticks the kernel counts in a second of processor time.
const TICKS: f64 = 100.0;

/// A line of the table.
struct Row {
    what: &'static str,
    unit: &'static str,
    /// In ascending order.
    values: Vec<f64>,
}

impl Row {
    fn new(what: &'static str, unit: &'static str, mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self { what, unit, values }
    }

    fn least(&self) -> f64 {
        self.values[0]
    }

    fn median(&self) -> f64 {
        self.values[self.values.len() / 2]
    }

    fn most(&self) -> f64 {
        self.values[self.values.len() - 1]
    }
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let has = |word: &str| words.iter().any(|it| it == word);
    let (times, idle) = if has("--smoke") {
        (1, Duration::from_millis(200))
    } else {
        (20, Duration::from_secs(20))
    };
    let mut group = Group::founded();
    let rows = [
        Row::new("holder dead, next in", "ms", repeat(times, || next_in(&mut group))),
        Row::new("killed, serves again", "ms", repeat(times, || serves_again(&mut group))),
        Row::new("restart elsewhere, slowest lock", "ms", repeat(times, || slowest(&mut group))),
        Row::new("idle, of a core", "%", (0..3).map(|node| used(&group, node, idle)).collect()),
    ];
    if has("--json") {
        let row = |row: &Row| {
            serde_json::json!({ "what": row.what, "unit": row.unit, "times": row.values.len(),
                "least": row.least(), "median": row.median(), "most": row.most() })
        };
        println!("{}", serde_json::Value::from(rows.iter().map(row).collect::<Vec<_>>()));
        return;
    }
    println!(
        "{:<38} {:>5} {:>9} {:>9} {:>9}",
        "3 nodes, lease 2 s", "times", "least", "median", "most"
    );
    for row in &rows {
        let (what, count) = (format!("{} [{}]", row.what, row.unit), row.values.len());
        let (least, median, most) = (row.least(), row.median(), row.most());
        println!("{what:<38} {count:>5} {least:>9.1} {median:>9.1} {most:>9.1}");
    }
}

fn repeat(times: usize, mut measure: impl FnMut() -> Duration) -> Vec<f64> {
    (0..times).map(|_| measure().as_secs_f64() * 1000.0).collect()
}

/// Kill the node of a holder. Returns when the next client is inside.
fn next_in(group: &mut Group) -> Duration {
    let holder = group.run(2, "x", "sleep 1000");
    until("the lock is held", || group.answer(0, "who x").contains("fence"));
    let waiter = group.run(0, "-w 60 x", "true");
    until("the other client waits", || group.answer(0, "who x").contains("waiting"));
    let begin = Instant::now();
    group.kill(2);
    assert!(waiter.end().success());
    let time = begin.elapsed();
    drop(holder);
    group.start(2);
    group.complete(0);
    group.complete(2);
    time
}

/// Kill a node and start it again. Returns when it has granted a lock.
fn serves_again(group: &mut Group) -> Duration {
    group.kill(1);
    let begin = Instant::now();
    group.start(1);
    group.lock(1, "fresh");
    let time = begin.elapsed();
    group.complete(0);
    time
}

/// Restart a node in good order. Returns the slowest lock at another node meanwhile.
fn slowest(group: &mut Group) -> Duration {
    group.lock(0, "y");
    let over = AtomicBool::new(false);
    let known = group.command(0, "run -w 60 y -- true");
    scope(|scope| {
        let slowest = scope.spawn(|| {
            let mut slowest = Duration::ZERO;
            while !over.load(Ordering::Relaxed) {
                let mut command = Command::new(known.get_program());
                command.args(known.get_args());
                command.envs(known.get_envs().filter_map(|(key, value)| Some((key, value?))));
                let begin = Instant::now();
                assert!(command.status().expect("it runs").success());
                slowest = slowest.max(begin.elapsed());
            }
            slowest
        });
        group.stop(2);
        group.start(2);
        group.complete(2);
        over.store(true, Ordering::Relaxed);
        slowest.join().expect("it measures")
    })
}

/// The part of a core that a node uses, in per cent.
fn used(group: &Group, node: usize, time: Duration) -> f64 {
    let process = group.nodes[node].as_ref().expect("it runs").id();
    let ticks = || {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
        let (_, rest) = stat.rsplit_once(')').expect("a name");
        let fields: Vec<&str> = rest.split_whitespace().collect();
        [11, 12].map(|at: usize| fields[at].parse::<f64>().expect("a number")).iter().sum::<f64>()
    };
    let before = ticks();
    sleep(time);
    (ticks() - before) / TICKS / time.as_secs_f64() * 100.0
}
