//! Every lock on real threads, and what happens there without fences.

use std as tool;
use std::hint::spin_loop;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use doorway_threads::algorithms::peterson::Peterson;
use doorway_threads::algorithms::{ALL, LockTask, with_lock};
use doorway_threads::{Exclusive, Process, Room};

#[path = "../shared/memory.rs"]
mod memory;

use crate::watched::WatchedValue;
use memory::{Registers, Visitor};

/// This number of threads enter again and again for a while.
struct Visits {
    threads: usize,
    time: Duration,
}

impl LockTask for Visits {
    /// The number of entries that the threads have counted each for itself, and that all have
    /// counted in one place.
    type Output = (usize, usize);

    fn run<A: Exclusive>(self) -> (usize, usize) {
        let mut room: Room<A, WatchedValue> =
            Room::new(self.threads, WatchedValue::new()).expect("the lock serves this number");
        let (together, enough) = (&Barrier::new(self.threads + 1), &AtomicBool::new(false));
        let counted = thread::scope(|scope| {
            let visitors = room.seats().enumerate().map(|(i, mut seat)| {
                scope.spawn(move || {
                    together.wait();
                    // Every thread enters at least once.
                    let (mut entries, mut again) = (0, true);
                    while again {
                        again = !enough.load(Ordering::Relaxed);
                        seat.lock().visit(i);
                        entries += 1;
                    }
                    entries
                })
            });
            let visitors: Vec<_> = visitors.collect();
            together.wait();
            thread::sleep(self.time);
            enough.store(true, Ordering::Relaxed);
            visitors.into_iter().map(|visitor| visitor.join().expect("nothing goes wrong")).sum()
        });
        (counted, room.into_inner().entries())
    }
}

#[test]
fn every_lock_lets_one_in_at_a_time() {
    for entry in ALL.iter().filter(|entry| entry.lock) {
        let name = entry.info.name;
        for threads in [2, 4].into_iter().filter(|threads| entry.info.serves(*threads)) {
            let visits = Visits { threads, time: Duration::from_millis(80) };
            let (counted, entries) = with_lock(name, visits).unwrap();
            println!("{name}: {entries} entries of {threads} threads");
            assert_eq!(counted, entries, "{name}");
        }
    }
}

/// Two threads count their entries without an atomic addition. Returns how many entries were lost.
fn lost(dropped: &str, rounds: usize) -> usize {
    let (registers, entries) = (&Registers::new::<Peterson>(2), &AtomicUsize::new(0));
    let together = &Barrier::new(2);
    thread::scope(|scope| {
        for i in 0..2 {
            scope.spawn(move || {
                together.wait();
                let me = Process { i, n: 2 };
                let mut visitor = Visitor::<Peterson>::new(me, registers, dropped, usize::MAX);
                for round in 0..rounds {
                    // Two threads that always wait for each other would never enter at the same
                    // time.
                    (0..round * (i + 7) % 64).for_each(|_| spin_loop());
                    visitor.visit(|| {
                        let found = entries.load(Ordering::Relaxed);
                        (0..5).for_each(|_| spin_loop());
                        entries.store(found + 1, Ordering::Relaxed);
                    });
                }
            });
        }
    });
    2 * rounds - entries.load(Ordering::Relaxed)
}

/// On most machines lost entries show within a moment that fences matter, but no machine has to
/// show it. So only the variant with fences is asserted.
#[test]
fn without_fences_petersons_algorithm_may_lose_entries() {
    let (rounds, begin) = (20_000, Instant::now());
    let mut entries = 0;
    while begin.elapsed() < Duration::from_secs(5) {
        entries += 2 * rounds;
        assert_eq!(lost("", rounds), 0, "with its fences");
        let lost = lost("ab", rounds);
        if lost > 0 {
            println!(
                "without fences {lost} entries were lost, of {entries}, {:?}",
                begin.elapsed()
            );
            return;
        }
    }
    println!("this machine did not lose one of {entries} entries without fences");
}

/// Processes come one after another, in an order that repeats late, and never two at once.
struct SoloVisits(usize);

impl LockTask for SoloVisits {
    /// Whether every process was let in, in a few steps.
    type Output = bool;

    fn run<A: Exclusive>(self) -> bool {
        let (n, registers) = (self.0, Registers::new::<A>(self.0));
        let visitor = |i| Visitor::<A>::new(Process { i, n }, &registers, "", 100_000);
        let mut visitors: Vec<_> = (0..n).map(visitor).collect();
        (0..500).all(|round| visitors[round * round / 7 % n].visit(|| ()))
    }
}

/// `try_lock` relies on this, and an entry without contention should cost no more.
#[test]
fn a_process_that_is_alone_enters_without_waiting() {
    for entry in ALL.iter().filter(|entry| entry.lock) {
        for n in (2..=5).filter(|n| entry.info.serves(*n)) {
            assert_eq!(
                with_lock(entry.info.name, SoloVisits(n)),
                Some(true),
                "{}",
                entry.info.name
            );
        }
    }
}
