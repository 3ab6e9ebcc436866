//! The search counts the same states as TLC: the figures published with the TLA+ examples.

use doorway_search::{End, Scope, search};

use crate::dijkstra_mutex::DijkstraMutex;

const SCOPE: Scope = Scope { limit: 2_000_000, threads: 2, record: false };

#[test]
fn dijkstra_mutex_has_the_published_counts() {
    let (end, progress) = search(&DijkstraMutex::new(3), SCOPE);
    assert_eq!(end, End::Exhausted);
    // The first state is one that TLC does not have; its successors are the initial states of TLC.
    // TLC's depth is the number of states on the longest of the shortest paths.
    let counts = (progress.states - 1, progress.steps, progress.depth);
    assert_eq!(counts, (90_882, 282_810, 54));
}

#[test]
fn without_the_look_two_processes_get_in() {
    let spoiled = DijkstraMutex { looks: false, ..DijkstraMutex::new(3) };
    let (end, _) = search(&spoiled, SCOPE);
    assert!(matches!(&end, End::Wrong(_)), "{end:?}");
}
