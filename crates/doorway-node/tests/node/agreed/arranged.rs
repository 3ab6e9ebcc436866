//! The members change under every arrangement.

use doorway_node::RuleConfig;

use super::*;
use crate::arranged::{contend, every};

/// How the lock of a rule is served at each running node, which must be the same.
fn served(group: &Group, rule: &RuleConfig) -> String {
    let said = |node: &Node| node.open(&rule.pattern).expect("a name").arrangement();
    let all: Vec<String> = group.nodes.iter().flatten().map(said).collect();
    assert!(all.windows(2).all(|two| two[0] == two[1]), "{all:?}");
    all[0].clone()
}

async fn contend_all(group: &Group, rules: &[RuleConfig]) {
    let nodes: Vec<Node> = group.nodes.iter().flatten().cloned().collect();
    contend(&nodes, rules).await;
}

/// From three to four to two members: every lock is served in every view, and a lock whose
/// arrangement is impossible in a view is served by `majority` there.
#[tokio::test]
async fn from_three_to_four_to_two_members() {
    let rules = every(3);
    let mut group = Group::with_rules(4, 3, &rules);
    for node in 0..3 {
        group.start(node, false).await;
    }
    group.together(3).await;
    contend_all(&group, &rules).await;
    assert!(rules.iter().all(|rule| served(&group, rule).starts_with(&rule.algorithm)));
    // A lock that is held all the time: its arrangement falls back under its holder.
    let plane = &rules[0];
    let kept = group.lock(0, &plane.pattern).await;

    let added = group.register.apply(&Command::AddSeat(seat(&group.configs, 3)));
    assert!(matches!(added, Answer::Done(_)));
    group.start(3, false).await;
    group.together(4).await;
    let said = served(&group, plane);
    assert!(said.starts_with("majority, because"), "{said}");
    assert!(!kept.is_lost());
    let others = &rules[1..];
    contend_all(&group, others).await;
    let early = timeout(Duration::from_millis(300), group.node(3).lock(&plane.pattern)).await;
    assert!(early.is_err(), "the lock is held");
    drop(kept);
    drop(group.lock(3, &plane.pattern).await);

    for node in [2, 0] {
        timeout(LONG, group.node(node).leave()).await.expect("the group agrees");
        group.nodes[node].take().expect("a node").stop().await;
        let dropped = group.register.apply(&Command::DropSeat(SeatId(node as u64 + 1)));
        assert!(matches!(dropped, Answer::Done(_)));
    }
    group.together(2).await;
    contend_all(&group, &rules).await;
    for rule in &rules {
        let keys = rule.arrangement.keys();
        let is = |key: &str, value: &str| keys.iter().any(|it| it.0 == key && it.1 == value);
        let said = served(&group, rule);
        let expected = is("quorums", "projective-plane")
            || keys.iter().any(|(key, value)| *key == "quorums" && value.contains("n1="));
        assert_eq!(said.starts_with("majority, because"), expected, "{said}");
    }
}
