//! How fast a node is, in one run with the bare connections that it uses and with other lock
//! servers.
//!
//! `cargo xtask bench node` takes two minutes and needs a quiet machine. `--json` prints the
//! results for programs, `--smoke` runs a little of everything without the other servers, and
//! `--alone` runs everything without them. `cargo xtask bench node --before REVISION` compares two
//! builds of this benchmark.
//!
//! Waking a sleeping core may take longer than everything else. So whatever passes between threads
//! is measured twice: with all threads on one core, and spread over two.

#![expect(clippy::unwrap_used, reason = "where nothing can be prepared, nothing can be measured")]

#[path = "../../tests/common/mod.rs"]
mod common;
mod entry;
mod group;
mod handover;
mod memory;
mod messages;
mod raw;
mod rivals;
#[path = "../shared/mod.rs"]
mod shared;

use std::alloc::System;
use std::time::Duration;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

use shared::pin::Placement;
use shared::samples::Samples;
use shared::table::{Row, Table, progress};

/// Counting costs a few nanoseconds for each allocation, of which a hand-over makes some.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The algorithms whose hand-overs are measured; the first is the default of a node.
const ALGORITHMS: [&str; 3] = ["carvalho-roucairol", "suzuki-kasami", "naimi-trehel"];

/// How much is measured.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    /// How many turns each of the compared things gets.
    rounds: usize,
    /// How long each turn takes.
    turn: Duration,
    /// How many pairs of lock and unlock make one sample.
    batch: u32,
    /// How many names are kept and held.
    names: usize,
    /// Are the other lock servers measured too?
    rivals: bool,
}

impl Extent {
    const FULL: Self = Self {
        rounds: 3,
        turn: Duration::from_millis(500),
        batch: 64,
        names: 1_000_000,
        rivals: true,
    };

    const SMOKE: Self =
        Self { rounds: 1, turn: Duration::from_millis(20), batch: 4, names: 1_000, rivals: false };
}

fn main() {
    let given = |word: &str| std::env::args().any(|arg| arg == word);
    let mut extent = if given("--smoke") { Extent::SMOKE } else { Extent::FULL };
    extent.rivals &= !given("--alone");
    let mut table = Table::default();
    entry::measure(extent, &mut table);
    for placement in Placement::available() {
        between_nodes(extent, placement, &mut table);
        if extent.rivals {
            rivals::measure(extent, placement, &mut table);
        }
    }
    messages::measure(extent, &mut table);
    memory::measure(extent, &mut table);
    print!("{}", if given("--json") { table.json() } else { table.text() });
}

/// What passes between nodes, beside the bare connection that it passes over. They take turns, so
/// that other load on the machine affects all in the same way.
fn between_nodes(extent: Extent, placement: Placement, table: &mut Table) {
    let mut raw = Samples::default();
    let mut first = Samples::default();
    let mut single = Samples::default();
    let mut loads = ALGORITHMS.map(|_| handover::Traffic::default());
    for round in 1..=extent.rounds {
        progress(&format!("between nodes, {placement}, {round} of {}", extent.rounds));
        raw.extend(raw::round_trips(extent, placement));
        first.extend(handover::first_acquires(extent, placement));
        single.extend(handover::one_by_one(extent, placement));
        for (load, algorithm) in loads.iter_mut().zip(ALGORITHMS) {
            load.add(handover::under_load(extent, placement, algorithm));
        }
    }
    let trip = raw.median();
    table.add(Row::of("TLS round trip, 64 bytes").at(placement).times(raw));
    let most = if placement == Placement::OneCore { "4 x" } else { "2.5 x" };
    let row = Row::of("first acquire, permission elsewhere").at(placement).times(first);
    table.add(row.against("a round trip", trip).goal(most));
    let row = Row::of("hand-over between 3 nodes, one at a time").at(placement).times(single);
    table.add(row.against("one way", trip / 2.0).goal("2 x"));
    for (load, algorithm) in loads.into_iter().zip(ALGORITHMS) {
        let row = Row::of(&format!("hand-over between 3 nodes, {algorithm}")).at(placement);
        let row = row.messages(load.messages_per_grant()).load(load.load);
        table.add(row.against("one way", trip / 2.0).goal("2 x"));
    }
}
