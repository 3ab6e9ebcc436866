//! Majority voting.

use doorway_core::algorithms::majority::{Majority, WeightedMajority};
use doorway_core::{Algorithm, Channel, NodeId, Shape, Start};
use doorway_lab::Choice;

use super::{acquire, apply, settle, world, worlds};

fn weights(weights: &[u32]) -> Shape {
    Shape { weights: Some(weights.to_vec()), ..Shape::default() }
}

#[test]
fn votes_hold_on_unordered_channels() {
    let count = |channel, acquires: &[u32]| {
        worlds::<Majority>(&Shape::default(), &Start::default(), channel, acquires)
    };
    assert_eq!(count(Channel::Unordered, &[2, 1, 0]), 20_921);
    assert_eq!(count(Channel::Fifo, &[2, 2, 0]), 43_012);
}

#[test]
fn weighted_votes_hold_on_unordered_channels() {
    let count = |list: &[u32], channel, acquires: &[u32]| {
        worlds::<WeightedMajority>(&weights(list), &Start::default(), channel, acquires)
    };
    assert_eq!(count(&[2, 1, 1], Channel::Unordered, &[2, 1, 0]), 17_102);
    assert_eq!(count(&[2, 1, 0], Channel::Unordered, &[1, 1, 1]), 4_661);
    assert_eq!(count(&[0, 1, 1], Channel::Unordered, &[2, 1, 0]), 797);
    assert_eq!(count(&[0, 1, 0], Channel::Unordered, &[2, 2, 2]), 5_504);
}

#[test]
fn votes_may_begin_with_a_holder() {
    let equal = Shape::default();
    for (holder, expected) in [(0, 6_905), (1, 5_884), (2, 8_840)] {
        let start = Start { floor: 5, ..Start::with_holder(NodeId(holder)) };
        worlds::<Majority>(&equal, &start, Channel::Fifo, &[1, 0, 1]);
        let weights = weights(&[2, 1, 0]);
        let count = worlds::<WeightedMajority>(&weights, &start, Channel::Unordered, &[1, 1, 1]);
        assert_eq!(count, expected);
    }
}

/// The messages of all nodes together when each enters once without contention, checked against the
/// claim.
fn alone<A: Algorithm>(shape: &Shape, size: usize) -> usize {
    let mut world = world::<A>(shape, &Start::default(), Channel::Unordered, &vec![1; size]);
    let mut sent = 0;
    for node in world.group().clone().nodes() {
        sent += apply(&mut world, acquire(node)) + settle(&mut world);
        sent += apply(&mut world, Choice::Release(node)) + settle(&mut world);
    }
    let light = A::INFO.messages.light.expect("the claim is made");
    assert!(((light.of)(world.group()) * size as f64 - sent as f64).abs() < 1e-9);
    sent
}

#[test]
fn a_request_without_contention_costs_three_messages_per_voter() {
    assert_eq!(alone::<Majority>(&Shape::default(), 7), 7 * 18);
    assert_eq!(alone::<WeightedMajority>(&weights(&[3, 0, 1, 1, 0]), 5), 3 * 6 + 2 * 9);
    // If one node has all the weight, it is a central coordinator, whose own entries are free.
    assert_eq!(alone::<WeightedMajority>(&weights(&[0, 0, 9, 0]), 4), 3 * 3);
}
