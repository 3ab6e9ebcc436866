//! The checker finds every flaw that is made on purpose, with the property that it breaks, and does
//! not report behaviour that only looks wrong.

mod coordinator;
mod spoils;

use std::sync::Arc;

use doorway_core::algorithms::central::Central;
use doorway_core::algorithms::le_lann::LeLann;
use doorway_core::algorithms::maekawa::Maekawa;
use doorway_core::algorithms::naimi_trehel::NaimiTrehel;
use doorway_core::algorithms::raymond_tree::RaymondTree;
use doorway_core::{Algorithm, Channel, Mode, NodeId, Shape, Start};
use doorway_lab::check::{Check, Property, Report, SearchTargets, Verdict};
use doorway_lab::{AnyAlgorithm, Choice, FOREVER, Limits, Violation, World};

use crate::verdicts;
use coordinator::{Coordinator, Fair, Greedy, LastFirst};
use doorway_lab::flaws::any_reply::AnyReply;
use doorway_lab::spoiled::SpoiledAlgorithm;
use spoils::{
    DroppedDeferral, EarlyEntry, ForgottenClock, ForgottenRequest, LostRelease, PassedBy,
    TwoTokens, WrongNode,
};

/// A world in which node i asks `asks[i]` times over the channels that the algorithm assumes.
fn world<A: Algorithm>(asks: &[u32]) -> World {
    shaped::<A>(&Shape::default(), asks)
}

fn shaped<A: Algorithm>(shape: &Shape, asks: &[u32]) -> World {
    over::<A>(A::INFO.channel, shape, asks)
}

fn over<A: Algorithm>(channel: Channel, shape: &Shape, asks: &[u32]) -> World {
    let group = Arc::new(A::INFO.group(asks.len(), shape).expect("a small group"));
    let mut limits = Limits::reliable(&group, 0);
    limits.acquires = asks.iter().map(|times| (*times, Mode::Exclusive)).collect();
    World::new(AnyAlgorithm::of::<A>(), group, &Start::default(), channel, limits)
}

/// The result of the checker with all properties.
fn verdict(world: &World) -> Verdict {
    Check::new(world, 500_000).run().verdict
}

/// The property that is violated, and the length of the shortest way there.
#[track_caller]
fn bites(world: &World) -> (Property, usize) {
    match verdict(world) {
        Verdict::Violated { trace, violation, .. } => {
            (Property::violated_by(&violation), trace.len())
        }
        verdict => panic!("{}: {verdict:?}", world.info().name),
    }
}

#[test]
fn broken_exclusion_is_found() {
    let mut forgetful = world::<SpoiledAlgorithm<ForgottenClock>>(&[2, 1]);
    verdicts::holds(&forgetful);
    forgetful.limits_mut().forgetting = true;
    let two = Shape { permits: Some(2), ..Shape::default() };
    let found = [
        bites(&forgetful),
        bites(&world::<SpoiledAlgorithm<EarlyEntry>>(&[1, 1, 1])),
        bites(&shaped::<SpoiledAlgorithm<AnyReply>>(&two, &[2, 2, 1])),
    ];
    assert_eq!(found, [7, 6, 13].map(|steps| (Property::Exclusion, steps)));
    // A second token is rejected by the node that still has the first one, so that is found first.
    let doubled = world::<SpoiledAlgorithm<TwoTokens>>(&[1, 1, 1]);
    assert_eq!(bites(&doubled), (Property::Refusal, 3));
    assert_eq!(verdicts::together(&doubled), Some(5));
}

#[test]
fn deadlocks_are_found() {
    let found = [
        bites(&world::<SpoiledAlgorithm<DroppedDeferral>>(&[1, 1])),
        bites(&world::<SpoiledAlgorithm<LostRelease>>(&[0, 1, 1])),
        bites(&world::<SpoiledAlgorithm<ForgottenRequest>>(&[1, 1])),
    ];
    assert_eq!(found, [6, 6, 2].map(|steps| (Property::Stuck, steps)));
}

fn play(world: &mut World, choices: &[Choice]) {
    for choice in choices {
        world.apply(*choice);
    }
}

/// Starvation in a world that goes on, which only a cycle shows. Returns the node that starves.
#[track_caller]
fn starves(world: &World) -> NodeId {
    let targets = SearchTargets { stuck: false, ..SearchTargets::default() };
    assert_eq!(verdicts::way_to(world, targets), None, "no single world or step shows it");
    let Report { verdict, .. } = Check { targets, ..Check::new(world, 500_000) }.run();
    let Verdict::Violated { trace, cycle, violation } = verdict else {
        panic!("{}: {verdict:?}", world.info().name);
    };
    let Violation::Starved(node) = violation else { panic!("{violation}") };
    // After the cycle the world is what it was before it.
    let mut played = world.clone();
    play(&mut played, &trace);
    let begin = played.clone();
    assert!(played.live_in(doorway_core::Phase::Waiting).contains(&node));
    play(&mut played, &cycle);
    assert!(!cycle.is_empty() && played == begin, "{cycle:?}");
    node
}

#[test]
fn starvation_is_found() {
    assert_eq!(starves(&world::<SpoiledAlgorithm<PassedBy>>(&[1, 1, 1])), NodeId(1));
    assert_eq!(starves(&world::<Coordinator<Greedy>>(&[FOREVER, 1])), NodeId(1));
    // Any two of three clients can keep the third one out. This one is found first.
    let stack = world::<Coordinator<LastFirst>>(&[0, FOREVER, FOREVER, FOREVER]);
    assert_eq!(starves(&stack), NodeId(2));
}

#[test]
fn flaws_of_a_driver_are_found() {
    // A message to one node arrives at another.
    assert_eq!(bites(&world::<SpoiledAlgorithm<WrongNode>>(&[1, 1, 1])), (Property::Refusal, 3));
    // A channel is declared to be FIFO and is not.
    assert_eq!(verdict(&world::<Maekawa>(&[1, 1, 1])), Verdict::Holds);
    let unordered = over::<Maekawa>(Channel::Unordered, &Shape::default(), &[1, 1, 1]);
    assert_eq!(bites(&unordered), (Property::Refusal, 8));
}

/// A node may be overtaken for as long as a message is withheld, or wait for as long as the token
/// is elsewhere. But messages arrive eventually, so this is not starvation.
#[test]
fn an_unfair_schedule_is_not_starvation() {
    #[track_caller]
    fn overtaken<A: Algorithm>(asks: &[u32]) -> Option<u32> {
        let report = Check::new(&world::<A>(asks), 500_000).run();
        assert_eq!(report.verdict, Verdict::Holds, "{}", A::INFO.name);
        report.waiting.expect("it was looked into").overtaken
    }
    let often = [FOREVER; 3];
    assert_eq!(overtaken::<LeLann>(&often), Some(2));
    assert_eq!(overtaken::<Central>(&often), None);
    assert_eq!(overtaken::<Coordinator<Fair>>(&often), None);
    assert_eq!(overtaken::<NaimiTrehel>(&often), None);
    assert_eq!(overtaken::<RaymondTree>(&often), None);
}
