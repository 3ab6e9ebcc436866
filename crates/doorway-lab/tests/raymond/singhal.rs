//! The dynamic information structure.

use doorway_core::algorithms::singhal::Singhal;
use doorway_core::{Algorithm, Channel, Mode, NodeId, Shape, Start};
use doorway_lab::Choice;

use crate::{acquire, apply, settle, world, worlds};

#[test]
fn a_staircase_of_request_sets_is_right_in_any_order() {
    let count = |channel, acquires: &[u32]| {
        worlds::<Singhal>(&Shape::default(), &Start::default(), channel, acquires)
    };
    assert_eq!(count(Channel::Unordered, &[2, 2, 2]), 24_573);
    assert_eq!(count(Channel::Fifo, &[1, 1, 1, 1]), 112_304);
}

#[test]
fn request_sets_may_begin_with_a_holder() {
    for (holder, expected) in [(0, 841), (1, 929), (2, 929)] {
        let start = Start { floor: 5, ..Start::with_holder(NodeId(holder)) };
        let shape = Shape::default();
        assert_eq!(worlds::<Singhal>(&shape, &start, Channel::Unordered, &[1, 1, 1]), expected);
    }
}

/// On the staircase the first entries cost 0, 2, 4, ... messages; who was inside last re-enters
/// free, and with everyone waiting all others are asked.
#[test]
fn request_sets_follow_the_lock() {
    let shape = Shape::default();
    let mut world = world::<Singhal>(&shape, &Start::default(), Channel::Fifo, &[u32::MAX; 9]);
    for (node, expected) in [(4, 8), (4, 0), (0, 2), (0, 0), (4, 2), (8, 16)] {
        let node = NodeId(node);
        let sent = apply(&mut world, acquire(node)) + settle(&mut world);
        assert_eq!(sent, expected);
        assert_eq!(apply(&mut world, Choice::Release(node)), 0);
    }
    let mut sent = 0;
    for _ in 0..900 {
        for node in world.group().clone().nodes() {
            if world.nodes().member(node).may_acquire(world.group(), Mode::Exclusive) {
                sent += apply(&mut world, acquire(node));
            }
        }
        sent += settle(&mut world);
        let inside = world.nodes().who(|member| member.held() > 0);
        sent += apply(&mut world, Choice::Release(inside[0]));
    }
    let heavy = (Singhal::INFO.messages.heavy.unwrap().of)(world.group());
    let mean = sent as f64 / 900.0;
    assert!((mean - heavy).abs() < 0.1, "{mean}, not {heavy}");
}
