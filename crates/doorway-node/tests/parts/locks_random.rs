//! Shards under thousands of random schedules: clients that acquire, try, give up and leave, locks
//! that are forgotten, and views that begin and are overtaken meanwhile.

use doorway_node::locks::Rule;

use crate::crowd::Crowd;
use crate::nodes::LINGERING;

/// The rules of a group: every kind of algorithm, and hand-overs from none to three.
fn rules(size: usize) -> Vec<Rule> {
    let rule = |(algorithm, permits, handovers)| {
        let mut rule = Rule::new(algorithm, size, permits, handovers).expect("a rule");
        rule.patience = Some(LINGERING);
        rule
    };
    let rules = [
        ("carvalho-roucairol", 1, 0),
        ("readers-writers", 1, 2),
        ("raymond-k", 2, 1),
        ("raymond-k", 7, 0),
        ("suzuki-kasami", 1, 1),
        ("lamport", 1, 3),
        ("ricart-agrawala", 1, 0),
        ("central", 1, 1),
        ("maekawa", 1, 1),
        ("raymond-tree", 1, 0),
        ("naimi-trehel", 1, 2),
        ("majority", 1, 1),
    ];
    rules.map(rule).to_vec()
}

#[test]
fn all_promises_hold_in_one_view() {
    for seed in 0..4000 {
        let mut crowd = Crowd::new(seed, &rules(3 + seed as usize % 3), 0);
        crowd.run(300);
        crowd.settle();
    }
}

#[test]
fn all_promises_hold_while_views_change() {
    let mut views = 0;
    for seed in 0..8000 {
        let mut crowd = Crowd::new(seed, &rules(3 + seed as usize % 3), 2);
        crowd.run(300);
        views += crowd.settle();
    }
    println!("{views} starts of views");
    assert!(views > 20_000, "views were started {views} times");
}
