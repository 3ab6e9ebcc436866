//! Whole groups of nodes in processes of their own, with TLS between them, under a referee.

use doorway_node::locks::served;

#[path = "common/mod.rs"]
mod common;
#[path = "cluster/processes.rs"]
mod processes;
#[path = "cluster/referee.rs"]
mod referee;

use processes::{Plan, Processes};
use referee::Referee;

/// Every algorithm serves names of its own; that of permits has more of them than there are nodes.
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

/// Everyone makes its entries, nobody is ever inside against the rules, and all is free at the end.
fn run(size: usize, clients: u64, entries: u64) {
    // As many by each client, and not one too few.
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
