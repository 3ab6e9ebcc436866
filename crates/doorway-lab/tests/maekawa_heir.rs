//! Section 9 of Maekawa's paper: the arbiter of a crashed node is taken over by its heir.

mod figures;
mod verdicts;

use doorway_core::algorithms::maekawa_heir::{MaekawaHeir, Message};
use doorway_core::{Channel, Group, Start};
use doorway_lab::{Choice, Limits, Violation, World};

use figures::*;
use verdicts::{holds, violation};

/// A world in which so many nodes crash, and survivors learn it each in its own time.
fn world(sets: &[&[u32]], asks: &[u32], crashes: u32, detection: bool) -> World<MaekawaHeir> {
    let group = group(sets);
    let limits = Limits { crashes, detection, ..limits(&group, asks) };
    World::new(group, &Start::default(), Channel::Fifo, limits)
}

#[test]
fn survivors_stay_safe_and_get_in_whenever_a_node_crashes() {
    for (sets, asks) in [(TRIANGLE, [2, 1, 1]), (STAIRS, [1, 1, 1]), (FULL, [0, 1, 1])] {
        holds(&world(sets, &asks, 1, true));
    }
}

#[test]
fn without_word_of_the_crash_they_wait_for_ever() {
    let (_, found) = violation(&world(TRIANGLE, &[1, 1, 1], 1, false));
    assert!(matches!(found, Violation::Stuck(_)), "{found}");
}

/// Who knows something of the arbiter of `crashed` and has to tell `heir`.
fn knowers(group: &Group, crash: Choice) -> usize {
    let Choice::Crash(node) = crash else { panic!("{crash:?}") };
    let heir = group.successor(node);
    let asks = group.nodes().filter(|other| group.quorum(*other, 0).contains(&node));
    asks.filter(|other| *other != node && *other != heir).count()
}

/// Table III: what a crash loses is known to √N nodes, and √N messages bring it back.
#[test]
fn one_crash_costs_a_message_from_each_node_that_asks_the_crashed_one() {
    for (sets, most) in [(FANO, 2), (PLANE_13, 3)] {
        for seed in 1..=200 {
            let mut world = world(sets, &vec![2; sets.len()], 1, true);
            let steps = run(&mut world, seed);
            let sends = steps.iter().flat_map(|step| &step.sends);
            let told = sends.filter(|(_, letter)| matches!(letter.body, Message::Recover(..)));
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
