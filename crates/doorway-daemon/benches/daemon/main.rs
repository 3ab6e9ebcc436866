//! The speed of the service through its socket, measured in one run with the alternatives.
//!
//! `cargo xtask bench daemon` takes two minutes and needs a quiet machine. `--json` prints the
//! results as JSON, `--smoke` runs a little of everything without the other servers, and `--alone`
//! runs everything without them. `--threads N` gives the service N threads instead of the one that
//! `doorway serve --local` has. `--only PART` measures one part alone, which helps with profiling.
//! `--before PROGRAM` compares groups of nodes with those of another build of this benchmark, in
//! turns. `cargo xtask bench daemon --before REVISION` compares all rows of two builds.
//!
//! Redis and `PostgreSQL` are used over their Unix sockets, as our service is.
//!
//! The service is a process of its own: this program, started with `--serve`. To wake a sleeping
//! core may take longer than everything else. So everything is measured twice: with all processes
//! on one core, and with the servers on another core than their clients.

#![expect(clippy::unwrap_used, reason = "without its preparation the benchmark cannot run")]

mod bare;
mod command;
mod common;
mod crowd;
mod group;
mod kept;
mod killed;
mod memory;
mod names;
mod ours;
mod pairs;
mod servers;
#[path = "../../../doorway-node/benches/shared/mod.rs"]
mod shared;
mod spread;

use std::time::Duration;

use ours::Doorway;
use servers::Servers;
use shared::pin::Placement;
use shared::rivals::Postgres;
use shared::table::Table;

/// How much is measured.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    /// How many rounds there are. In each round, everything that is compared has one turn.
    rounds: usize,
    /// How long each turn takes.
    turn: Duration,
    /// How many times a holder is killed.
    kills: usize,
    /// How many times a command is run.
    runs: usize,
    /// How many locks one session holds.
    held: usize,
    /// Are the other servers measured too?
    rivals: bool,
}

impl Extent {
    const FULL: Self = Self {
        rounds: 3,
        turn: Duration::from_millis(500),
        kills: 30,
        runs: 40,
        held: 100_000,
        rivals: true,
    };

    const SMOKE: Self = Self {
        rounds: 1,
        turn: Duration::from_millis(20),
        kills: 2,
        runs: 2,
        held: 1000,
        rivals: false,
    };
}

/// A part of the benchmark, with its name.
type Part = (&'static str, fn(Extent, &Servers, &mut Table));

/// What is measured in each placement.
const PARTS: [Part; 8] = [
    ("one", pairs::one_client),
    ("many", pairs::many_clients),
    ("crowd", crowd::measure),
    ("spread", spread::measure),
    ("names", names::measure),
    ("kept", kept::measure),
    ("killed", killed::measure),
    ("command", command::measure),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["--serve", address, data, threads] => return ours::serve(address, data, threads),
        ["--serve-member", file] => return group::serve(file),
        ["--hold", "doorway", address] => return killed::hold::<Doorway>(address),
        ["--hold", "postgres", address] => return killed::hold::<Postgres>(address),
        _ => {}
    }
    let mut extent = if words.contains(&"--smoke") { Extent::SMOKE } else { Extent::FULL };
    extent.rivals &= !words.contains(&"--alone");
    let only = words.iter().skip_while(|word| **word != "--only").nth(1);
    let wanted = |part: &str| only.is_none_or(|only| *only == part);
    let mut table = Table::default();
    for placement in Placement::available() {
        let servers = Servers::start(extent, placement, &mut table);
        for (_, measure) in PARTS.into_iter().filter(|(part, _)| wanted(part)) {
            measure(extent, &servers, &mut table);
        }
    }
    if wanted("memory") {
        memory::measure(extent, &mut table);
    }
    print!("{}", if words.contains(&"--json") { table.json() } else { table.text() });
}
