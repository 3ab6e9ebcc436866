//! The properties of every construction, verified for all small groups.

use alloc::string::ToString;

use super::*;

#[test]
fn every_kind_has_the_properties_it_claims() {
    for kind in Kind::ALL {
        for size in 1..=200 {
            let Ok(quorums) = Quorums::build(kind, size, None) else {
                assert_eq!(kind, Kind::ProjectivePlane, "{kind} exists for {size}");
                continue;
            };
            assert_eq!(quorums.size(), size);
            assert!(quorums.all().all(|(_, set)| set.is_sorted_by(|one, other| one < other)));
            let properties = quorums.properties();
            assert!(properties.a && properties.b, "{kind} of {size}");
            let balanced = match kind {
                Kind::ProjectivePlane | Kind::Cyclic | Kind::Majority => true,
                Kind::DegeneratePlane => plane::order_of(size).is_some(),
                Kind::Grid => size.is_multiple_of(grid::columns(size)),
                Kind::Triangle => (1..=size).any(|rows| triangle::nodes(rows) == size),
                Kind::Weighted => false,
            };
            assert!(properties.c && properties.d || !balanced, "{kind} of {size}");
        }
    }
}

#[test]
fn a_grid_of_a_square_has_the_size_of_the_paper() {
    for side in 1..=14 {
        let properties = Quorums::build(Kind::Grid, side * side, None).unwrap().properties();
        assert_eq!((properties.size_max, properties.load_max), (2 * side - 1, 2 * side - 1));
        assert!(properties.c && properties.d);
    }
}

#[test]
fn the_costs_are_those_of_table_1() {
    for (size, messages) in [(3, 3), (7, 6), (13, 9), (21, 12), (133, 33), (381, 57)] {
        let quorums = Quorums::build(Kind::ProjectivePlane, size, None).unwrap();
        assert_eq!(3 * (quorums.smallest() - 1), messages);
        assert_eq!(quorums.smallest(), quorums.largest());
    }
}

#[test]
fn sets_made_by_hand_are_verified() {
    let sets = |lists: &[&[u32]]| {
        let node = |node: &u32| NodeId(node - 1);
        Quorums::from_sets(lists.iter().map(|list| list.iter().map(node).collect()).collect())
    };
    let error = |lists: &[&[u32]]| sets(lists).unwrap_err().to_string();
    let quorums = sets(&[&[2, 1, 2], &[2], &[3, 2]]).unwrap();
    assert_eq!(quorums.quorum(NodeId(0), 5), [NodeId(0), NodeId(1)]);
    let properties = quorums.properties();
    assert_eq!((properties.size_min, properties.size_max), (1, 2));
    assert_eq!((properties.load_min, properties.load_max), (1, 3));
    assert!(properties.a && properties.b && !properties.c && !properties.d);
    assert!(!sets(&[&[2], &[2]]).unwrap().properties().b);
    assert_eq!(
        error(&[&[1, 2], &[2], &[3]]),
        "the quorums {1,2} of node 1 and {3} of node 3 have no node in common; add a node of one \
         quorum to the other"
    );
    assert_eq!(
        error(&[&[1, 4], &[1]]),
        "the quorum of node 1 contains node 4, but there are 2 nodes"
    );
    assert_eq!(error(&[&[1], &[]]), "the quorum of node 2 is empty");
    assert!(error(&[]).contains("not for 0"));
}

/// Two disjoint sets among many are found wherever they stand, across batches of 64 too.
#[test]
fn every_disjoint_pair_is_found() {
    for (one, other) in [(0, 1), (0, 199), (63, 64), (5, 128), (198, 199)] {
        let mut sets = alloc::vec![alloc::vec![NodeId(0), NodeId(1)]; 200];
        sets[one] = alloc::vec![NodeId(0)];
        sets[other] = alloc::vec![NodeId(1)];
        let error = Quorums::from_sets(sets).unwrap_err().to_string();
        let (one, other) = (one + 1, other + 1);
        let pair =
            format!("the quorums {{1}} of node {one} and {{2}} of node {other} have no node");
        assert!(error.contains(&pair), "{error}");
    }
}

#[test]
fn impossible_sizes_are_refused() {
    for kind in Kind::ALL {
        assert!(Quorums::build(kind, 0, None).is_err());
        assert!(Quorums::build(kind, 16_777_216, None).is_err(), "{kind}: too many members");
        assert!(Quorums::build(kind, u32::MAX, None).is_err());
    }
    for size in [0, u32::MAX] {
        assert!(Quorums::triangle(size, Scheme::First).is_err());
    }
}
