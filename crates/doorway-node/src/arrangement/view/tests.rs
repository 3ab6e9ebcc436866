//! The arrangement of every view, exhaustively at small sizes and at random.

use std::collections::BTreeSet;

use doorway_core::algorithms::{self, Task};
use doorway_core::{Algorithm, Start};
use proptest::prelude::*;

use super::*;

/// A rule with these keys.
fn rule(algorithm: &str, permits: u32, keys: &[(&str, &str)]) -> RuleConfig {
    let mut rule = RuleConfig::new("x", algorithm, permits);
    for (key, value) in keys {
        rule.arrangement.set(key, value).unwrap();
    }
    rule
}

/// Every arrangement, for the names a to g.
fn every() -> Vec<RuleConfig> {
    let made = [
        "projective-plane",
        "degenerate-plane",
        "grid",
        "triangle",
        "triangle:1",
        "triangle:2",
        "cyclic",
        "majority",
        "weighted",
        "a=a,b; b=b,c; c=a,c; d=a,b,d; e=a,b,c; f=b,c,f; g=a,c,g",
        "a=a; b=a,b; c=a,c; d=a; e=a; f=a; g=a",
    ];
    let mut rules: Vec<_> =
        made.iter().map(|made| rule("maekawa", 1, &[("quorums", made)])).collect();
    rules.push(rule("maekawa", 1, &[("quorums", "weighted"), ("weights", "a=3, b=1, c=0")]));
    for weights in ["a=2, b=1, c=1", "a=0, b=0, c=1, d=0", "g=5"] {
        rules.push(rule("weighted-majority", 1, &[("weights", weights)]));
    }
    for tree in ["chain", "star", "balanced:2", "balanced:3", "b=a, c=a, d=b, e=b, f=c, g=f", "a=c"]
    {
        rules.push(rule("raymond-tree", 1, &[("tree", tree)]));
        rules.push(rule("suzuki-kasami", 1, &[("topology", "tree"), ("tree", tree)]));
    }
    for topology in ["mesh", "ring", "tree"] {
        rules.push(rule("suzuki-kasami", 1, &[("topology", topology)]));
    }
    for seats in ["1", "2", "4"] {
        rules.push(rule("raymond-k", 4, &[("permits_per_node", seats)]));
    }
    rules.push(rule("central", 1, &[("coordinator", "b")]));
    rules.push(rule("central", 1, &[]));
    rules
}

fn names(names: &str) -> Vec<String> {
    names.chars().map(String::from).collect()
}

/// Begin the algorithm at every member: that panics if the group lacks what the algorithm needs.
struct EveryMember<'a>(&'a Group);

impl Task for EveryMember<'_> {
    type Output = ();

    fn run<A: Algorithm + 'static>(self) {
        for node in self.0.nodes() {
            A::new(node, self.0, &Start::default());
        }
    }
}

/// What must be so in every view.
fn check(rule: &RuleConfig, view: &[String]) -> ViewArrangement {
    let arranged = arrange(rule, view).unwrap();
    let ViewArrangement { info, group, deviation, .. } = &arranged;
    assert_eq!(group.size() as usize, view.len());
    let instead = matches!(deviation, Some(Deviation::Majority(_)));
    assert_eq!(info.name, if instead { MAJORITY } else { &rule.algorithm });
    if let Some(quorums) = group.quorums() {
        assert!(quorums.properties().a, "{rule:?} in {view:?}: two quorums are disjoint");
    }
    assert!(group.total_weight() > 0, "{rule:?} in {view:?}: nobody has a vote");
    assert_eq!(group.permits(), rule.permits, "{rule:?} in {view:?}");
    algorithms::with(info.name, EveryMember(group)).unwrap();
    arranged
}

/// All views of up to seven members, under every arrangement.
#[test]
fn every_arrangement_serves_every_view() {
    for rule in every() {
        for subset in 1_u32..1 << 7 {
            let all = names("abcdefg");
            let members = all.iter().enumerate().filter(|(at, _)| subset & (1 << at) != 0);
            let view: Vec<String> = members.map(|(_, name)| name.clone()).collect();
            check(&rule, &view);
        }
    }
}

/// From three to four to two members, under every arrangement: which views use `majority`.
#[test]
fn from_three_to_four_to_two_members() {
    let falls = |rule: &RuleConfig, view: &str| {
        matches!(check(rule, &names(view)).deviation, Some(Deviation::Majority(_)))
    };
    for rule in every() {
        let said = format!("{:?}", rule.arrangement.keys());
        let found = ["abc", "abcd", "cd"].map(|view| falls(&rule, view));
        let expected = if said.contains("projective-plane") {
            [false, true, true] // Planes have 3, 7, 13 ... points.
        } else if said.contains("c=a,c; d=a,b,d") || said.contains("b=a,b; c=a,c; d=a") {
            [false, false, true] // The sets of c and d meet in a only.
        } else {
            [false; 3]
        };
        assert_eq!(found, expected, "{said}");
    }
    let weights = rule("weighted-majority", 1, &[("weights", "a=1, c=0, d=0")]);
    assert_eq!(["abc", "abcd", "cd"].map(|view| falls(&weights, view)), [false, false, true]);
    // The set of a new member is missing.
    let sets = rule("maekawa", 1, &[("quorums", "a=a,b; b=b,c; c=a,c")]);
    assert_eq!(["abc", "abcd", "ab"].map(|view| falls(&sets, view)), [false, true, false]);
}

#[test]
fn a_view_says_how_it_differs_from_its_rule() {
    for (rule, view, said) in [
        (
            rule("maekawa", 1, &[("quorums", "a=a,b; b=b,c; c=a,c")]),
            "abd",
            "majority, because `d` has no quorum",
        ),
        (
            rule("maekawa", 1, &[("quorums", "a=a,c; b=b,c; c=c")]),
            "ab",
            "majority, because the quorums of `a` and `b` have no member in common",
        ),
        (
            rule("weighted-majority", 1, &[("weights", "a=1, b=0, c=0")]),
            "bc",
            "majority, because no member has a vote",
        ),
        (
            rule("central", 1, &[("coordinator", "b")]),
            "ac",
            "the coordinator `b` is not there: each lock has a coordinator of its own",
        ),
        (
            rule("raymond-k", 5, &[("permits_per_node", "2")]),
            "ab",
            "with 2 members, 2 permits per node are fewer than the 5 permits of a lock: each node \
             may hold 3",
        ),
    ] {
        let arranged = check(&rule, &names(view));
        assert_eq!(arranged.deviation.unwrap().to_string(), said);
    }
    let plane = check(&rule("maekawa", 1, &[("quorums", "projective-plane")]), &names("abcd"));
    assert!(plane.deviation.unwrap().to_string().starts_with("majority, because"));
}

#[test]
fn a_tree_by_hand_keeps_its_order_when_members_are_absent() {
    let RuleConfig { arrangement, .. } = rule("raymond-tree", 1, &[("tree", "b=a, c=b, d=c, e=b")]);
    let Some(TreeChoice::Parents(parents)) = arrangement.tree else { panic!("by hand") };
    let found = |view: &str| {
        let view = names(view);
        let parents = parents_in_view(&parents, &view);
        parents.iter().map(|parent| view[parent.index()].as_str()).collect::<String>()
    };
    assert_eq!(found("abcde"), "aabcb");
    assert_eq!(found("acde"), "aaca", "c and e move to a");
    assert_eq!(found("ade"), "aaa");
    assert_eq!(found("cde"), "ccc", "c takes the place of the root");
    assert_eq!(found("xcde"), "cccc", "x is not in the tree, so it is not the root");
    assert_eq!(found("xy"), "xx");
}

#[test]
fn mistakes_are_found_whichever_members_there_are() {
    for (rule, said) in [
        (
            rule("maekawa", 1, &[("quorums", "a=a; b=b")]),
            "the quorums of `a` and `b` have no member in common; add a member of one",
        ),
        (
            rule("weighted-majority", 1, &[("weights", "a=0")]),
            "all weights are zero; at least one must be positive",
        ),
        (rule("raymond-tree", 1, &[("tree", "a=b, b=c, c=a")]), "the tree has a cycle through"),
        (rule("raymond-tree", 1, &[("tree", "a=a")]), "the tree has a cycle through `a`"),
        (rule("raymond-tree", 1, &[("tree", "b=a, d=c")]), "two roots, `a` and `c`; give one"),
        (rule("lamport", 1, &[("quorums", "grid")]), "lamport has no use for quorums"),
        (rule("maekawa", 1, &[("weights", "a=1")]), "maekawa has no use for weights"),
        (rule("suzuki-kasami", 1, &[("tree", "star")]), "suzuki-kasami has no use for a tree"),
        (rule("raymond-tree", 1, &[("topology", "ring")]), "has no use for a topology"),
        (rule("lamport", 1, &[("coordinator", "a")]), "lamport has no use for a coordinator; only"),
        (rule("lamport", 1, &[("permits_per_node", "1")]), "no use for permits_per_node; only"),
        (rule("raymond-k", 2, &[("permits_per_node", "3")]), "; write a number from 1 to 2"),
        (rule("raymond-k", 2, &[("permits_per_node", "0")]), "; write a number from 1 to 2"),
    ] {
        for view in ["a", "abc", "xyz"] {
            let why = arrange(&rule, &names(view)).unwrap_err().to_string();
            assert!(why.contains(said), "{why:?} does not say {said:?}");
        }
    }
}

#[test]
fn a_fixed_list_of_members_has_to_fit() {
    let why = |rule: &RuleConfig, view: &str| {
        let view = names(view);
        let arranged = arrange(rule, &view).unwrap();
        let checked = check_fixed(rule, &view, arranged.deviation.as_ref());
        checked.map_err(|error| error.to_string())
    };
    let central = rule("central", 1, &[("coordinator", "d")]);
    let said = "the coordinator `d` is not a member; the members are a, b, c";
    assert_eq!(why(&central, "abc"), Err(said.to_owned()));
    assert_eq!(why(&central, "abcd"), Ok(()));
    let weights = rule("weighted-majority", 1, &[("weights", "a=1, z=1")]);
    assert_eq!(why(&weights, "ab"), Err("`z` is not a member; the members are a, b".to_owned()));
    let tree = rule("raymond-tree", 1, &[("tree", "b=a")]);
    assert_eq!(why(&tree, "abc"), Err("`c` is not in the tree; add c=PARENT".to_owned()));
    let sets = rule("maekawa", 1, &[("quorums", "a=a,b; b=b")]);
    assert_eq!(why(&sets, "abc"), Err("`c` has no quorum; add c=MEMBER,MEMBER".to_owned()));
    assert!(why(&rule("maekawa", 1, &[("quorums", "projective-plane")]), "abcd").is_err());
}

/// A quorum by hand.
fn set() -> impl Strategy<Value = BTreeSet<String>> {
    prop::collection::btree_set("[a-g]", 1..5)
}

proptest! {
    /// Whatever sets, weights and trees a rule has, and whichever members there are: either the
    /// rule is refused in every view, or every view is served.
    #[test]
    fn a_rule_works_in_every_view_or_in_none(
        sets in prop::collection::btree_map("[a-g]", set(), 1..7),
        weights in prop::collection::btree_map("[a-g]", 0..3_u32, 1..7),
        parents in prop::collection::btree_map("[a-g]", "[a-g]", 1..7),
        views in prop::collection::vec(prop::sample::subsequence(names("abcdefgh"), 1..8), 2..6),
    ) {
        let base = |algorithm: &str| RuleConfig::new("x", algorithm, 1);
        let mut by_sets = base("maekawa");
        by_sets.arrangement.quorums = Some(QuorumChoice::Sets(sets));
        let mut by_weights = base("weighted-majority");
        by_weights.arrangement.weights = Some(weights);
        let mut by_tree = base("raymond-tree");
        by_tree.arrangement.tree = Some(TreeChoice::Parents(parents));
        for rule in [by_sets, by_weights, by_tree] {
            let first = arrange(&rule, &views[0]).map(drop);
            for view in &views {
                prop_assert_eq!(arrange(&rule, view).map(drop), first.clone());
                if first.is_ok() {
                    check(&rule, view);
                }
            }
        }
    }
}
