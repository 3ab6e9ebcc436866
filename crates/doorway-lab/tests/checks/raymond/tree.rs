//! Raymond's tree algorithm.

use doorway_core::algorithms::raymond_tree::RaymondTree;
use doorway_core::tree::TreeShape;
use doorway_core::{Algorithm, Channel, Mode, NodeId, Shape, Start};
use doorway_lab::{Choice, Violation};

use super::{acquire, apply, settle, world, worlds};
use crate::verdicts::{together, violation};

fn on_tree(shape: TreeShape) -> Shape {
    Shape { tree: Some(shape), ..Shape::default() }
}

#[test]
fn the_tree_algorithm_holds_on_chains_and_stars() {
    let count = |shape, channel, acquires: &[u32]| {
        worlds::<RaymondTree>(&on_tree(shape), &Start::default(), channel, acquires)
    };
    assert_eq!(count(TreeShape::Chain, Channel::Fifo, &[2; 3]), 860);
    assert_eq!(count(TreeShape::Chain, Channel::Fifo, &[2; 4]), 11_109);
    assert_eq!(count(TreeShape::Star, Channel::Fifo, &[2; 4]), 11_056);
    assert_eq!(count(TreeShape::Chain, Channel::Unordered, &[2; 3]), 1_012);
    assert_eq!(count(TreeShape::Chain, Channel::Unordered, &[2; 4]), 13_994);
    assert_eq!(count(TreeShape::Star, Channel::Unordered, &[2; 4]), 13_942);
}

#[test]
fn the_tree_algorithm_holds_with_any_node_as_first_holder() {
    for holder in 0..4 {
        let start = Start::with_holder(NodeId(holder));
        for shape in [TreeShape::Chain, TreeShape::Star] {
            worlds::<RaymondTree>(&on_tree(shape), &start, Channel::Unordered, &[1; 4]);
        }
    }
}

/// A request without contention costs two messages for each edge to the token. So the mean over all
/// pairs is the claim for light load.
#[test]
fn a_request_without_contention_costs_two_messages_per_edge() {
    for shape in [TreeShape::Star, TreeShape::Chain, TreeShape::Balanced(2)] {
        let mut sum = 0;
        for (token, node) in (0..15).flat_map(|i| (0..15).map(move |j| (NodeId(i), NodeId(j)))) {
            let start = Start::with_holder(token);
            let mut world =
                world::<RaymondTree>(&on_tree(shape), &start, Channel::Unordered, &[1; 15]);
            apply(&mut world, Choice::Release(token));
            let sent = apply(&mut world, acquire(node)) + settle(&mut world);
            assert_eq!(sent, 2 * world.group().tree().distance(node, token) as usize);
            assert_eq!(world.nodes().member(node).held(), 1);
            sum += sent;
        }
        let group = RaymondTree::INFO.group(15, &on_tree(shape)).unwrap();
        let light = RaymondTree::INFO.messages.light.unwrap();
        assert!(((light.of)(&group) - sum as f64 / 225.0).abs() < 1e-9, "{shape}");
    }
}

/// If all nodes are always waiting, the token tours the tree: 4(N-1) messages for N entries.
#[test]
fn a_saturated_tree_costs_slightly_less_than_four_messages_per_entry() {
    for shape in [TreeShape::Star, TreeShape::Chain, TreeShape::Balanced(2)] {
        let mut world = world::<RaymondTree>(
            &on_tree(shape),
            &Start::default(),
            Channel::Unordered,
            &[u32::MAX; 15],
        );
        let (mut sent, mut entries) = (0, 0);
        while entries < 1_500 {
            for node in world.group().clone().nodes() {
                if world.nodes().member(node).may_acquire(world.group(), Mode::Exclusive) {
                    sent += apply(&mut world, acquire(node));
                }
            }
            sent += settle(&mut world);
            let inside = world.nodes().who(|member| member.held() > 0);
            sent += apply(&mut world, Choice::Release(inside[0]));
            entries += 1;
        }
        let heavy = (RaymondTree::INFO.messages.heavy.unwrap().of)(world.group());
        let mean = f64::from(u32::try_from(sent).unwrap()) / f64::from(entries);
        assert!((mean - heavy).abs() < 0.02, "{shape}: {mean}, not {heavy}");
    }
}

/// Most duplicates are rejected, but not one that arrives when the node has asked again.
#[test]
fn a_duplicate_is_rejected_or_lets_two_nodes_in() {
    let (chain, quiet) = (on_tree(TreeShape::Chain), Start::default());
    let mut strict = world::<RaymondTree>(&chain, &quiet, Channel::Unordered, &[2; 3]);
    strict.limits_mut().duplicates = 1;
    let (steps, found) = violation(&strict);
    assert!(steps == 3 && matches!(found, Violation::Rejected { .. }), "{steps} {found}");
    assert_eq!(together(&strict), Some(9));
}
