//! Every lock on the memory of the language, as loom models it: two processes enter twice each.
//!
//! With all its fences nothing goes wrong, and without any one of them something does. Each process
//! yields only where it truly waits, since loom hides old values from who has yielded.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use doorway_threads::algorithms::{ALL, Entry, Task, with};
use doorway_threads::{Algorithm, Process};
use loom as tool;
use loom::cell::UnsafeCell;
use loom::model::Builder;

mod memory;

use memory::{Registers, Visitor};

/// So many switches from a process that could go on are looked at in one execution.
const PREEMPTIONS: usize = 3;

/// A process that has waited so often in one execution stops. Most never do; those that try again
/// by changing a word would otherwise never end.
const PATIENCE: usize = 10;

/// After so many executions without an alarm, no more are looked at.
const MOST: usize = 40_000;

/// The locks that have more executions than that.
const CUT_SHORT: &[&str] = &[];

/// What loom cannot settle, and why: the name, the fence that is left out, and whether there is an
/// alarm nevertheless.
const UNSETTLED: &[(&str, &str, bool, &str)] = &[];

/// Two processes, without some of the fences.
struct Run<'a> {
    dropped: &'a str,
}

struct Found {
    /// How many executions there were.
    executions: usize,
    /// What loom said, if it found something.
    alarm: Option<String>,
}

impl Task for Run<'_> {
    type Output = Found;

    fn run<A: Algorithm>(self) -> Found {
        let mut builder = Builder::new();
        builder.preemption_bound = Some(PREEMPTIONS);
        builder.max_branches = 10_000;
        // The number of executions is looked at only so often.
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
        Found { executions: executions.load(Ordering::Relaxed), alarm }
    }
}

/// Loom watches what is reached inside: two at once, or one who need not have seen what the one
/// before did, raise an alarm.
fn two_processes<A: Algorithm>(dropped: &str) {
    let shared = Rc::new((Registers::new::<A>(2), UnsafeCell::new(())));
    let process = |i| {
        let (shared, dropped) = (Rc::clone(&shared), dropped.to_owned());
        move || {
            let (registers, watched) = &*shared;
            let mut visitor = Visitor::<A>::new(Process { i, n: 2 }, registers, &dropped, PATIENCE);
            let mut visit = || visitor.visit(|| watched.with_mut(|_| ()));
            let _patient = visit() && visit();
        }
    };
    let other = loom::thread::spawn(process(1));
    process(0)();
    other.join().expect("the other process ends");
}

/// Compare what loom finds with what is to be expected, and say what was found.
fn check(entry: &Entry, dropped: &str, expected: bool) {
    let name = entry.info.name;
    let found = with(name, Run { dropped }).expect("the name is from the list");
    println!("{name} without {dropped:?}: {} executions, {:?}", found.executions, found.alarm);
    let unsettled =
        UNSETTLED.iter().find(|unsettled| (name, dropped) == (unsettled.0, unsettled.1));
    let expected = unsettled.map_or(expected, |unsettled| unsettled.2);
    if let Some(said) = found.alarm {
        assert!(expected, "{name} without {dropped:?}: {said}");
        assert!(said.contains("Causality violation"), "{name} without {dropped:?}: {said}");
    } else {
        assert!(!expected, "{name} without {dropped:?}: no alarm");
        let cut_short = found.executions + 1 >= MOST;
        assert_eq!(cut_short, CUT_SHORT.contains(&name), "{name}: {}", found.executions);
    }
}

#[test]
fn with_all_fences_every_lock_excludes() {
    for entry in ALL.iter().filter(|entry| entry.lock) {
        check(entry, "", false);
    }
}

#[test]
fn without_any_one_of_its_fences_no_lock_excludes() {
    for entry in ALL.iter().filter(|entry| entry.lock) {
        for fence in entry.info.fences.chars() {
            check(entry, &fence.to_string(), true);
        }
    }
}

#[test]
fn a_refuted_algorithm_is_refuted_here_too() {
    let hyman = ALL.iter().find(|entry| entry.info.name == "hyman").unwrap();
    check(hyman, "", true);
}
