//! The limits of a world: nodes that never stop asking, and which nodes may crash.

use std::sync::Arc;

use doorway_core::algorithms::ricart_agrawala::RicartAgrawala;
use doorway_core::{Algorithm, Channel, Mode, NodeId, Shape, Start};
use doorway_lab::{AnyAlgorithm, Choice, FOREVER, Limits, Victims, World};

/// Two nodes: the first never stops asking, and the second asks once.
fn world(change: impl Fn(&mut Limits)) -> World {
    let group = Arc::new(RicartAgrawala::INFO.group(2, &Shape::default()).expect("two nodes"));
    let mut limits = Limits::reliable(&group, 1);
    limits.acquires[0].0 = FOREVER;
    change(&mut limits);
    World::new(
        AnyAlgorithm::of::<RicartAgrawala>(),
        group,
        &Start::default(),
        Channel::Unordered,
        limits,
    )
}

/// Take the first choice that is not a request, until there is none.
fn calm(world: &mut World) {
    let quiet = |choice: &Choice| !matches!(choice, Choice::Acquire(..) | Choice::Crash(_));
    while let Some(choice) = world.choices().into_iter().find(quiet) {
        assert_eq!(world.apply(choice).violation, None);
    }
}

#[test]
fn the_requests_of_a_node_that_never_stops_are_not_counted() {
    let mut world = world(|_| {});
    for _ in 0..3 {
        for node in [NodeId(0), NodeId(1)] {
            let asks = Choice::Acquire(node, Mode::Exclusive);
            if world.choices().contains(&asks) {
                world.apply(asks);
                calm(&mut world);
            }
        }
    }
    assert_eq!(world.choices(), [Choice::Acquire(NodeId(0), Mode::Exclusive)]);
    assert_eq!(world.wishes(), FOREVER);
}

#[test]
fn the_sum_of_endless_requests_does_not_overflow() {
    assert_eq!(world(|limits| limits.acquires[0].0 = 4).wishes(), 5);
    assert_eq!(world(|limits| limits.acquires[1].0 = FOREVER).wishes(), FOREVER);
    assert_eq!(world(|limits| limits.acquires[1].0 = 7).wishes(), FOREVER);
}

#[test]
fn only_the_allowed_victims_crash() {
    for (victims, expected) in
        [(Victims::Anyone, &[0, 1, 2][..]), (Victims::Outside, &[2]), (Victims::Inside, &[0])]
    {
        let shape = Shape::default();
        let group = Arc::new(RicartAgrawala::INFO.group(3, &shape).expect("three nodes"));
        let limits = Limits { crashes: 1, victims, ..Limits::reliable(&group, 1) };
        let start = Start::with_holder(NodeId(0));
        let mut world =
            World::new(AnyAlgorithm::of::<RicartAgrawala>(), group, &start, Channel::Fifo, limits);
        world.apply(Choice::Acquire(NodeId(1), Mode::Exclusive));
        let crash = |choice: &Choice| match choice {
            Choice::Crash(node) => Some(node.0),
            _ => None,
        };
        let offered: Vec<u32> = world.choices().iter().filter_map(crash).collect();
        assert_eq!(offered, expected, "{victims:?}");
    }
}
