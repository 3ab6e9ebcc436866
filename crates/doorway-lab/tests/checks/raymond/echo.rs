//! Raymond's algorithm on a tree that a wave (the echo algorithm) builds.

use doorway_core::algorithms::raymond_echo::RaymondEcho;
use doorway_core::{Channel, Graph, NodeId, Shape, Start};
use doorway_lab::Choice;

use super::{acquire, apply, settle, world, worlds};

/// A small generator, so that the random tests are the same everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % sides
    }
}

fn on_graph(graph: Graph, initiators: &[u32]) -> Shape {
    let initiators = initiators.iter().map(|node| NodeId(*node)).collect();
    Shape { graph: Some(graph), initiators: Some(initiators), ..Shape::default() }
}

fn count(graph: Graph, initiators: &[u32], start: &Start, acquires: &[u32]) -> u64 {
    worlds::<RaymondEcho>(&on_graph(graph, initiators), start, Channel::Unordered, acquires)
}

/// The wave of the smallest node supersedes the others, and no node asks before the tree is
/// complete.
#[test]
fn a_wave_builds_the_tree_with_any_number_of_initiators() {
    let quiet = Start::default();
    let path = || Graph::new(3, [(NodeId(0), NodeId(2)), (NodeId(2), NodeId(1))]).unwrap();
    let initiators = [&[0][..], &[2], &[0, 1], &[1, 2], &[0, 1, 2]];
    let found = initiators.map(|initiators| {
        [Graph::ring(3), path()].map(|graph| count(graph, initiators, &quiet, &[1, 1, 1]))
    });
    // If all nodes start waves, nobody is woken. Otherwise a WAKE adds worlds to those of the
    // waves alone, which are these.
    let waves = [[870, 244], [870, 310], [5_220, 732], [5_220, 1_464], [20_880, 2_928]];
    assert_eq!((found[0][0], found[4]), (2_368, waves[4]));
    let woken = found[..4].iter().flatten().zip(waves[..4].iter().flatten());
    assert!(woken.into_iter().all(|(found, waves)| found > waves), "{found:?}");
    let four = [&[1][..], &[0, 2]];
    let found = four.map(|all| count(Graph::ring(4), all, &quiet, &[1, 0, 1, 0]));
    assert!(found[0] > 524, "{found:?}");
    assert_eq!(found[1], 4_608, "only initiators ask");
}

#[test]
fn a_wave_begins_at_the_holder_if_there_is_one() {
    let found = [0, 1, 2].map(|holder| {
        let start = Start::with_holder(NodeId(holder));
        count(Graph::mesh(3).unwrap(), &[0, 1], &start, &[2, 1, 1])
    });
    // Without WAKE there would be 1,870, 1,582 and 1,582.
    assert_eq!(found[0], 4_974);
    assert!(found[1] > 1_582 && found[1] == found[2], "{found:?}");
}

/// A connected graph: a random tree and some more edges.
fn random_graph(size: usize, more: usize, dice: &mut Dice) -> Graph {
    let mut edges: Vec<_> = (1..size).map(|i| (NodeId::at(i), NodeId::at(dice.below(i)))).collect();
    for _ in 0..more {
        let (one, other) = (dice.below(size), dice.below(size));
        if one != other {
            edges.push((NodeId::at(one), NodeId::at(other)));
        }
    }
    Graph::new(size, edges).expect("a tree and more is connected")
}

#[test]
fn a_single_wave_costs_two_messages_per_edge_and_one_go_per_node() {
    let mut dice = Dice(1);
    for round in 0..200 {
        let size = 2 + dice.below(20);
        let graph = random_graph(size, round % 40, &mut dice);
        let edges = graph.edges();
        let initiator = u32::try_from(dice.below(size)).unwrap();
        let mut world = world::<RaymondEcho>(
            &on_graph(graph, &[initiator]),
            &Start::default(),
            Channel::Unordered,
            &vec![1; size],
        );
        let mut sent: usize = world.opening().iter().map(|step| step.sends.len()).sum();
        loop {
            let mut choices = world.choices();
            choices.retain(|choice| matches!(choice, Choice::Deliver(_)));
            if choices.is_empty() {
                break;
            }
            sent += apply(&mut world, choices[dice.below(choices.len())]);
        }
        assert_eq!(sent, 2 * edges + size - 1);
        // Every node enters on the tree that the wave has built.
        for node in world.group().clone().nodes() {
            apply(&mut world, acquire(node));
            settle(&mut world);
            apply(&mut world, Choice::Release(node));
        }
    }
}
