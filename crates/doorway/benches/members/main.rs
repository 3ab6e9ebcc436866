//! How a group that agrees on its members behaves when machines come and go: real daemons on this
//! machine.
//!
//! Three machines with the shortest lease, 2 s:
//!
//! - *holder dead, next in*: a client at one node holds a lock, and a client at another one waits.
//!   The first node is killed. The time until the second client is inside, which should be at most
//!   the lease and one second.
//! - *killed, serves again*: a node is killed and started at once. The time from its start to the
//!   first grant that it gives.
//! - *killed, clients reclaim*: the same while clients of the node hold locks. The time from its
//!   start until each of their sessions is served again, and until the first grant to another
//!   client. None of the locks may be lost.
//! - *non-holder dead*: a node is killed that holds nothing. The longest wait for a lock at another
//!   node: one that was last used there, and needs no other node, and one that is new, and needs
//!   all of them.
//! - *restart*, *leave*, *join*: while clients hold 10,000 locks, a node is restarted in good
//!   order, a fourth machine joins, and leaves. The longest wait for a lock at another node.
//! - *long lease*: a lease of a minute, which the group has to keep, beside a lock of etcd and an
//!   ephemeral node of ZooKeeper with three members each, and a key of Redis, on the same disk.
//! - *holder silent, next in*: the time from the last message of a holder to the entry of the next
//!   client in etcd, ZooKeeper and Redis, if the holder falls silent and has 2 s.
//!
//! Five machines with the default lease, 10 s:
//!
//! - *idle*: the part of a core that a daemon uses if nobody asks for anything, and how often it
//!   waits for its disk.
//! - *leader's thread stopped*: the thread `members` of the leader is held up for 3 s. The longest
//!   wait for a lock at that node and at others, and the number of locks that were lost.
//!
//! The last two need strace. All of it takes about half an hour on a machine that has nothing else
//! to do. `--smoke` does all of this once. `--json` prints JSON.
//!
//! Each row that has a goal says by which of its figures it is judged, and whether the goal is met.
//! What is to be below a p99 happens 100 times.

mod crowd;
mod etcd;
#[path = "../../../doorway-page/benches/shared/figures.rs"]
mod figures;
#[path = "../../tests/run/members/group.rs"]
mod group;
mod holds;
mod http;
mod idle;
mod others;
#[path = "../../tests/run/place.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod place;
mod redis;
mod zookeeper;

use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use crowd::LockChoice;
use figures::print;
use group::{Group, LEASE, Machine, Pace};
use others::LockService;
use place::until;

/// The longest wait, in milliseconds, that counts as none: a lock that is free takes some time, and
/// longer on a core that does something else.
const NO_PAUSE: f64 = 10.0;

/// The goal for the entry of the next client, in milliseconds: the lease and one second.
const LEASE_AND_MORE: f64 = LEASE.as_millis() as f64 + 1000.0;

/// The figure by which a row is judged.
#[derive(Clone, Copy)]
enum Figure {
    Median,
    P99,
    Most,
}

/// A line of the table.
struct Row {
    what: String,
    unit: &'static str,
    /// In ascending order.
    values: Vec<f64>,
    /// A figure, and how high it may be.
    goal: Option<(Figure, f64)>,
}

impl Row {
    fn new(what: impl Into<String>, unit: &'static str, mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self { what: what.into(), unit, values, goal: None }
    }

    fn goal(self, figure: Figure, most: f64) -> Self {
        Self { goal: Some((figure, most)), ..self }
    }

    /// The goal in words, and whether it is met; nothing if there is none.
    fn verdict(&self) -> String {
        let Some((figure, goal)) = self.goal else { return String::new() };
        let (word, value) = match figure {
            Figure::Median => ("median", self.median()),
            Figure::P99 => ("p99", self.p99()),
            Figure::Most => ("most", self.most()),
        };
        let verdict = if value <= goal { "met" } else { "MISSED" };
        format!("{word} <= {goal:.1}: {verdict}")
    }

    fn least(&self) -> f64 {
        self.values[0]
    }

    fn median(&self) -> f64 {
        self.values[self.values.len() / 2]
    }

    /// The value that 99 of 100 do not exceed.
    fn p99(&self) -> f64 {
        self.values[(self.values.len() * 99).div_ceil(100) - 1]
    }

    fn most(&self) -> f64 {
        self.values[self.values.len() - 1]
    }
}

/// How much is done.
struct Amount {
    /// How often things happen that are judged by the slowest one.
    times: usize,
    /// How often things happen that are judged by their p99, or each time.
    often: usize,
    idle: Duration,
    /// How many locks are held meanwhile.
    held: usize,
    leases: usize,
    /// How many clients of a node that is killed reclaim their locks, ten each.
    reclaiming: usize,
    /// How long the leader's thread is held up.
    held_up: Duration,
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let has = |word: &str| words.iter().any(|it| it == word);
    let amount = if has("--smoke") {
        let (idle, held_up) = (Duration::from_millis(200), Duration::from_millis(200));
        Amount { times: 1, often: 1, idle, held: 30, leases: 2, reclaiming: 3, held_up }
    } else {
        let (idle, held_up) = (Duration::from_secs(20), Duration::from_secs(3));
        Amount { times: 15, often: 100, idle, held: 10_000, leases: 500, reclaiming: 100, held_up }
    };
    let mut rows = quick(&amount);
    rows.extend(default(&amount));
    if has("--json") {
        let row = |row: &Row| {
            serde_json::json!({ "what": row.what, "unit": row.unit, "times": row.values.len(),
                "least": row.least(), "median": row.median(), "p99": row.p99(),
                "most": row.most(), "goal": row.verdict() })
        };
        println!("{}", serde_json::Value::from(rows.iter().map(row).collect::<Vec<_>>()));
        return;
    }
    let line = |count: &str, figures: [String; 4], goal: &str| {
        let [least, median, p99, most] = figures;
        format!("{count:>5} {least:>9} {median:>9} {p99:>9} {most:>9}  {goal}")
    };
    print("what", line("times", ["least", "median", "p99", "most"].map(str::to_owned), "goal"));
    for row in &rows {
        let (what, count) = (format!("{} [{}]", row.what, row.unit), row.values.len());
        let figures = [row.least(), row.median(), row.p99(), row.most()];
        let figures = figures.map(|figure| format!("{figure:.1}"));
        print(&what, line(&count.to_string(), figures, &row.verdict()).trim_end());
    }
}

/// Three machines with the shortest lease.
fn quick(amount: &Amount) -> Vec<Row> {
    let mut group = Group::founded();
    let Amount { times, often, .. } = *amount;
    let mut rows = vec![
        Row::new("holder dead, next in", "ms", repeat(often, || next_in(&mut group)))
            .goal(Figure::Most, LEASE_AND_MORE),
        Row::new("killed, serves again", "ms", repeat(often, || serves_again(&mut group)))
            .goal(Figure::Most, 1000.0),
    ];
    rows.extend(reclaims(&mut group, times, amount.reclaiming));
    for (what, wish, goal) in [
        ("non-holder dead, slowest lock, used here", LockChoice::Here, NO_PAUSE),
        ("non-holder dead, slowest lock, new", LockChoice::New, LEASE_AND_MORE),
    ] {
        // Each of them takes two leases.
        let values = repeat(times.div_ceil(4), || dead(&mut group, wish));
        rows.push(Row::new(what, "ms", values).goal(Figure::Most, goal));
    }
    let mut others = others::all(&group);
    rows.extend(long_leases(&group, &mut others, amount.leases));
    for other in &mut others {
        let what = format!("{}, holder silent, next in", other.name());
        rows.push(Row::new(what, "ms", repeat(times, || other.next_in())));
    }
    drop(others);
    let held = crowd::hold(&group, amount.held);
    for (what, wish) in [
        ("restart elsewhere, slowest lock, used here", LockChoice::Here),
        ("restart elsewhere, slowest lock, new", LockChoice::New),
    ] {
        let values = repeat(often, || restart(&mut group, wish));
        rows.push(Row::new(what, "ms", values).goal(Figure::P99, 50.0));
    }
    for (which, wish) in [("used here", LockChoice::Here), ("new", LockChoice::New)] {
        let (mut joins, mut leaves) = (vec![], vec![]);
        for _ in 0..often {
            let (join, leave) = join_and_leave(&mut group, wish);
            joins.push(join.as_secs_f64() * 1000.0);
            leaves.push(leave.as_secs_f64() * 1000.0);
        }
        for (what, values) in [("join", joins), ("leave", leaves)] {
            let row = Row::new(format!("{what}, slowest lock, {which}"), "ms", values);
            rows.push(row.goal(Figure::P99, 50.0));
        }
    }
    let lost = held.iter().filter(|grant| grant.is_lost()).count();
    rows.push(lost_locks("locks lost by all of this", lost));
    rows
}

/// A row with how many locks were lost, which should be none.
fn lost_locks(what: &str, lost: usize) -> Row {
    Row::new(what, "count", vec![lost as f64]).goal(Figure::Most, 0.0)
}

/// Leases that the group keeps, beside the locks of other services: the goal is 1.2 times what etcd
/// needs.
fn long_leases(group: &Group, others: &mut [Box<dyn LockService>], leases: usize) -> Vec<Row> {
    let rows = holds::holds(group, others, leases);
    let rows = rows.into_iter().map(|(what, values)| Row::new(what, "ms", values));
    let mut rows: Vec<Row> = rows.collect();
    for pairs in ["acquire", "acquire + release"] {
        let named = |name: &str| {
            rows.iter().position(|row| {
                row.what.strip_prefix(name).is_some_and(|rest| rest == format!(", {pairs}"))
            })
        };
        if let (Some(ours), Some(etcd)) = (named("long lease"), named(etcd::NAME)) {
            rows[ours].goal = Some((Figure::Median, 1.2 * rows[etcd].median()));
        }
    }
    rows
}

/// Five machines with the default lease.
fn default(amount: &Amount) -> Vec<Row> {
    let mut group = Group::on(Machine::local(5), 5, Pace::DEFAULT);
    group.found(5);
    let processes: Vec<u32> = group.nodes.iter().flatten().map(place::Process::id).collect();
    let used = idle::used(&processes, amount.idle);
    let mut rows = vec![Row::new("idle, 5 members, of a core", "%", used).goal(Figure::Most, 1.0)];
    match idle::syncs(&processes, amount.idle) {
        Some(syncs) => rows.push(
            Row::new("idle, 5 members, waits for the disk", "1/s", syncs).goal(Figure::Most, 6.0),
        ),
        None => eprintln!("strace cannot be used: the waits for the disk are not counted"),
    }
    let held = crowd::hold(&group, amount.held);
    let mut could = true;
    for (what, at_leader, wish) in [
        ("leader's thread stopped, slowest lock there, used", true, LockChoice::Here),
        ("leader's thread stopped, slowest lock there, new", true, LockChoice::New),
        ("leader's thread stopped, slowest elsewhere, used", false, LockChoice::Here),
        ("leader's thread stopped, slowest elsewhere, new", false, LockChoice::New),
    ] {
        let leader = group.leader();
        let nodes = (0..5).filter(|node| (*node == leader) == at_leader);
        let clients: Vec<_> = nodes.map(|node| (node, wish)).collect();
        let longest = crowd::longest(&mut group, &clients, |_| {
            could &= idle::hold_up(processes[leader], "members", amount.held_up);
            // What it has caused shows later.
            sleep(amount.held_up / 2);
        });
        let longest = vec![longest.as_secs_f64() * 1000.0];
        rows.push(Row::new(what, "ms", longest).goal(Figure::Most, NO_PAUSE));
    }
    if could {
        let lost = held.iter().filter(|grant| grant.is_lost()).count();
        rows.push(lost_locks("leader's thread stopped, locks lost", lost));
    } else {
        eprintln!("strace cannot be used: the leader's thread was not stopped");
        rows.truncate(2);
    }
    rows
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

/// Kill a node whose clients hold locks, and start it again.
fn reclaims(group: &mut Group, times: usize, clients: usize) -> Vec<Row> {
    let (mut sessions, mut others, mut lost) = (vec![], vec![], 0);
    for _ in 0..times {
        let held = crowd::hold_at(group, 1, clients);
        let waiting = crowd::client(group, 0);
        group.kill(1);
        let begin = Instant::now();
        let (served, other) = scope(|scope| {
            let served = held.iter().enumerate().map(|(number, (client, _))| {
                scope.spawn(move || {
                    let name = format!("again/{number}");
                    drop(client.acquire(&name).enter().expect("its session goes on"));
                    begin.elapsed()
                })
            });
            let served: Vec<_> = served.collect();
            group.start(1);
            group.lock(1, "fresh");
            let other = begin.elapsed();
            (served.into_iter().map(|it| it.join().expect("no panic")).collect::<Vec<_>>(), other)
        });
        sessions.extend(served.into_iter().map(|it| it.as_secs_f64() * 1000.0));
        others.push(other.as_secs_f64() * 1000.0);
        // Another node must know of them.
        drop(waiting.acquire("elsewhere").enter().expect("a free lock"));
        lost += held.iter().flat_map(|(_, grants)| grants).filter(|it| it.is_lost()).count();
        drop(held);
        group.complete(0);
    }
    vec![
        Row::new("killed, clients reclaim, each is served", "ms", sessions)
            .goal(Figure::Most, 1000.0),
        Row::new("killed, clients reclaim, first other grant", "ms", others),
        lost_locks("killed, clients reclaim, locks lost", lost),
    ]
}

/// Kill a node that holds nothing. Returns the slowest lock at another node.
fn dead(group: &mut Group, wish: LockChoice) -> Duration {
    let longest = crowd::longest(group, &[(0, wish)], |group| {
        group.kill(2);
        sleep(LEASE * 2);
    });
    group.start(2);
    group.complete(0);
    group.complete(2);
    longest
}

/// Restart a node in good order. Returns the slowest lock at another node meanwhile.
fn restart(group: &mut Group, wish: LockChoice) -> Duration {
    crowd::longest(group, &[(0, wish), (1, wish)], |group| {
        group.stop(2);
        group.start(2);
        group.complete(2);
    })
}

/// Let a fourth machine join, and then leave. Returns the slowest lock at another node during each.
fn join_and_leave(group: &mut Group, wish: LockChoice) -> (Duration, Duration) {
    group.start(3);
    let add = format!("members add d {}", group.address(3));
    let nodes = [(0, wish), (1, wish)];
    let join = crowd::longest(group, &nodes, |group| {
        until("it is added", || group.output(0, &add).status.success());
        group.complete(3);
        group.complete(0);
    });
    let leave = crowd::longest(group, &nodes, |group| {
        group.answer(0, "members remove d");
        group.complete(0);
    });
    group.kill(3);
    group.wipe(3);
    (join, leave)
}
