//! Section 9 of Maekawa's paper: the arbiter of a crashed node is taken over by its heir.

use doorway_core::algorithms::maekawa;
use doorway_core::algorithms::maekawa_heir::{MaekawaHeir, Message};
use doorway_core::{Channel, Effects, Group, Input, Member, NodeId, Start};
use doorway_lab::{AnyAlgorithm, Choice, Limits, Violation, World};

use crate::figures::*;
use crate::verdicts::{holds, violation};

/// A world in which `crashes` nodes may crash. If `detection` is set, each survivor learns of a
/// crash at some time.
fn world(sets: &[&[u32]], asks: &[u32], crashes: u32, detection: bool) -> World {
    let group = group(sets);
    let limits = Limits { crashes, detection, ..limits(&group, asks) };
    World::new(AnyAlgorithm::of::<MaekawaHeir>(), group, &Start::default(), Channel::Fifo, limits)
}

#[test]
fn after_a_crash_survivors_stay_safe_and_enter() {
    for (sets, asks) in [(TRIANGLE, [2, 1, 1]), (STAIRS, [1, 1, 1]), (FULL, [0, 1, 1])] {
        holds(&world(sets, &asks, 1, true));
    }
}

#[test]
fn without_detection_survivors_wait_forever() {
    let (_, found) = violation(&world(TRIANGLE, &[1, 1, 1], 1, false));
    assert!(matches!(found, Violation::Stuck(_)), "{found}");
}

/// How many nodes know something about the crashed arbiter and have to tell its heir.
fn knowers(group: &Group, crash: Choice) -> usize {
    let Choice::Crash(node) = crash else { panic!("{crash:?}") };
    let heir = group.successor(node);
    let asks = group.nodes().filter(|other| group.quorum(*other, 0).contains(&node));
    asks.filter(|other| *other != node && *other != heir).count()
}

/// Table III: what a crash loses is known to √N nodes, and √N messages restore it.
#[test]
fn one_crash_costs_a_message_from_each_node_that_asks_the_crashed_one() {
    for (sets, most) in [(FANO, 2), (PLANE_13, 3)] {
        for seed in 1..=200 {
            let mut world = world(sets, &vec![2; sets.len()], 1, true);
            let steps = run(&mut world, seed);
            let sends = steps.iter().flat_map(|step| &step.sends);
            let told =
                sends.filter(|(_, letter)| matches!(letter.body.get(), Message::Recover(..)));
            let crash = steps.iter().find(|step| matches!(step.choice, Choice::Crash(_))).unwrap();
            assert_eq!(told.clone().count(), knowers(world.group(), crash.choice));
            assert!(told.count() <= most);
        }
    }
}

#[test]
fn a_second_crash_is_survived_too() {
    for seed in 1..=400 {
        run(&mut world(PLANE_13, &[2; 13], 2, true), seed);
        run(&mut world(FANO, &[2; 7], 3, true), seed);
    }
}

/// A node that is inside from the beginning reports that to the heir of an arbiter, as any node
/// inside does.
#[test]
fn a_group_that_starts_with_a_holder_survives_a_crash() {
    for node in (0..3).map(NodeId) {
        let group = group(TRIANGLE);
        let mut limits = Limits { crashes: 1, detection: true, ..Limits::reliable(&group, 1) };
        limits.acquires[node.index()].0 = 0;
        holds(&World::new(
            AnyAlgorithm::of::<MaekawaHeir>(),
            group,
            &Start::with_holder(node),
            Channel::Fifo,
            limits,
        ));
    }
}

/// Node 1 of four has crashed. Node 2, its heir, has the report of node 3, but not yet that of node
/// 4.
#[test]
fn an_heir_keeps_requests_until_it_has_all_reports() {
    let group = group(&[[1, 2, 3, 4]; 4]);
    let start = Start::default();
    let heir = Member::<MaekawaHeir>::begin(NodeId(1), &group, &start, &mut Effects::default());
    let mut heir = heir.expect("the contract is kept");
    let mut step = |input| {
        let mut out = Effects::default();
        heir.step(&group, input, &mut out).expect("the contract is kept");
        out
    };
    let fails = |node| Input::Failed { node: NodeId(node), heir: NodeId(1) };
    let hears = |message| Input::Receive { from: NodeId(2), message };
    let about = |message| Message::About(NodeId(0), message);
    let request = |clock| hears(about(maekawa::Message::Request(clock)));
    step(fails(0));
    step(hears(Message::Recover(NodeId(0), None)));
    let early = step(request(1));
    assert!(early.rejected().is_none() && early.sends().is_empty());
    assert!(step(request(2)).rejected().is_some(), "one request at a time");
    // Now node 4 crashes, and no report is missing any more.
    let opened = step(fails(3));
    assert!(opened.sends().contains(&(NodeId(2), about(maekawa::Message::Locked(1)))));
}
