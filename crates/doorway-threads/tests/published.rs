//! The search counts what TLC counts: the figures published with the TLA+ examples.

mod dijkstra_mutex;

use dijkstra_mutex::DijkstraMutex;
use doorway_search::{End, Scope, search};

const SCOPE: Scope = Scope { limit: 2_000_000, threads: 2, record: false };

#[test]
fn dijkstra_mutex_has_the_published_counts() {
    let (end, progress) = search(&DijkstraMutex::new(3), SCOPE);
    assert_eq!(end, End::Exhausted);
    // The state before the beginning is ours; what it leads to are the first states of TLC, whose
    // depth is the number of states on the longest of the shortest ways.
    let counts = (progress.states - 1, progress.steps, progress.depth);
    assert_eq!(counts, (90_882, 282_810, 54));
}

#[test]
fn who_does_not_look_is_not_alone() {
    let spoiled = DijkstraMutex { looks: false, ..DijkstraMutex::new(3) };
    let (end, _) = search(&spoiled, SCOPE);
    assert!(matches!(&end, End::Wrong(_)), "{end:?}");
}
