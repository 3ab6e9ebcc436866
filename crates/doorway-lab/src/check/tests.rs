//! A packed world behaves like the world: each choice leads both to equal worlds.

use std::sync::Arc;

use doorway_core::algorithms::{self, ALL, Task};
use doorway_core::{Algorithm, Channel, Mode, Shape, Start};
use doorway_search::{Model, ModelViolation, NOT_FOLLOWED, Successors};

use super::codec::WorldCodec;
use super::pack::{PackedModel, SearchTargets};
use super::tables::Tables;
use super::{Case, Progress, Report, Verdict};
use crate::simulate::Dice;
use crate::{AnyAlgorithm, FOREVER, Limits, World};

/// Walk at random, and compare at each world what the world and its packed form say can happen
/// next.
#[derive(Clone, Copy)]
struct Compare {
    channel: Channel,
    acquires: u32,
    faults: bool,
}

impl Task for Compare {
    type Output = ();

    fn run<A: Algorithm>(self) {
        let group = Arc::new(A::INFO.group(3, &Shape::default()).expect("three nodes"));
        let mode = if A::INFO.shared { Mode::Shared } else { Mode::Exclusive };
        let mut limits = Limits::reliable(&group, self.acquires);
        limits.acquires[1].1 = mode;
        limits.withdrawing = true;
        if self.faults {
            (limits.losses, limits.duplicates, limits.crashes) = (2, 2, 1);
            (limits.detection, limits.forgetting) = (true, true);
        }
        let first =
            World::new(AnyAlgorithm::of::<A>(), group, &Start::default(), self.channel, limits);
        let settling = self.acquires == FOREVER;
        let codec = WorldCodec::new(&first, SearchTargets::default(), settling, None);
        let packed = codec.packed();
        for seed in 0..8 {
            let mut dice = Dice::new(seed);
            let mut world = codec.as_searched(&first);
            for _ in 0..80 {
                let Some(next) = compare(&codec, &packed, &world, &mut dice) else { break };
                world = next;
            }
        }
    }
}

/// Compare the successors of one world, and pick one of them.
fn compare(
    codec: &WorldCodec<'_>,
    packed: &PackedModel<'_>,
    world: &World,
    dice: &mut Dice,
) -> Option<World> {
    let pack = |world: &World| {
        let row = codec.pack(&mut packed.tables_mut(), world);
        let print = packed.print(&packed.tables(), &row);
        (row, print)
    };
    let (row, print) = pack(world);
    assert_eq!(codec.unpack(&packed.tables(), &row), *world);
    let mut successors = Successors::default();
    packed.expand(&row, print, &mut successors);
    let choices = world.choices();
    assert_eq!(successors.len(), choices.len(), "{}: {choices:?}", world.info().name);
    let mut wrong = None;
    let mut sound = Vec::new();
    for (nth, choice) in choices.iter().enumerate() {
        let mut next = world.clone();
        let step = next.apply(*choice);
        let (there, _, found) = successors.iter(packed.width()).nth(nth).expect("as many");
        if step.violation.is_some() {
            wrong = wrong.or(Some(nth as u32));
            assert_eq!(
                there,
                NOT_FOLLOWED,
                "{} {choice:?}: {:?}",
                world.info().name,
                step.violation
            );
        } else {
            let next = codec.as_searched(&next);
            assert_eq!((found.to_vec(), there), pack(&next), "{} {choice:?}", world.info().name);
            sound.push(next);
        }
    }
    let stuck = world.stuck().map(|_| ModelViolation::State);
    assert_eq!(
        successors.wrong(),
        stuck.or(wrong.map(ModelViolation::Step)),
        "{}",
        world.info().name
    );
    (!sound.is_empty()).then(|| sound.swap_remove(dice.below(sound.len())))
}

#[test]
fn a_packed_world_behaves_like_the_world() {
    for entry in ALL {
        for channel in [Channel::Fifo, Channel::Unordered] {
            for (acquires, faults) in [(2, false), (2, true), (FOREVER, false)] {
                let compare = Compare { channel, acquires, faults };
                algorithms::with(entry.info.name, compare).expect("a name of the list");
                algorithms::with_one_pass(entry.info.name, compare);
            }
        }
    }
}

/// The fingerprint of a world does not depend on the worlds that were met before it, so that a
/// search can go on in another process.
struct PrintInAnyOrder;

impl Task for PrintInAnyOrder {
    type Output = ();

    fn run<A: Algorithm>(self) {
        let group = Arc::new(A::INFO.group(3, &Shape::default()).expect("three nodes"));
        let limits = Limits::reliable(&group, FOREVER);
        let first =
            World::new(AnyAlgorithm::of::<A>(), group, &Start::default(), A::INFO.channel, limits);
        let mut dice = Dice::new(1);
        let mut worlds = vec![first.settled()];
        for _ in 0..60 {
            let mut next = worlds[worlds.len() - 1].clone();
            let choices = next.choices();
            let Some(last) = choices.len().checked_sub(1) else { break };
            if next.apply(choices[dice.below(last + 1)]).violation.is_some() {
                break;
            }
            worlds.push(next.settled());
        }
        let prints = |worlds: &mut dyn Iterator<Item = &World>| {
            let codec = WorldCodec::new(&first, SearchTargets::default(), true, None);
            let packed = codec.packed();
            let print = |world| {
                let row = codec.pack(&mut packed.tables_mut(), world);
                packed.print(&packed.tables(), &row)
            };
            worlds.map(print).collect::<Vec<u64>>()
        };
        let mut backwards = prints(&mut worlds.iter().rev());
        backwards.reverse();
        assert_eq!(prints(&mut worlds.iter()), backwards, "{}", A::INFO.name);
    }
}

#[test]
fn a_fingerprint_does_not_depend_on_what_was_met_before() {
    for entry in ALL {
        algorithms::with(entry.info.name, PrintInAnyOrder).expect("a name of the list");
    }
}

/// Look up a world in a copy of the tables that does not know it yet. Returns whether only a node's
/// place is new in that world, because the step to it sends no message.
struct FallBehind;

impl Task for FallBehind {
    type Output = bool;

    fn run<A: Algorithm>(self) -> bool {
        let group = Arc::new(A::INFO.group(3, &Shape::default()).expect("three nodes"));
        let limits = Limits::reliable(&group, 1);
        let first =
            World::new(AnyAlgorithm::of::<A>(), group, &Start::default(), A::INFO.channel, limits);
        let codec = WorldCodec::new(&first, SearchTargets::default(), false, None);
        let packed = codec.packed();
        let mut copy = Tables::new(first.channel());
        assert!(copy.follow(&packed.tables()));
        let mut later = first.clone();
        let sends = later.apply(first.choices()[0]).sends;
        let row = codec.pack(&mut packed.tables_mut(), &later);
        assert_eq!(codec.find(&copy, &later), None, "{}", A::INFO.name);
        assert!(copy.follow(&packed.tables()));
        assert_eq!(codec.find(&copy, &later), Some(row), "{}", A::INFO.name);
        assert!(!copy.follow(&packed.tables()));
        sends.is_empty()
    }
}

#[test]
fn a_copy_that_is_behind_does_not_find_what_it_lacks() {
    let behind = |name| algorithms::with(name, FallBehind).expect("a name of the list");
    let places = ALL.iter().filter(|entry| behind(entry.info.name)).count();
    assert!(places > 0, "in no algorithm does the first step send nothing");
}

/// What a settled search finds with this number of threads, without the bytes that it took.
fn settled_search(case: &Case, threads: usize) -> Report {
    let case = Case { threads, ..case.clone() };
    let mut report = case.run(&mut |_| true);
    report.progress = Progress { bytes: 0, ..report.progress };
    report
}

/// Threads meet worlds in different orders, and each has caches of its own; what is found does not
/// depend on it.
#[test]
fn a_settled_search_finds_the_same_with_any_number_of_threads() {
    let names = ["ricart-agrawala", "carvalho-roucairol", "suzuki-kasami", "naimi-trehel"];
    let case = |name: &str, size: usize, shape: &Shape| {
        let algorithm = AnyAlgorithm::named(name).expect("a name of the list");
        let group = algorithm.info().group(size, shape).expect("a group");
        Case::new(algorithm, group, FOREVER)
    };
    // Layers of up to 512 worlds are searched by one thread. Those of the third algorithm have
    // more.
    for (name, size) in names.into_iter().zip([3, 3, 4, 3]) {
        let case = case(name, size, &Shape::default());
        let alone = settled_search(&case, 1);
        assert_eq!(alone.verdict, Verdict::Holds, "{name}");
        assert!(alone.waiting.is_some() && alone.progress.states > 300, "{name}: {alone:?}");
        let worlds_a_layer = alone.progress.states / (u64::from(alone.progress.depth) + 1);
        assert!(size == 3 || worlds_a_layer > 512, "{name}: {alone:?}");
        for threads in [2, 3] {
            assert_eq!(settled_search(&case, threads), alone, "{name} on {threads} threads");
        }
    }
    let wrong = case("maekawa-sequential-self-first", 3, &Shape::default());
    let alone = settled_search(&wrong, 1);
    assert!(matches!(alone.verdict, Verdict::Violated { .. }), "{alone:?}");
    for threads in [2, 3] {
        assert_eq!(settled_search(&wrong, threads), alone, "{threads} threads");
    }
}
