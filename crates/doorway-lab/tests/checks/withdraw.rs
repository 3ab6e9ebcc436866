//! Requests that are given up: wrong ways to withdraw them are found, and a request that was given
//! up keeps nobody waiting, even if a node has crashed that it asked.

use std::sync::Arc;

use doorway_core::algorithms::carvalho_roucairol::CarvalhoRoucairol;
use doorway_core::algorithms::lamport::Lamport;
use doorway_core::algorithms::maekawa::Maekawa;
use doorway_core::algorithms::majority::Majority;
use doorway_core::algorithms::ricart_agrawala::RicartAgrawala;
use doorway_core::{Algorithm, Effects, Group, Info, Mode, NodeId, Phase, Shape, Start};
use doorway_lab::check::{Check, SearchTargets, Verdict};
use doorway_lab::{AnyAlgorithm, Limits, Violation, World};

use crate::verdicts::{STUCK, TOGETHER, way_to};
use doorway_lab::spoiled::{Sends, Spoil, SpoiledAlgorithm};

/// A world in which node i asks `asks[i]` times, and may give up.
fn world<A: Algorithm>(asks: &[u32]) -> World {
    let group = Arc::new(A::INFO.group(asks.len(), &Shape::default()).expect("small groups exist"));
    let mut limits = Limits { withdrawing: true, ..Limits::reliable(&group, 0) };
    limits.acquires = asks.iter().map(|times| (*times, Mode::Exclusive)).collect();
    World::new(AnyAlgorithm::of::<A>(), group, &Start::default(), A::INFO.channel, limits)
}

/// The number of steps of the shortest way to a violation of `targets`.
#[track_caller]
fn steps<A: Algorithm>(asks: &[u32], targets: SearchTargets) -> usize {
    let found = way_to(&world::<A>(asks), targets);
    found.unwrap_or_else(|| panic!("{} holds", A::INFO.name)).0.len()
}

/// Gives up without telling anyone: the deferred replies, votes and releases are not sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Silent<A>(std::marker::PhantomData<A>);

impl<A> Default for Silent<A> {
    fn default() -> Self {
        Self(std::marker::PhantomData)
    }
}

impl<A: Algorithm> Spoil for Silent<A> {
    type Of = A;

    fn withdraw(&mut self, _sends: Sends<Self>) -> Sends<Self> {
        Vec::new()
    }
}

#[test]
fn a_node_that_gives_up_must_say_so() {
    let found = [
        steps::<SpoiledAlgorithm<Silent<RicartAgrawala>>>(&[1, 1, 1], STUCK),
        steps::<SpoiledAlgorithm<Silent<CarvalhoRoucairol>>>(&[1, 1, 1], STUCK),
        steps::<SpoiledAlgorithm<Silent<Lamport>>>(&[1, 1], STUCK),
        steps::<SpoiledAlgorithm<Silent<Maekawa>>>(&[1, 1], STUCK),
        steps::<SpoiledAlgorithm<Silent<Majority>>>(&[1, 1, 1], STUCK),
    ];
    assert_eq!(found, [10, 10, 7, 6, 16]);
}

/// Forgets a request that is given up, and takes the answers to it that come later for answers to
/// the next request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct HastyAlgorithm<A> {
    me: NodeId,
    sound: A,
}

impl<A: Algorithm> Algorithm for HastyAlgorithm<A> {
    type Message = A::Message;

    const INFO: Info = A::INFO;

    fn new(me: NodeId, group: &Group, start: &Start) -> Self {
        Self { me, sound: A::new(me, group, start) }
    }

    fn acquire(&mut self, group: &Group, mode: Mode, out: &mut Effects<A::Message>) {
        self.sound.acquire(group, mode, out);
    }

    fn receive(
        &mut self,
        group: &Group,
        from: NodeId,
        message: A::Message,
        out: &mut Effects<A::Message>,
    ) {
        self.sound.receive(group, from, message, out);
        if out.rejected().is_some() {
            out.clear(); // An answer that comes while no client waits.
        }
    }

    fn release(&mut self, group: &Group, out: &mut Effects<A::Message>) {
        self.sound.release(group, out);
    }

    fn withdraw(&mut self, group: &Group, out: &mut Effects<A::Message>) {
        let floor = self.sound.floor().unwrap_or_default();
        self.sound.withdraw(group, out);
        self.sound = A::new(self.me, group, &Start { holders: Vec::new(), floor });
    }

    fn wanted(&self) -> bool {
        self.sound.wanted()
    }

    fn floor(&self) -> Option<u64> {
        None
    }
}

#[test]
fn answers_to_a_request_that_was_given_up_must_not_count_for_the_next() {
    let found = [
        steps::<HastyAlgorithm<RicartAgrawala>>(&[2, 1], TOGETHER),
        steps::<HastyAlgorithm<CarvalhoRoucairol>>(&[2, 1], TOGETHER),
    ];
    assert_eq!(found, [8; 2]);
}

/// Search all worlds of three nodes of which one may crash, and nobody is told. If nothing is under
/// way, no node may wait for idle nodes only.
fn keeps_nobody_waiting<A: Algorithm>(permissions: fn(&A) -> &CarvalhoRoucairol) -> Verdict {
    let mut world = world::<A>(&[2, 1, 1]);
    (world.limits_mut().crashes, world.limits_mut().detection) = (1, false);
    let judge = move |world: &World| {
        let quiet = world.under_way().next().is_none();
        let idle = world.live_in(Phase::Outside);
        world.live_in(Phase::Waiting).into_iter().filter(|_| quiet).find_map(|waiting| {
            let state = permissions(world.nodes().member(waiting).algorithm());
            let mut missing =
                world.group().others(waiting).filter(|node| !state.permitted_by(*node));
            missing.all(|node| idle.contains(&node)).then(|| {
                format!("node {waiting} waits, but no node that it waits for wants to enter")
            })
        })
    };
    let targets = SearchTargets { stuck: false, ..SearchTargets::default() };
    Check { targets, judge: Some(&judge), ..Check::safety(&world, 4_000_000) }.run().verdict
}

/// The scene of a lock service with a member that is away: a node gives up because a crashed node
/// does not answer, and a node that has the permission of the crashed one goes on.
#[test]
fn a_request_that_was_given_up_keeps_nobody_waiting_although_a_node_has_crashed() {
    assert_eq!(keeps_nobody_waiting::<CarvalhoRoucairol>(|state| state), Verdict::Holds);
    let silent =
        keeps_nobody_waiting::<SpoiledAlgorithm<Silent<CarvalhoRoucairol>>>(|state| &state.sound);
    assert!(matches!(silent, Verdict::Violated { violation: Violation::Claim(_), .. }));
}
