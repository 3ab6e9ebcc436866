//! Groups of nodes, each node in a process of its own with TLS between them, watched by a referee.

use doorway_node::locks::served;

mod processes;
mod referee;

use processes::{Plan, Processes};
use referee::Referee;

/// Every algorithm serves names of its own. The one with permits has more permits than there are
/// nodes.
fn plan(algorithms: &[&str], clients: u64, entries: u64) -> Plan {
    let permits = |algorithm: &&str| if **algorithm == *"raymond-k" { PERMITS } else { 1 };
    let rules = algorithms
        .iter()
        .map(|algorithm| format!("{algorithm}/*,{algorithm},{}", permits(algorithm)));
    let names = algorithms
        .iter()
        .flat_map(|algorithm| ["one", "two"].map(|name| format!("{algorithm}/{name}")));
    Plan { rules: rules.collect(), names: names.collect(), clients, entries }
}

const PERMITS: usize = 7;

fn permits(name: &str) -> usize {
    if name.starts_with("raymond-k/") { PERMITS } else { 1 }
}

/// All clients make their entries, no two are inside against the rules, and every lock is free at
/// the end.
fn run(size: usize, clients: u64, entries: u64) {
    // Each client makes the same number of entries, rounded up.
    let each = entries.div_ceil(size as u64 * clients) * clients;
    let mut processes = Processes::new(size, plan(&served(), clients, each));
    let referee = Referee::listen(&processes.directory().join("referee"), permits);
    processes.start_all();
    (0..size).for_each(|node| processes.await_done(node));
    processes.stop_all();
    referee.assert_fair();
    referee.assert_free();
    assert_eq!(referee.entries(), each * size as u64);
    assert!(referee.entries() >= entries);
}

#[test]
fn three_nodes_enter_ten_thousand_times() {
    run(3, 4, 10_000);
}

#[test]
fn five_nodes_enter_ten_thousand_times() {
    run(5, 4, 10_000);
}

/// Each of three nodes is killed and started again a hundred times while all of them work.
#[test]
fn killed_nodes_come_back_and_work_goes_on() {
    let algorithms = ["carvalho-roucairol", "suzuki-kasami", "maekawa", "readers-writers"];
    let mut processes = Processes::new(3, plan(&algorithms, 3, u64::MAX >> 1));
    let referee = Referee::listen(&processes.directory().join("referee"), permits);
    processes.start_all();
    for round in 0..300 {
        let before = referee.entries();
        referee.await_entries(before + 30);
        referee.assert_fair();
        processes.kill(round % 3);
        referee.await_end(processes.name(round % 3));
        processes.start(round % 3);
    }
    let before = referee.entries();
    referee.await_entries(before + 100);
    referee.assert_fair();
}
