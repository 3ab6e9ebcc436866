//! Every lock on the memory of the language, as loom models it: two processes enter twice each.
//!
//! With all its fences a lock excludes, and without any one of them it does not: in all executions
//! with at most three preemptions (fewer for some locks) and a hundred steps of each process. That
//! is evidence, not a proof, also because loom lets each fence see all that earlier fences saw,
//! which the language does not promise. Each process yields only where it truly waits, since loom
//! hides old values from a process that has yielded.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use doorway_threads::algorithms::{ALL, Entry, Task, with};
use doorway_threads::{Algorithm, Process};
use loom as tool;
use loom::cell::UnsafeCell;
use loom::model::Builder;

#[expect(clippy::duplicate_mod, reason = "it is compiled for each tool")]
#[path = "../shared/memory.rs"]
mod memory;

use memory::{Registers, Visitor};

/// The most switches away from a process that could go on, in one execution.
const PREEMPTIONS: usize = 3;

/// Fewer preemptions for locks that would have too many executions with three.
const FEWER: &[(&str, usize)] = &[
    ("de-bruijn", 2),
    ("eisenberg-mcguire", 1),
    ("knuth", 1),
    ("morris", 2),
    ("szymanski", 2),
    ("three-bit", 2),
];

/// The most steps of a process: more than two entries need if it does not wait for long. A process
/// that waits by changing a word again and again would otherwise never end.
const STEPS: usize = 100;

/// More executions than any lock has within those limits.
const MOST: usize = 100_000;

/// Two processes, without some of the fences.
struct Run<'a> {
    dropped: &'a str,
    preemptions: usize,
}

struct LoomResult {
    /// The number of executions.
    executions: usize,
    /// The message of loom, if it found a violation.
    alarm: Option<String>,
}

impl Task for Run<'_> {
    type Output = LoomResult;

    fn run<A: Algorithm>(self) -> LoomResult {
        let mut builder = Builder::new();
        builder.preemption_bound = Some(self.preemptions);
        builder.max_branches = 10_000;
        // Loom compares the number of executions with the limit only at these intervals.
        builder.checkpoint_interval = 1_000;
        builder.max_permutations = Some(MOST);
        let executions = Arc::new(AtomicUsize::new(0));
        let (counter, dropped) = (Arc::clone(&executions), self.dropped.to_owned());
        let two = move || {
            counter.fetch_add(1, Ordering::Relaxed);
            two_processes::<A>(&dropped);
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| builder.check(two)));
        let alarm = outcome.err().map(|payload| match payload.downcast::<String>() {
            Ok(said) => *said,
            Err(payload) => payload.downcast_ref::<&str>().copied().unwrap_or("?").into(),
        });
        LoomResult { executions: executions.load(Ordering::Relaxed), alarm }
    }
}

/// Loom watches the access inside. It raises an alarm if two processes are inside at once, or if
/// one enters that need not have seen what the one before did.
fn two_processes<A: Algorithm>(dropped: &str) {
    let shared = Rc::new((Registers::new::<A>(2), UnsafeCell::new(())));
    let process = |i| {
        let (shared, dropped) = (Rc::clone(&shared), dropped.to_owned());
        move || {
            let (registers, watched) = &*shared;
            let mut visitor = Visitor::<A>::new(Process { i, n: 2 }, registers, &dropped, STEPS);
            let mut visit = || visitor.visit(|| watched.with_mut(|_| ()));
            let _enough = visit() && visit();
        }
    };
    let other = loom::thread::spawn(process(1));
    process(0)();
    other.join().expect("the other process ends");
}

/// The alarm that loom raises about a lock without some of its fences.
fn alarm(entry: &Entry, dropped: &str, preemptions: usize) -> Option<String> {
    let name = entry.info.name;
    let run = Run { dropped, preemptions };
    let LoomResult { executions, alarm } = with(name, run).expect("the name is from the list");
    println!("{name} without {dropped:?}: {executions} executions, {alarm:?}");
    assert!(executions < MOST - 1, "{name} without {dropped:?} was not looked at to the end");
    alarm
}

/// Whether two processes were inside, or one that need not have seen what the one before did.
fn is_violation(said: &str) -> bool {
    said.contains("Causality violation")
}

#[test]
fn with_all_fences_every_lock_excludes() {
    for entry in ALL.iter().filter(|entry| entry.lock) {
        let fewer = FEWER.iter().find(|fewer| fewer.0 == entry.info.name);
        let preemptions = fewer.map_or(PREEMPTIONS, |fewer| fewer.1);
        assert_eq!(alarm(entry, "", preemptions), None, "{}", entry.info.name);
    }
}

#[test]
fn locks_with_fewer_preemptions_are_in_the_list() {
    for (name, preemptions) in FEWER {
        assert!(ALL.iter().any(|entry| entry.lock && entry.info.name == *name), "{name}");
        assert!((1..PREEMPTIONS).contains(preemptions), "{name}");
    }
}

#[test]
fn without_any_one_of_its_fences_no_lock_excludes() {
    for entry in ALL.iter().filter(|entry| entry.lock) {
        for fence in entry.info.fences.chars() {
            let said = alarm(entry, &fence.to_string(), PREEMPTIONS).unwrap_or_default();
            assert!(is_violation(&said), "{} without {fence}: {said:?}", entry.info.name);
        }
    }
}

#[test]
fn a_refuted_algorithm_is_refuted_here_too() {
    let hyman = ALL.iter().find(|entry| entry.info.name == "hyman").unwrap();
    assert!(alarm(hyman, "", PREEMPTIONS).is_some_and(|said| is_violation(&said)));
}
