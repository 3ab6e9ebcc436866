//! The doors of the service beside each other and beside Redis, `PostgreSQL` and etcd, over a Unix
//! socket and over TCP, in one run.
//!
//! `cargo xtask bench doors` takes a minute and needs a quiet machine. `--json` prints the
//! results as JSON, and `--smoke` runs a little of everything without the other servers.
//!
//! Nearly everything is one client and one lock that no other client wants: acquire, and a release
//! that is acknowledged. Over TCP our service always has TLS, so it is compared with other servers
//! over TLS; without TLS they are shown, too. With etcd clients there is also a lock that eight of
//! them want, and the CPU time of the server.

#![expect(clippy::unwrap_used, reason = "without its preparation the benchmark cannot run")]

#[path = "../daemon/common.rs"]
mod common;
mod etcd;
mod pairs;
mod python;
mod servers;
#[path = "../../../doorway-node/benches/shared/mod.rs"]
mod shared;
mod wire;

use std::io;
use std::time::Duration;

use tokio::task::LocalSet;

use etcd::Grpc;
use pairs::{Http, Pair, Postgres, Resp, Session, measure};
use python::Python;
use servers::Servers;
use shared::pin::Placement;
use shared::samples::Samples;
use shared::table::{Row, Table, progress};
use wire::Way;

/// The lock.
const LOCK: &str = "orders/1";

/// The token of the client over TCP.
const TOKEN: &str = "a-token-for-the-benchmark";

/// Our door for etcd clients.
const ETCD_DOOR: &str = "Doorway, etcd protocol";

/// Our door for Redis clients.
const REDIS_DOOR: &str = "Doorway, Redis protocol";

/// Our own sessions.
const SESSIONS: &str = "Doorway, sessions";

/// The blocking client of our package for Python.
const PYTHON: &str = "Python client, Doorway";

/// How much is measured.
#[derive(Clone, Copy)]
struct Extent {
    /// How many rounds there are. In each round, everything that is compared has one turn.
    rounds: usize,
    /// How long each turn takes.
    turn: Duration,
    /// Are the other servers measured too?
    rivals: bool,
}

/// What is measured: a name, the way, the server with which it is compared, and its times.
struct Line {
    what: &'static str,
    way: Way,
    times: Samples,
    run: Run,
}

type Run = fn(Placement, &Way, Duration) -> io::Result<Samples>;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if let ["--serve", file] = words[..] {
        return servers::serve(file);
    }
    let full = Extent { rounds: 3, turn: Duration::from_millis(500), rivals: true };
    let smoke = Extent { rounds: 1, turn: Duration::from_millis(20), rivals: false };
    let extent = if words.contains(&"--smoke") { smoke } else { full };
    let mut table = Table::default();
    let python = Python::find();
    if python.is_none() {
        table.note("Python: not measured, there is none.".to_owned());
    }
    for placement in Placement::available() {
        let servers = Servers::start(placement, extent.rivals, &mut table);
        doors(extent, placement, &servers, &mut table);
        etcd::measure(extent, placement, &servers, &mut table);
        if let Some(python) = &python {
            from_python(extent, placement, python, &servers, &mut table);
        }
    }
    print!("{}", if words.contains(&"--json") { table.json() } else { table.text() });
}

/// Measure pairs of one client on a thread of its own.
fn run<P: Pair + 'static>(placement: Placement, way: &Way, turn: Duration) -> io::Result<Samples> {
    let way = way.clone();
    let thread = placement.spawn(0, move |runtime| {
        LocalSet::new().block_on(&runtime, async { measure::<P>(&way, turn).await })
    });
    thread.join().unwrap()
}

/// Everything that is compared, in the order of the table.
fn lines(servers: &Servers) -> Vec<Line> {
    let of = |what, ways: &[Way], run: Run| {
        let line = move |way: &Way| Line { what, way: way.clone(), times: Samples::NONE, run };
        ways.iter().map(line).collect::<Vec<_>>()
    };
    let ours = &servers.ours;
    let redis = servers.redis.iter().flat_map(|it| of("Redis", &it.ways, run::<Resp>));
    let postgres =
        servers.postgres.iter().flat_map(|it| of("PostgreSQL", &it.ways, run::<Postgres>));
    let etcd = servers.etcd.iter().flat_map(|it| of("etcd", &it.ways, run::<Grpc>));
    redis
        .chain(postgres)
        .chain(etcd)
        .chain(of(SESSIONS, &ours.sessions, run::<Session>))
        .chain(of(REDIS_DOOR, &ours.redis, run::<Resp>))
        .chain(of("Doorway, HTTP", &ours.http, run::<Http>))
        .chain(of(ETCD_DOOR, &ours.etcd, run::<Grpc>))
        .collect()
}

/// Measure each door over each way.
fn doors(extent: Extent, placement: Placement, servers: &Servers, table: &mut Table) {
    let mut lines = lines(servers);
    for round in 1..=extent.rounds {
        progress(&format!("doors, {placement}, {round} of {}", extent.rounds));
        for line in &mut lines {
            match (line.run)(placement, &line.way, extent.turn) {
                Ok(times) => line.times.extend(times),
                Err(why) => {
                    let (what, way) = (line.what, line.way.name());
                    assert!(!what.starts_with("Doorway"), "{what}, {way}: {why}");
                    table.note(format!("{what}, {way}, {placement}: not measured, {why}."));
                }
            }
        }
    }
    let beside: Vec<(&str, &str, f64)> = lines
        .iter()
        .filter(|line| line.times.count() > 0)
        .map(|line| (line.what, line.way.name(), line.times.median()))
        .collect();
    for Line { what, way, times, .. } in lines {
        if times.count() == 0 {
            continue;
        }
        let median = times.median();
        let mut row = Row::of(&format!("acquire + release, {what}, {}", way.name()))
            .at(placement)
            .times(times);
        let rivals: &[&'static str] = match what {
            ETCD_DOOR => &["etcd"],
            _ if what.starts_with("Doorway") => &["Redis", "PostgreSQL"],
            _ => &[],
        };
        for rival in rivals {
            let theirs = beside.iter().find(|(it, over, _)| (it, *over) == (rival, way.name()));
            if let Some((.., theirs)) = theirs {
                let ratio = median / theirs;
                row = row.ratio(rival, ratio);
                row = match (what, *rival) {
                    (ETCD_DOOR, _) => row.judged("0.4 x etcd", ratio <= 0.4),
                    (REDIS_DOOR, "Redis") => row.judged("1.2 x Redis", ratio <= 1.2),
                    (SESSIONS, "Redis") if placement == Placement::TwoCores => {
                        row.judged("0.8 x Redis", ratio <= 0.8)
                    }
                    _ => row,
                };
            }
        }
        table.add(row);
    }
}

/// Measure blocking clients in Python, over the Unix socket.
fn from_python(
    extent: Extent,
    placement: Placement,
    python: &Python,
    servers: &Servers,
    table: &mut Table,
) {
    let rows = python.rows(servers);
    let mut all: Vec<Samples> = rows.iter().map(|_| Samples::NONE).collect();
    for round in 1..=extent.rounds {
        progress(&format!("Python, {placement}, {round} of {}", extent.rounds));
        for ((what, kind, way), times) in rows.iter().zip(&mut all) {
            match python.pairs(placement, kind, way, extent.turn) {
                Ok(more) => times.extend(more),
                Err(why) => panic!("{what}: {why}"),
            }
        }
    }
    let with_redis = rows.iter().position(|(what, ..)| *what == "redis-py, Redis");
    let with_redis = with_redis.map(|at| all[at].median());
    for ((what, ..), times) in rows.iter().zip(all) {
        let median = times.median();
        let mut row = Row::of(&format!("acquire + release, {what}, Unix socket")).at(placement);
        row = row.times(times);
        if let Some(theirs) = with_redis.filter(|_| *what != "redis-py, Redis") {
            let ratio = median / theirs;
            row = row.ratio("redis-py with Redis", ratio);
            if *what == PYTHON {
                row = row.judged("1.5 x redis-py", ratio <= 1.5);
            }
        }
        table.add(row);
    }
}
