//! Every algorithm among more processes than can be explored, on schedules that shuttle picks.
//!
//! Shuttle's memory keeps everything in order, so this is about the logic and not about fences.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use doorway_threads::algorithms::{ALL, Entry, Task, with};
use doorway_threads::{Algorithm, Process};
use shuttle as tool;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};

#[expect(clippy::duplicate_mod, reason = "it is compiled for each tool")]
#[path = "../shared/memory.rs"]
mod memory;

use memory::{Registers, Visitor};

/// The seed, on which alone the order of steps depends.
const SEED: u64 = 1986;

/// The number of entries of each process.
const ROUNDS: usize = 3;

#[derive(Clone, Copy, Debug)]
enum Schedules {
    /// Any process may take the next step.
    Random,
    /// The process with the first rank takes the next step, and the ranks change this number of
    /// times.
    Ranked(usize),
}

/// A number of processes on a number of schedules.
struct Run {
    n: usize,
    schedules: Schedules,
    count: usize,
}

impl Task for Run {
    /// Whether at most one process was inside all the time.
    type Output = bool;

    fn run<A: Algorithm>(self) -> bool {
        let mut config = Config::new();
        config.failure_persistence = FailurePersistence::None;
        // A schedule that always prefers a waiting process is abandoned at some point. What was
        // seen until then is still valid.
        config.max_steps = MaxSteps::ContinueAfter(20_000);
        let scheduler: Box<dyn Scheduler + Send> = match self.schedules {
            Schedules::Random => Box::new(RandomScheduler::new_from_seed(SEED, self.count)),
            Schedules::Ranked(changes) => {
                Box::new(PctScheduler::new_from_seed(SEED, changes, self.count))
            }
        };
        let runner = Runner::new(scheduler, config);
        let run = || runner.run(move || processes::<A>(self.n));
        let Ok(count) = catch_unwind(AssertUnwindSafe(run)) else { return false };
        assert_eq!(count, self.count, "shuttle stopped early");
        true
    }
}

fn processes<A: Algorithm>(n: usize) {
    let shared = Arc::new((Registers::new::<A>(n), AtomicUsize::new(0)));
    let process = |i| {
        let shared = Arc::clone(&shared);
        move || {
            let (registers, inside) = &*shared;
            let mut visitor = Visitor::<A>::new(Process { i, n }, registers, "", usize::MAX);
            for _ in 0..ROUNDS {
                visitor.visit(|| {
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two are inside");
                    inside.fetch_sub(1, Ordering::SeqCst);
                });
            }
        }
    };
    let others: Vec<_> = (1..n).map(|i| shuttle::thread::spawn(process(i))).collect();
    process(0)();
    for other in others {
        other.join().expect("the other process ends");
    }
}

/// Whether at most one process is inside at a time, on all of these schedules.
fn excludes(entry: &Entry, n: usize, schedules: Schedules, count: usize) -> bool {
    with(entry.info.name, Run { n, schedules, count }).expect("the name is from the list")
}

fn every_lock_excludes(schedules: Schedules, count: usize) {
    for entry in ALL.iter().filter(|entry| entry.lock) {
        for n in (2..=6).filter(|n| entry.info.serves(*n)) {
            assert!(excludes(entry, n, schedules, count), "{} among {n}", entry.info.name);
        }
    }
}

#[test]
fn every_lock_excludes_on_random_schedules() {
    every_lock_excludes(Schedules::Random, 300);
}

#[test]
fn every_lock_excludes_on_ranked_schedules() {
    every_lock_excludes(Schedules::Ranked(3), 300);
}

#[test]
fn a_refuted_algorithm_is_found_out() {
    let hyman = ALL.iter().find(|entry| entry.info.name == "hyman").unwrap();
    assert!(!excludes(hyman, 2, Schedules::Random, 1_000));
    assert!(!excludes(hyman, 2, Schedules::Ranked(3), 1_000));
}
