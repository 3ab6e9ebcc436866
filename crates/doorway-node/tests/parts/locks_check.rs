//! Explores every algorithm that can serve, behind the queue of a node's clients, in small groups:
//! no two conflicting clients are inside, fences grow, hand-overs stay within their bound, no
//! client waits forever, and every lock is free at the end.

use doorway_core::Algorithm;
use doorway_core::Mode::{Exclusive, Shared};
use doorway_core::algorithms::{self, Task};
use doorway_node::locks::{Rule, served};

use crate::every_way::{Client, World};

struct Explore<'a> {
    rule: &'a Rule,
    clients: &'a [Client],
}

impl Task for Explore<'_> {
    type Output = usize;

    fn run<A: Algorithm + 'static>(self) -> usize {
        let ways = World::<A>::new(self.rule, self.clients).explore();
        ways.assert_live();
        ways.states
    }
}

fn explore(
    algorithm: &str,
    size: usize,
    permits: u32,
    handovers: u32,
    clients: &[Client],
) -> usize {
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
                assert_eq!(states, 4793, "a change of what is explored should be a decision");
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
                assert_eq!(states, 44_324, "a change of what is explored should be a decision");
            }
        }
    }
}

#[test]
fn readers_and_writers() {
    let client = |(node, mode)| Client { node, mode, asks: 1 };
    let two = [(0, Shared), (0, Exclusive), (0, Shared), (1, Shared), (1, Exclusive)].map(client);
    let three = [(0, Shared), (0, Exclusive), (1, Shared), (2, Exclusive)].map(client);
    for handovers in 0..3 {
        explore("readers-writers", 2, 1, handovers, &two);
        explore("readers-writers", 3, 1, handovers, &three);
    }
}

#[test]
fn permits_fewer_and_more_than_nodes() {
    for permits in [2, 3] {
        for handovers in 0..3 {
            let clients = alone([(0, 1), (0, 1), (0, 1), (1, 2)]);
            explore("raymond-k", 2, permits, handovers, &clients);
        }
    }
    explore("raymond-k", 3, 2, 1, &alone([(0, 1), (0, 1), (1, 1)]));
    explore("raymond-k", 3, 4, 1, &alone([(0, 1), (0, 1), (1, 1)]));
}
