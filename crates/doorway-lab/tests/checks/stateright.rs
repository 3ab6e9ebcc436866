//! A comparison with Stateright. It searches the same worlds, finds as many of them as our checker
//! does, and finds a shortest way of the same length to every known violation.

use std::mem::discriminant;
use std::sync::Arc;

use doorway_core::algorithms::carvalho_roucairol::CarvalhoRoucairol;
use doorway_core::algorithms::central::Central;
use doorway_core::algorithms::lamport::Lamport;
use doorway_core::algorithms::maekawa::{Maekawa, MaekawaPrinted};
use doorway_core::algorithms::maekawa_eager::MaekawaSlidesPrinted;
use doorway_core::algorithms::maekawa_heir::MaekawaHeir;
use doorway_core::algorithms::maekawa_sequential::MaekawaSequentialSelfFirst;
use doorway_core::algorithms::maekawa_unordered::MaekawaUnordered;
use doorway_core::algorithms::majority::Majority;
use doorway_core::algorithms::naimi_trehel::NaimiTrehel;
use doorway_core::algorithms::raymond_k::RaymondK;
use doorway_core::algorithms::raymond_tree::RaymondTree;
use doorway_core::algorithms::readers_writers::ReadersWriters;
use doorway_core::algorithms::ricart_agrawala::RicartAgrawala;
use doorway_core::algorithms::suzuki_kasami::SuzukiKasami;
use doorway_core::{Algorithm, Channel, Group, Mode, NodeId, Shape, Start, Wiring};
use doorway_lab::{AnyAlgorithm, Limits, Violation, World};

use crate::figures::{self, CYCLIC, STAIRS, VOTER};
use crate::opinions::{Opinion, ours, stateright};
use Channel::{Fifo, Unordered};

/// A world in which node i asks `asks[i]` times.
fn world<A: Algorithm>(channel: Channel, asks: &[u32]) -> World {
    shaped::<A>(&Shape::default(), channel, asks)
}

fn shaped<A: Algorithm>(shape: &Shape, channel: Channel, asks: &[u32]) -> World {
    let group = A::INFO.group(asks.len(), shape).expect("small groups exist");
    of_group::<A>(Arc::new(group), channel, asks)
}

fn of_group<A: Algorithm>(group: Arc<Group>, channel: Channel, asks: &[u32]) -> World {
    let limits = figures::limits(&group, asks);
    World::new(AnyAlgorithm::of::<A>(), group, &Start::default(), channel, limits)
}

/// Change the limits of a world.
fn with(mut world: World, change: impl Fn(&mut Limits)) -> World {
    change(world.limits_mut());
    world
}

/// Both checkers find no violation in the same number of worlds.
#[track_caller]
fn same_worlds(world: World) {
    let (name, opinion) = (world.info().name, ours(&world));
    println!("{name}: {opinion:?}");
    assert!(matches!(opinion, Opinion::Holds(_)), "{name}: {opinion:?}");
    assert_eq!(opinion, stateright(world), "{name}");
}

/// Both checkers find a violation of this kind after `steps` steps.
#[track_caller]
fn same_way(world: World, steps: usize, violation: fn(Vec<NodeId>) -> Violation) {
    let known = Opinion::Violated(steps, discriminant(&violation(Vec::new())));
    let name = world.info().name;
    for opinion in [ours(&world), stateright(world)] {
        assert_eq!(opinion, known, "{name}");
    }
}

#[test]
fn as_many_worlds_without_faults() {
    same_worlds(world::<Central>(Unordered, &[2, 2, 2]));
    same_worlds(world::<Lamport>(Fifo, &[3, 3]));
    same_worlds(world::<Lamport>(Fifo, &[2, 1, 0]));
    for channel in [Fifo, Unordered] {
        same_worlds(world::<RicartAgrawala>(channel, &[2, 2, 2]));
        same_worlds(world::<CarvalhoRoucairol>(channel, &[2, 2, 2]));
        same_worlds(world::<SuzukiKasami>(channel, &[2, 2, 2]));
        same_worlds(world::<NaimiTrehel>(channel, &[2, 2, 2, 2]));
        same_worlds(world::<RaymondTree>(channel, &[2, 1, 1, 1]));
    }
    same_worlds(world::<Maekawa>(Fifo, &[2, 2, 2]));
    same_worlds(world::<Maekawa>(Fifo, &[1, 1, 1, 0]));
    same_worlds(world::<MaekawaUnordered>(Unordered, &[2, 2, 2]));
    same_worlds(world::<Majority>(Fifo, &[2, 1, 0]));
}

#[test]
fn as_many_worlds_of_groups_with_a_shape() {
    for wiring in [Wiring::Ring, Wiring::Tree] {
        let shape = Shape { wiring: Some(wiring), ..Shape::default() };
        same_worlds(shaped::<SuzukiKasami>(&shape, Unordered, &[1, 1, 1, 1]));
    }
    let two = Shape { permits: Some(2), ..Shape::default() };
    same_worlds(shaped::<RaymondK>(&two, Unordered, &[1, 1, 1]));
}

#[test]
fn as_many_worlds_with_readers_and_faults() {
    let reads = |limits: &mut Limits| limits.acquires[1..].fill((2, Mode::Shared));
    same_worlds(with(world::<ReadersWriters>(Unordered, &[2, 2, 2]), reads));
    let forgets = |limits: &mut Limits| limits.forgetting = true;
    same_worlds(with(world::<CarvalhoRoucairol>(Unordered, &[2, 2, 2]), forgets));
    let crashes = |limits: &mut Limits| (limits.crashes, limits.detection) = (1, true);
    same_worlds(with(world::<MaekawaHeir>(Fifo, &[1, 1, 1]), crashes));
    let doubles = |limits: &mut Limits| limits.duplicates = 1;
    same_worlds(with(world::<Majority>(Fifo, &[2, 2]), doubles));
    // A vote may be lost if there is one to spare, and no other node asks for it.
    let loses = |limits: &mut Limits| limits.losses = 1;
    same_worlds(with(world::<Majority>(Fifo, &[2, 0, 0]), loses));
}

#[test]
fn shortest_ways_to_violations_have_the_same_length() {
    let of = figures::group::<&[u32]>;
    same_way(world::<Lamport>(Unordered, &[1, 1]), 4, Violation::Together);
    same_way(of_group::<MaekawaPrinted>(of(STAIRS), Fifo, &[1; 3]), 8, Violation::Stuck);
    same_way(of_group::<MaekawaPrinted>(of(CYCLIC), Fifo, &[1; 3]), 13, Violation::Stuck);
    same_way(of_group::<MaekawaPrinted>(of(VOTER), Fifo, &[1, 1, 2]), 16, Violation::Together);
    let slides = of_group::<MaekawaSlidesPrinted>(of(VOTER), Fifo, &[1, 0, 2]);
    same_way(slides, 13, Violation::Together);
    same_way(world::<MaekawaSequentialSelfFirst>(Unordered, &[1, 1]), 4, Violation::Stuck);
}

#[test]
fn shortest_ways_to_violations_by_faults_have_the_same_length() {
    let loses = |limits: &mut Limits| limits.losses = 1;
    same_way(with(world::<RicartAgrawala>(Fifo, &[1, 1]), loses), 2, Violation::Stuck);
    let doubles = |limits: &mut Limits| limits.duplicates = 1;
    same_way(with(world::<Majority>(Unordered, &[1; 3]), doubles), 7, Violation::Together);
    let crashes = |limits: &mut Limits| (limits.crashes, limits.detection) = (1, true);
    same_way(with(world::<RicartAgrawala>(Fifo, &[1; 3]), crashes), 6, Violation::Stuck);
    let rejected = |_| Violation::Rejected { node: NodeId(0), reason: "" };
    same_way(with(world::<Central>(Fifo, &[0, 1, 1]), doubles), 4, rejected);
}
