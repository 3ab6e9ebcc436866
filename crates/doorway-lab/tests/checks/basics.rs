//! Exhaustive checks of the coordinator, the permission algorithms and the token broadcasts: they
//! are correct, they break without their assumptions, and every schedule costs what is claimed.

use std::sync::Arc;

use Channel::{Fifo, Unordered};
use doorway_core::algorithms::carvalho_roucairol::CarvalhoRoucairol;
use doorway_core::algorithms::central::Central;
use doorway_core::algorithms::lamport::Lamport;
use doorway_core::algorithms::naimi_trehel::NaimiTrehel;
use doorway_core::algorithms::readers_writers::ReadersWriters;
use doorway_core::algorithms::ricart_agrawala::RicartAgrawala;
use doorway_core::algorithms::ricart_agrawala_token::RicartAgrawalaToken;
use doorway_core::algorithms::suzuki_kasami::SuzukiKasami;
use doorway_core::{Algorithm, Channel, Member, Mode, Shape, Start, Wiring};
use doorway_lab::check::{Check, Verdict};
use doorway_lab::{AnyAlgorithm, Limits, Violation, World};

use crate::verdicts::{holds, together, violation};

/// A world in which node i asks `quotas[i]` times and nothing fails.
fn world<A: Algorithm>(channel: Channel, quotas: &[u32]) -> World {
    shaped::<A>(&Shape::default(), channel, quotas)
}

fn wired(wiring: Wiring, channel: Channel, quotas: &[u32]) -> World {
    shaped::<SuzukiKasami>(&Shape { wiring: Some(wiring), ..Shape::default() }, channel, quotas)
}

fn shaped<A: Algorithm>(shape: &Shape, channel: Channel, quotas: &[u32]) -> World {
    let group = Arc::new(A::INFO.group(quotas.len(), shape).expect("small groups exist"));
    let mut limits = Limits::reliable(&group, 0);
    limits.acquires = quotas.iter().map(|quota| (*quota, Mode::Exclusive)).collect();
    World::new(AnyAlgorithm::of::<A>(), group, &Start::default(), channel, limits)
}

fn losing(mut world: World, losses: u32) -> World {
    world.limits_mut().losses = losses;
    world
}

fn doubling(mut world: World, duplicates: u32) -> World {
    world.limits_mut().duplicates = duplicates;
    world
}

/// The fewest and the most messages of a whole run, over all schedules.
#[track_caller]
fn messages(world: &World) -> (u64, u64) {
    let report = Check::new(world, 150_000).run();
    assert_eq!(report.verdict, Verdict::Holds, "{}", world.info().name);
    report.waiting.and_then(|waiting| waiting.messages).expect("every run ends")
}

#[test]
fn all_hold_under_longer_schedules() {
    holds(&world::<Central>(Unordered, &[2, 2, 2]));
    holds(&world::<Central>(Unordered, &[0, 3, 3]));
    holds(&world::<Lamport>(Fifo, &[3, 3]));
    holds(&world::<CarvalhoRoucairol>(Unordered, &[4, 4]));
    holds(&world::<CarvalhoRoucairol>(Unordered, &[2, 2, 2]));
    holds(&world::<RicartAgrawalaToken>(Unordered, &[2, 2, 2]));
    holds(&world::<NaimiTrehel>(Unordered, &[3, 3, 3]));
    holds(&world::<NaimiTrehel>(Unordered, &[2, 2, 2, 2]));
}

#[test]
fn suzuki_kasami_holds_over_every_wiring() {
    for channel in [Fifo, Unordered] {
        for wiring in [Wiring::Mesh, Wiring::Ring, Wiring::Tree] {
            holds(&wired(wiring, channel, &[2, 2, 1]));
        }
        for wiring in [Wiring::Ring, Wiring::Tree] {
            holds(&wired(wiring, channel, &[1, 1, 1, 1]));
        }
    }
}

/// A world of readers and writers, each asking twice.
fn library(channel: Channel, modes: [Mode; 3]) -> World {
    let mut world = world::<ReadersWriters>(channel, &[2; 3]);
    world.limits_mut().acquires = modes.map(|mode| (2, mode)).into();
    world
}

#[test]
fn readers_share_and_writers_are_alone() {
    use Mode::{Exclusive, Shared};
    for channel in [Fifo, Unordered] {
        holds(&library(channel, [Exclusive, Shared, Shared]));
        holds(&library(channel, [Exclusive, Exclusive, Shared]));
    }
    // Three requests and their six replies let all readers in. A writer is never inside with them.
    assert_eq!(three_inside(&library(Unordered, [Shared; 3])), Some(15));
    assert_eq!(three_inside(&library(Unordered, [Exclusive, Shared, Shared])), None);
}

/// The length of the shortest way to three nodes inside, if there is one.
fn three_inside(world: &World) -> Option<usize> {
    let judge = |world: &World| (world.nodes().inside() == 3).then(|| "three inside".to_owned());
    let check = Check { judge: Some(&judge), ..Check::safety(world, 150_000) };
    match check.run().verdict {
        Verdict::Violated { trace, .. } => Some(trace.len()),
        verdict => {
            assert_eq!(verdict, Verdict::Holds);
            None
        }
    }
}

/// The module `flaws` shows that Lamport's algorithm needs channels that keep order and lose
/// nothing.
#[test]
fn duplicates_do_not_break_lamport_on_fifo_channels() {
    assert_eq!(together(&doubling(world::<Lamport>(Fifo, &[2, 2]), 2)), None);
}

#[test]
fn after_a_loss_all_but_lamport_stay_safe_and_wait() {
    fn waits<A: Algorithm>(quotas: &[u32], losses: u32) {
        let (_, found) = violation(&losing(world::<A>(Unordered, quotas), losses));
        assert!(matches!(found, Violation::Stuck(_)), "{}: {found}", A::INFO.name);
        assert_eq!(together(&losing(world::<A>(Unordered, quotas), losses)), None);
    }
    waits::<Central>(&[2, 2, 2], 2);
    waits::<RicartAgrawala>(&[1, 1, 1], 2);
    waits::<CarvalhoRoucairol>(&[1, 1, 1], 2);
    waits::<ReadersWriters>(&[1, 1, 1], 2);
    waits::<RicartAgrawalaToken>(&[2, 1, 1], 2);
    waits::<SuzukiKasami>(&[2, 1, 1], 2);
    waits::<NaimiTrehel>(&[2, 2, 2], 2);
}

#[test]
fn one_duplicate_lets_two_nodes_in() {
    fn unsafe_after<A: Algorithm>(quotas: &[u32]) -> Option<usize> {
        together(&doubling(world::<A>(Unordered, quotas), 1))
    }
    assert_eq!(unsafe_after::<Central>(&[0, 2, 2]), Some(10));
    assert_eq!(unsafe_after::<RicartAgrawala>(&[2, 2]), Some(9));
    assert_eq!(unsafe_after::<CarvalhoRoucairol>(&[2, 2]), Some(9));
    assert_eq!(unsafe_after::<ReadersWriters>(&[2, 2]), Some(9));
    assert_eq!(unsafe_after::<RicartAgrawalaToken>(&[2, 2]), Some(9));
    assert_eq!(unsafe_after::<SuzukiKasami>(&[2, 2]), Some(9));
    assert_eq!(unsafe_after::<NaimiTrehel>(&[2, 2]), Some(9));
}

#[test]
fn no_schedule_costs_more_than_claimed() {
    assert_eq!(messages(&world::<Central>(Unordered, &[1, 1, 1])), (6, 6));
    assert_eq!(messages(&world::<Lamport>(Fifo, &[2, 2])), (12, 12));
    assert_eq!(messages(&world::<CarvalhoRoucairol>(Unordered, &[2, 2, 2])), (12, 24));
    assert_eq!(messages(&world::<RicartAgrawalaToken>(Unordered, &[2, 2, 2])), (6, 18));
    assert_eq!(messages(&world::<SuzukiKasami>(Unordered, &[1, 1, 1])), (6, 9));
    assert_eq!(messages(&world::<NaimiTrehel>(Unordered, &[1, 1, 1, 1])), (8, 10));
}

#[test]
fn a_fifo_ring_costs_n_and_an_unordered_ring_up_to_2n() {
    assert_eq!(messages(&wired(Wiring::Ring, Fifo, &[1, 1, 1])), (5, 9));
    assert_eq!(messages(&wired(Wiring::Ring, Fifo, &[1, 1, 1, 1])), (9, 16));
    assert_eq!(messages(&wired(Wiring::Ring, Unordered, &[1, 1, 1])), (4, 11));
    assert_eq!(messages(&wired(Wiring::Ring, Unordered, &[1, 1, 1, 1])), (6, 22));
    assert_eq!(messages(&wired(Wiring::Tree, Unordered, &[1, 1, 1, 1])), (13, 20));
}

#[test]
fn a_million_nodes_of_naimi_and_trehel_use_little_memory() {
    assert!(size_of::<Member<NaimiTrehel>>() <= 40);
}
