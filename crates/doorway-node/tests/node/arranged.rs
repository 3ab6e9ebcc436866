//! Every arrangement of the members, in groups of real nodes.

use std::sync::Arc;
use std::time::Duration;

use doorway_node::{Node, RuleConfig};
use parking_lot::Mutex;
use tokio::time::timeout;

use crate::common::book::Book;
use crate::common::visit::{Visit, assert_fair};
use crate::common::{group, start};
use crate::given_up::{counts, settle};

/// How often each node enters each lock.
const ENTRIES: usize = 3;

/// A rule for one lock, which has the name of the arrangement.
fn rule(algorithm: &str, permits: u32, keys: &[(&str, &str)]) -> RuleConfig {
    let said: Vec<String> = keys.iter().map(|(key, value)| format!("{key}-{value}")).collect();
    let name = format!("{algorithm}/{}", said.join("/").replace([' ', '*'], ""));
    let mut rule = RuleConfig::new(name, algorithm, permits);
    for (key, value) in keys {
        rule.arrangement.set(key, value).expect("a value that is right");
    }
    rule
}

/// Every arrangement for members n1 to nN; both 3 and 7 are the sizes of projective planes.
pub(crate) fn every(size: usize) -> Vec<RuleConfig> {
    let constructions = [
        "projective-plane",
        "degenerate-plane",
        "grid",
        "triangle",
        "triangle:1",
        "triangle:2",
        "cyclic",
        "majority",
        "weighted",
    ];
    let quorums = |made: &str| rule("maekawa", 1, &[("quorums", made)]);
    let mut rules: Vec<RuleConfig> = constructions.map(quorums).to_vec();
    // Each member with n2; each member but n1 below its predecessor; more votes for later members.
    let all = |one: &dyn Fn(usize) -> String, mark: &str, first: usize| {
        (first..=size).map(one).collect::<Vec<_>>().join(mark)
    };
    let sets = all(&|node| format!("n{node}=n2,n{node}"), "; ", 1);
    let weights = all(&|node| format!("n{node}={}", node - 1), ", ", 1);
    let parents = all(&|node| format!("n{node}=n{}", node / 2), ", ", 2);
    rules.push(quorums(&sets));
    for algorithm in ["maekawa-eager", "maekawa-unordered", "maekawa-sequential", "maekawa-cyclic"]
    {
        for made in ["grid", &sets] {
            rules.push(rule(algorithm, 1, &[("quorums", made)]));
        }
    }
    rules.push(rule("maekawa", 1, &[("quorums", "weighted"), ("weights", &weights)]));
    rules.push(rule("weighted-majority", 1, &[("weights", &weights)]));
    for tree in ["chain", "star", "balanced:3", &parents] {
        rules.push(rule("raymond-tree", 1, &[("tree", tree)]));
        for algorithm in ["suzuki-kasami", "raymond-echo"] {
            rules.push(rule(algorithm, 1, &[("topology", "tree"), ("tree", tree)]));
        }
    }
    for algorithm in ["suzuki-kasami", "raymond-echo"] {
        for topology in ["mesh", "ring", "tree"] {
            rules.push(rule(algorithm, 1, &[("topology", topology)]));
        }
    }
    for seats in ["1", "2"] {
        rules.push(rule("raymond-k", 3, &[("permits_per_node", seats)]));
    }
    rules.push(rule("central", 1, &[("coordinator", "n3")]));
    rules.push(rule("central", 1, &[]));
    rules
}

/// All nodes want all locks at once, and enter each of them several times.
pub(crate) async fn contend(nodes: &[Node], rules: &[RuleConfig]) {
    let book = Arc::new(Mutex::new(Book::default()));
    let mut tasks = Vec::new();
    for (at, rule) in rules.iter().enumerate() {
        for (number, node) in nodes.iter().enumerate() {
            let (node, name, permits) = (node.clone(), rule.pattern.clone(), rule.permits as usize);
            let (book, holder) = (Arc::clone(&book), (at * nodes.len() + number) as u64);
            tasks.push(tokio::spawn(async move {
                for _ in 0..ENTRIES {
                    let guard = node.lock(&name).await.expect("a lock");
                    let visit = Visit::begin(&book, holder, guard, false, permits);
                    tokio::task::yield_now().await;
                    drop(visit);
                }
            }));
        }
    }
    let all = async {
        for task in tasks {
            task.await.expect("a visitor that does not panic");
        }
    };
    timeout(Duration::from_mins(2), all).await.expect("every node enters every lock");
    assert_fair(&book);
    assert_eq!(book.lock().entries, (rules.len() * nodes.len() * ENTRIES) as u64);
}

async fn serve(size: usize) {
    let rules = every(size);
    let (_scratch, configs) = group(size, &rules);
    let nodes = start(&configs).await;
    contend(&nodes, &rules).await;
    for rule in &rules {
        let said = |node: &Node| node.open(&rule.pattern).expect("a name").arrangement();
        let first = said(&nodes[0]);
        assert!(first.starts_with(&rule.algorithm), "{first}");
        assert!(nodes.iter().all(|node| said(node) == first), "all members compute the same");
        for (key, value) in rule.arrangement.keys() {
            assert!(first.contains(&format!("{key} {value}")), "{first}");
        }
    }
}

#[tokio::test]
async fn three_nodes_serve_every_arrangement() {
    serve(3).await;
}

#[tokio::test]
async fn seven_nodes_serve_every_arrangement() {
    serve(7).await;
}

/// Which nodes receive messages while a node enters and leaves this lock.
async fn receivers(nodes: &[Node], at: usize, name: &str) -> Vec<usize> {
    let received = || nodes.iter().map(|node| counts(node).received).collect::<Vec<_>>();
    settle(nodes).await;
    let before = received();
    drop(nodes[at].lock(name).await.expect("a lock"));
    settle(nodes).await;
    let after = received();
    (0..nodes.len()).filter(|node| after[*node] > before[*node]).collect()
}

/// The coordinator that a rule names decides: it enters without a message, and all others ask it.
#[tokio::test]
async fn the_coordinator_of_a_rule_decides() {
    let rules = [rule("central", 1, &[("coordinator", "n3")])];
    let (_scratch, configs) = group(3, &rules);
    let nodes = start(&configs).await;
    let name = &rules[0].pattern;
    for _ in 0..3 {
        assert_eq!(receivers(&nodes, 2, name).await, [0; 0], "the coordinator asks nobody");
        assert_eq!(receivers(&nodes, 0, name).await, [0, 2]);
        assert_eq!(receivers(&nodes, 1, name).await, [1, 2]);
    }
}

/// A node sends messages to the members of its quorum, and to nobody else.
#[tokio::test]
async fn only_the_quorum_is_asked() {
    let by_hand = "n1=n1,n2; n2=n2,n3; n3=n2,n3,n4; n4=n2,n4";
    let algorithms =
        ["maekawa", "maekawa-eager", "maekawa-unordered", "maekawa-sequential", "maekawa-cyclic"];
    for (made, quorums) in [
        // The rows are n1 n2 and n3 n4.
        ("grid", [vec![0, 1, 2], vec![0, 1, 3], vec![0, 2, 3], vec![1, 2, 3]]),
        (by_hand, [vec![0, 1], vec![1, 2], vec![1, 2, 3], vec![1, 3]]),
    ] {
        let rules = algorithms.map(|algorithm| rule(algorithm, 1, &[("quorums", made)]));
        let (_scratch, configs) = group(4, &rules);
        let nodes = start(&configs).await;
        for rule in &rules {
            for (node, quorum) in quorums.iter().enumerate() {
                let asked = receivers(&nodes, node, &rule.pattern).await;
                assert_eq!(asked, *quorum, "{}: the quorum of n{}", rule.pattern, node + 1);
            }
        }
    }
}

/// Without a name, each lock has its own coordinator, at which an entry costs no message.
#[tokio::test]
async fn coordinators_are_spread_over_the_members() {
    let rules = [RuleConfig::new("*", "central", 1)];
    let (_scratch, configs) = group(3, &rules);
    let nodes = start(&configs).await;
    let mut counts = [0; 3];
    for number in 0..30 {
        let name = format!("lock{number}");
        let said = nodes[0].open(&name).expect("a name").arrangement();
        let member = said.strip_prefix("central, coordinator n").expect("a coordinator");
        let at = member.parse::<usize>().expect("a number") - 1;
        counts[at] += 1;
        let sent = |node: &Node| node.counters().rules.iter().map(|it| it.counts.sent).sum::<u64>();
        let before = sent(&nodes[at]);
        drop(nodes[at].lock(&name).await.expect("a lock"));
        assert_eq!(sent(&nodes[at]), before, "the coordinator of {name} asks nobody");
        let other = &nodes[(at + 1) % 3];
        let before = sent(other);
        drop(other.lock(&name).await.expect("a lock"));
        assert!(sent(other) > before, "another member asks the coordinator of {name}");
    }
    assert!(counts.iter().all(|count| *count > 3), "{counts:?}");
}
