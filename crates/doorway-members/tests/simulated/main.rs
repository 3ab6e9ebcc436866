//! Whole nodes with the real engine on simulated machines, with TLS between them. A seed decides
//! how fast the clock of each machine runs, and which faults happen: kills, power failures, pauses,
//! networks that are cut (in one direction, between two nodes, between two sides, or with one node
//! that reaches both sides) or slow, disks that stall or are full, machines that are added and
//! removed, other leases, and locks that an operator breaks.
//!
//! A referee knows who is inside. A client counts as inside until it leaves or its guard says that
//! the lock is lost. The clients of a killed node count as inside until the lease of the node ends,
//! because they may live in other processes; the next process of the node can hold their locks for
//! them. Some clients let the group keep their lock for longer: those count as inside for that
//! time, whatever becomes of their node, or until an operator breaks the lock. All nodes must agree
//! on the record, and it must show in the end what the group has answered. After the last fault
//! every client gets every lock once more.
//!
//! Two runs of a seed are alike but not equal: openraft polls its channels in an order that no seed
//! decides.
//!
//! `DOORWAY_SEED=7` runs one seed, and `DOORWAY_SEED=1000..2000` runs a range.

mod answers;
mod client;
mod host;
mod machine;
mod network;
mod operator;
mod plan;
mod referee;
mod run;

use std::ops::Range;

/// How many seeds are run.
const SEEDS: u64 = 40;

/// Into how many tests the seeds are divided, which may run in parallel.
const PARTS: u64 = 4;

fn seeds() -> Range<u64> {
    let Ok(asked) = std::env::var("DOORWAY_SEED") else { return 0..SEEDS };
    let number = |text: &str| text.parse::<u64>().expect("DOORWAY_SEED is N or N..M");
    match asked.split_once("..") {
        Some((from, to)) => number(from)..number(to),
        None => number(&asked)..number(&asked) + 1,
    }
}

fn run_part(part: u64) {
    for seed in seeds().filter(|seed| seed % PARTS == part) {
        if let Err(wrong) = run::run(seed) {
            panic!("DOORWAY_SEED={seed}: {wrong}");
        }
    }
}

macro_rules! parts {
    ($($name:ident: $part:literal),*) => { $(#[test] fn $name() { run_part($part); })* };
}

parts!(seeds_of_part_0: 0, seeds_of_part_1: 1, seeds_of_part_2: 2, seeds_of_part_3: 3);
