//! What is claimed of each algorithm is what the explorer finds, no more and no less; and its
//! fences are enough where writes are buffered.

use doorway_threads::algorithms::peterson::Peterson;
use doorway_threads::algorithms::ttas::TestAndTestAndSet;
use doorway_threads::algorithms::{ALL, Entry, Task, with};
use doorway_threads::check::{Check, Report};
use doorway_threads::{Algorithm, Info};

/// Explore so many processes.
struct Explore(usize);

impl Task for Explore {
    type Output = Report;

    fn run<A: Algorithm>(self) -> Report {
        Check::<A>::new(self.0).run()
    }
}

/// Explore two processes with buffered writes, leaving out a fence.
struct Buffered<'a>(&'a str);

impl Task for Buffered<'_> {
    type Output = Report;

    fn run<A: Algorithm>(self) -> Report {
        Check::<A>::buffered(2, self.0).run()
    }
}

fn found(entry: &Entry, n: usize) -> Report {
    with(entry.info.name, Explore(n)).expect("a name of the list")
}

/// The numbers of processes to try: few enough for every schedule to be gone through in moments.
fn sizes(info: &Info) -> impl Iterator<Item = usize> + use<> {
    info.fewest..=info.most.min(3)
}

#[test]
fn locks_keep_what_is_claimed_and_no_more() {
    for entry in ALL.iter().filter(|entry| entry.lock) {
        for n in sizes(&entry.info) {
            let (report, claims) = (found(entry, n), entry.info.claims);
            let case = format!("{} for {n}: {report:?}", entry.info.name);
            assert!(claims.exclusion && claims.deadlock_free, "{case}");
            assert_eq!(report.exclusion, Some(true), "{case}");
            assert_eq!(report.deadlock_free, Some(true), "{case}");
            assert_eq!(report.lockout_free, Some((claims.lockout_free)(n)), "{case}");
            assert_eq!(report.fifo, Some((claims.fifo)(n)), "{case}");
            assert_eq!(report.bypass, Some((claims.bypass)(n)), "{case}");
            assert!(report.meets(&claims, n) && report.schedule.is_empty(), "{case}");
        }
    }
}

#[test]
fn models_do_not_keep_what_is_claimed() {
    for entry in ALL.iter().filter(|entry| !entry.lock) {
        let fails = |n: usize| {
            let report = found(entry, n);
            !report.meets(&entry.info.claims, n) && !report.schedule.is_empty()
        };
        let mut sizes = entry.info.fewest..=entry.info.most.min(4);
        assert!(sizes.any(fails), "{} is not refuted", entry.info.name);
    }
}

/// Needed by the memory model of the language, but not where writes merely wait in order.
const BEYOND_BUFFERS: [(&str, char); 3] =
    [("peterson", 'a'), ("peterson-n", 'a'), ("peterson-tree", 'a')];

#[test]
fn each_fence_is_needed_and_all_are_enough() {
    for info in ALL.iter().filter(|entry| entry.lock).map(|entry| entry.info) {
        let exclusion = |dropped: &str| {
            with(info.name, Buffered(dropped)).expect("a name of the list").exclusion
        };
        assert_eq!(exclusion(""), Some(true), "{}", info.name);
        for fence in info.fences.chars() {
            let spared = BEYOND_BUFFERS.contains(&(info.name, fence));
            let found = exclusion(&fence.to_string());
            assert_eq!(found, Some(spared), "{} without fence {fence}", info.name);
        }
    }
}

#[test]
fn who_gives_up_disturbs_nobody() {
    // Both may give up again and again, which no lock can help; but who stays gets in.
    let peterson = Check::<Peterson>::new(2).giving_up().run();
    assert_eq!((peterson.exclusion, peterson.lockout_free), (Some(true), Some(true)));
    for n in 2..=3 {
        let ttas = Check::<TestAndTestAndSet>::new(n).giving_up().run();
        assert_eq!(ttas.exclusion, Some(true), "{n}");
    }
}
