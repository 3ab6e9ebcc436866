//! Groups of nodes in a simulated network, with TLS between them. A seed decides which faults
//! happen, and the same seed leads to the same events at the same times.
//!
//! `DOORWAY_SEED=7` runs one seed, and `DOORWAY_SEED=1000..2000` runs a range.

use std::ops::Range;

mod client;
mod log;
mod network;
mod plan;
mod run;
mod stage;

/// How many seeds are run.
const SEEDS: u64 = 512;

/// Into how many tests the seeds are divided, which may run in parallel.
const PARTS: u64 = 8;

fn seeds() -> Range<u64> {
    let Ok(asked) = std::env::var("DOORWAY_SEED") else { return 0..SEEDS };
    let number = |text: &str| text.parse::<u64>().expect("DOORWAY_SEED is N or N..M");
    match asked.split_once("..") {
        Some((from, to)) => number(from)..number(to),
        None => number(&asked)..number(&asked) + 1,
    }
}

/// Prints the seed that was running if the test panics.
struct SeedPrinter(u64);

impl Drop for SeedPrinter {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("DOORWAY_SEED={} shows it again", self.0);
        }
    }
}

fn run_part(part: u64) {
    for seed in seeds().filter(|seed| seed % PARTS == part) {
        let _named = SeedPrinter(seed);
        let [first, second] =
            [(); 2].map(|()| run::run(seed).unwrap_or_else(|wrong| panic!("{wrong}")));
        let same = first.iter().zip(&second).take_while(|(one, two)| one == two).count();
        assert_eq!(first.get(same), second.get(same), "two runs differ after {same} events");
    }
}

macro_rules! parts {
    ($($name:ident: $part:literal),*) => { $(#[test] fn $name() { run_part($part); })* };
}

parts!(
    seeds_of_part_0: 0, seeds_of_part_1: 1, seeds_of_part_2: 2, seeds_of_part_3: 3,
    seeds_of_part_4: 4, seeds_of_part_5: 5, seeds_of_part_6: 6, seeds_of_part_7: 7
);
