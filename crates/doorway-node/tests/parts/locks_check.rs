//! Explores every algorithm that can serve, behind the queue of a node's clients, in small groups:
//! no two conflicting clients are inside, fences grow, hand-overs stay within their bound, no
//! client waits forever, and every lock is free at the end.

use doorway_core::Algorithm;
use doorway_core::Mode::{Exclusive, Shared};
use doorway_core::algorithms::{self, Task};
use doorway_node::locks::{Rule, served};

use crate::every_way::{Client, World};

/// More states than any of the searches has.
const LIMIT: u64 = 1_000_000;

struct Explore<'a> {
    rule: &'a Rule,
    clients: &'a [Client],
}

impl Task for Explore<'_> {
    type Output = u64;

    fn run<A: Algorithm + 'static>(self) -> u64 {
        let report = doorway_search::explore(&World::<A>::new(self.rule, self.clients), LIMIT);
        report.expect_holds()
    }
}

fn explore(algorithm: &str, size: usize, permits: u32, handovers: u32, clients: &[Client]) -> u64 {
    let rule = Rule::new(algorithm, size, permits, handovers).expect("a rule");
    let states = algorithms::with(algorithm, Explore { rule: &rule, clients }).expect("served");
    println!("{algorithm} of {size}, {permits} permits, {handovers} hand-overs: {states} states");
    states
}

/// Clients that make exclusive requests, given by their nodes and number of requests.
fn alone<const COUNT: usize>(clients: [(u32, u8); COUNT]) -> [Client; COUNT] {
    clients.map(|(node, asks)| Client { node, mode: Exclusive, asks })
}

#[test]
fn two_nodes_whose_clients_ask_again() {
    for algorithm in served() {
        for handovers in 0..3 {
            let states = explore(algorithm, 2, 1, handovers, &alone([(0, 2), (0, 1), (1, 2)]));
            if (algorithm, handovers) == ("carvalho-roucairol", 1) {
                assert_eq!(states, 6447, "a change of what is explored should be a decision");
            }
        }
    }
}

#[test]
fn three_nodes() {
    for algorithm in served() {
        for handovers in 0..3 {
            // If every node is told everything, or votes on everything, two nodes must suffice.
            let clients: &[_] = match algorithm {
                "lamport" | "majority" | "weighted-majority" => &alone([(0, 1), (0, 1), (1, 1)]),
                _ => &alone([(0, 1), (0, 1), (1, 1), (2, 1)]),
            };
            let states = explore(algorithm, 3, 1, handovers, clients);
            if (algorithm, handovers) == ("suzuki-kasami", 1) {
                assert_eq!(states, 45_374, "a change of what is explored should be a decision");
            }
        }
    }
}

/// The first member starts the wave, and nobody asks it: a node that is asked wakes it.
#[test]
fn a_wave_that_sleeps_is_woken() {
    let states = [
        explore("raymond-echo", 2, 1, 1, &alone([(1, 2)])),
        explore("raymond-echo", 3, 1, 1, &alone([(1, 1), (2, 1)])),
        explore("raymond-echo", 4, 1, 0, &alone([(2, 1)])),
    ];
    assert!(states.iter().all(|states| *states > 10), "{states:?}");
}

#[test]
fn readers_and_writers() {
    let client = |(node, mode)| Client { node, mode, asks: 1 };
    let two = [(0, Shared), (0, Exclusive), (0, Shared), (1, Shared), (1, Exclusive)].map(client);
    let three = [(0, Shared), (0, Exclusive), (1, Shared), (2, Exclusive)].map(client);
    let readers_writers =
        |size, clients| [0, 1, 2].map(|n| explore("readers-writers", size, 1, n, clients));
    let states = [readers_writers(2, &two), readers_writers(3, &three)];
    assert_eq!(states, [[80_305, 85_151, 90_607], [443_435, 446_683, 457_279]]);
}

#[test]
fn permits_fewer_and_more_than_nodes() {
    let clients = alone([(0, 1), (0, 1), (0, 1), (1, 2)]);
    let two = |permits| [0, 1, 2].map(|n| explore("raymond-k", 2, permits, n, &clients));
    let states = [two(2), two(3)];
    assert_eq!(states, [[171_061, 194_885, 229_587], [219_772, 255_663, 314_034]]);
    let three = |permits| explore("raymond-k", 3, permits, 1, &alone([(0, 1), (0, 1), (1, 1)]));
    assert_eq!([2, 4].map(three), [35_232, 37_371]);
}
