//! Whole nodes with the real engine in a simulated network, with TLS between them. A seed decides
//! which faults happen: kills, power failures, cut and slow networks, disks that stall or are full,
//! machines that are added and removed, and other leases.
//!
//! A referee knows who is inside. A client counts as inside until it leaves or its guard says that
//! the lock is lost. The clients of a killed node count as inside until the lease of the node ends,
//! because they may live in other processes; the next process of the node can hold their locks for
//! them. After the last fault every client gets every lock once more.
//!
//! Two runs of a seed are alike but not equal: openraft polls its channels in an order that no seed
//! decides.
//!
//! `DOORWAY_SEED=7` runs one seed, and `DOORWAY_SEED=1000..2000` runs a range.

mod host;
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
