//! How many messages an entry costs, counted where they are sent in a group of real nodes.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use doorway_core::Needs;
use doorway_core::algorithms::ALL;
use doorway_node::{Config, LockCounters, Node, RuleConfig};

use crate::common::{group, rule, start};

const SIZE: usize = 3;

fn rules() -> Vec<RuleConfig> {
    let served = ALL.iter().filter(|entry| entry.info.served);
    served.map(|entry| rule(entry.info.name, 1)).collect()
}

/// The messages of one algorithm that all nodes have sent so far.
fn sent(nodes: &[Node], algorithm: &str) -> u64 {
    let counts = |node: &Node| -> LockCounters {
        let rules = node.counters().rules;
        let rule = rules.into_iter().find(|rule| rule.algorithm == algorithm);
        rule.expect("every served algorithm has a rule").counts
    };
    nodes.iter().map(|node| counts(node).sent).sum()
}

/// The messages of any kind that the links of all nodes have sent so far.
fn on_links(nodes: &[Node]) -> u64 {
    let links = nodes.iter().flat_map(|node| node.counters().links);
    links.map(|(_, link)| link.traffic.messages_out).sum()
}

/// Nodes that serve already, so that no more messages are sent for their start.
async fn serving(configs: &[Config]) -> Vec<Node> {
    let nodes = start(configs).await;
    for node in &nodes {
        drop(node.lock("first").await.expect("a lock"));
    }
    settle(&nodes).await;
    nodes
}

/// Wait until no message is under way: as many have arrived as were sent.
async fn settle(nodes: &[Node]) {
    loop {
        let total = |count: fn(&LockCounters) -> u64| -> u64 {
            let rules = nodes.iter().flat_map(|node| node.counters().rules);
            rules.map(|rule| count(&rule.counts)).sum()
        };
        if total(|counts| counts.sent) == total(|counts| counts.received) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// Counts the messages of entries one at a time, by each node in turn, and of repeated entries by
/// one node.
#[tokio::test]
async fn entries_cost_what_their_algorithm_claims() {
    let (_scratch, configs) = group(SIZE, &rules());
    let nodes = serving(&configs).await;
    for entry in ALL.iter().filter(|entry| entry.info.served) {
        let name = entry.info.name;
        let shape = doorway_core::Shape::default();
        let arranged = entry.info.group(SIZE, &shape).expect("three nodes are a group");
        let claim = entry.info.messages;
        let (least, most) = ((claim.least.of)(&arranged), (claim.most.of)(&arranged));
        if entry.info.needs == Needs::Graph {
            // The first use of a name pays for the wave, which is not part of the claim.
            drop(nodes[0].lock(&format!("{name}/x")).await.expect("a lock"));
            settle(&nodes).await;
        }
        for round in 0..6 {
            let (before, links) = (sent(&nodes, name), on_links(&nodes));
            let node = &nodes[[0, 0, 1, 2, 1, 1][round]];
            drop(node.lock(&format!("{name}/x")).await.expect("a lock"));
            settle(&nodes).await;
            let cost = sent(&nodes, name) - before;
            assert_eq!(on_links(&nodes) - links, cost, "{name}: nothing else is sent");
            let cost = cost as f64;
            assert!((least..=most).contains(&cost), "{name}: {cost} of {least} to {most}");
        }
    }
}

#[tokio::test]
async fn the_node_that_was_inside_last_enters_again_without_a_message() {
    let (_scratch, configs) = group(SIZE, &rules());
    let nodes = serving(&configs).await;
    for algorithm in ["carvalho-roucairol", "suzuki-kasami", "naimi-trehel", "raymond-tree"] {
        let handle = nodes[1].open(&format!("{algorithm}/x")).expect("a name");
        drop(handle.lock().await.expect("a lock"));
        settle(&nodes).await;
        let before = (sent(&nodes, algorithm), on_links(&nodes));
        for _ in 0..1000 {
            drop(handle.lock().await.expect("a lock"));
            drop(handle.try_lock().expect("a name").expect("a permission that is here"));
        }
        assert_eq!((sent(&nodes, algorithm), on_links(&nodes)), before, "{algorithm}");
    }
}

/// If the next node is known, a release sends one message, and when it arrives the next node
/// enters.
#[tokio::test]
async fn a_hand_over_is_one_message() {
    let (_scratch, configs) = group(SIZE, &rules());
    let nodes = serving(&configs).await;
    for algorithm in ["carvalho-roucairol", "ricart-agrawala", "suzuki-kasami", "naimi-trehel"] {
        let name = format!("{algorithm}/x");
        let guard = nodes[0].lock(&name).await.expect("a lock");
        let mut next = pin!(nodes[2].lock(&name));
        let asked = next.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(asked, Poll::Pending));
        settle(&nodes).await;
        let (before, links) = (sent(&nodes, algorithm), on_links(&nodes));
        drop(guard);
        let guard = next.await.expect("a lock");
        assert_eq!(sent(&nodes, algorithm) - before, 1, "{algorithm}");
        assert_eq!(on_links(&nodes) - links, 1, "{algorithm}");
        drop(guard);
        settle(&nodes).await;
    }
}
