//! Fences grow from grant to grant.

use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;

use doorway_core::algorithms::central::Central;
use doorway_core::algorithms::maekawa::Maekawa;
use doorway_core::algorithms::maekawa_heir::MaekawaHeir;
use doorway_core::algorithms::majority::WeightedMajority;
use doorway_core::algorithms::naimi_trehel::NaimiTrehel;
use doorway_core::algorithms::raymond_k::RaymondK;
use doorway_core::algorithms::readers_writers::ReadersWriters;
use doorway_core::algorithms::ricart_agrawala::RicartAgrawala;
use doorway_core::algorithms::{self, Task};
use doorway_core::{Algorithm, Group, Mode, NodeId, Shape, Start};
use doorway_lab::check::Verdict;
use doorway_lab::watch::fence::{Fences, check};
use doorway_lab::watch::{Event, Outgoing, Watch};
use doorway_lab::{AnyAlgorithm, World};

use super::{asks, complaint, sound, steps};
use crate::watching::{search, world};

/// The flaws of a clock. There is none if nothing is overridden.
trait Fault: Clone + Debug + Eq + Hash + Send + Sync + 'static {
    /// Does the receiver of a message take the later clock?
    const HEARS: bool = true;
    /// Does a forgotten node start again from its clock?
    const KEEPS_CLOCK: bool = true;
    /// With several permits, does each node use readings of its own?
    const OWN_READINGS: bool = true;
}

/// Fences with a flaw.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct BentFences<F>(Fences, PhantomData<F>);

impl<F> AsRef<Fences> for BentFences<F> {
    fn as_ref(&self) -> &Fences {
        &self.0
    }
}

impl<F: Fault> Watch for BentFences<F> {
    type Note = u64;

    fn new(me: NodeId, group: &Group, start: &Start) -> Self {
        Self(Fences::new(me, group, start), PhantomData)
    }

    fn happened(&mut self, event: Event<'_, u64>) {
        if F::HEARS || !matches!(event, Event::Receive { .. }) {
            self.0.happened(event);
        }
    }

    fn entered(&mut self, group: &Group) {
        // In a group of one, every reading is the node's own.
        let alone = Group::new(1).and_then(|group| group.with_permits(2, 2));
        let alone = alone.expect("a node may have two seats");
        self.0.entered(if F::OWN_READINGS { group } else { &alone });
    }

    fn note(&mut self, event: Event<'_, u64>, outgoing: Outgoing<'_>) -> u64 {
        self.0.note(event, outgoing)
    }

    fn floor(&self, algorithm: u64) -> Option<u64> {
        if F::KEEPS_CLOCK { self.0.floor(algorithm) } else { Some(algorithm) }
    }
}

fn watched<A: Algorithm, W: Watch>(shape: &Shape, asks: &[u32]) -> World {
    world(AnyAlgorithm::of::<A>().watched::<W>(), shape, asks)
}

/// Check a group. Two nodes may also forget the lock; three would have too many worlds.
fn find<A: Algorithm, W: Watch + AsRef<Fences>>(asks: &[u32]) -> Verdict {
    let mut first = watched::<A, W>(&Shape::default(), asks);
    first.limits_mut().forgetting = asks.len() < 3;
    search(&first, check::<W>)
}

struct Try(&'static [u32]);

impl Task for Try {
    type Output = Verdict;

    fn run<A: Algorithm>(self) -> Verdict {
        find::<A, Fences>(self.0)
    }
}

#[test]
fn fences_grow_with_every_algorithm() {
    for info in sound() {
        for asks in asks(info.name) {
            let found = algorithms::with(info.name, Try(asks)).expect("a name of the list");
            println!("{} {asks:?}: {found:?}", info.name);
            assert_eq!(steps(&found), None, "{} {asks:?}: {found:?}", info.name);
        }
    }
}

#[test]
fn writers_exceed_readers_and_readers_exceed_writers() {
    let (read, reads) = ((1, Mode::Shared), (2, Mode::Shared));
    let (write, writes) = ((1, Mode::Exclusive), (2, Mode::Exclusive));
    for asks in [[reads, read, write], [read, read, writes], [read, write, writes]] {
        let mut first = watched::<ReadersWriters, Fences>(&Shape::default(), &[0; 3]);
        first.limits_mut().acquires = asks.to_vec();
        let found = search(&first, check::<Fences>);
        assert_eq!(steps(&found), None, "{found:?}");
    }
}

fn permits(permits: u32, seats: u32) -> Shape {
    Shape { permits: Some(permits), seats: Some(seats), ..Shape::default() }
}

#[test]
fn no_two_permits_have_the_same_fence() {
    for (k, seats, asks) in [(2, 1, &[2, 2][..]), (3, 2, &[2, 2]), (2, 1, &[1, 1, 1])] {
        let found = search(&watched::<RaymondK, Fences>(&permits(k, seats), asks), check::<Fences>);
        assert_eq!(steps(&found), None, "{found:?}");
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum OneClock {}
impl Fault for OneClock {
    const OWN_READINGS: bool = false;
}

/// Two nodes that do not know of each other's entry may have the same clock.
#[test]
fn a_clock_alone_gives_two_permits_one_fence() {
    let first = watched::<RaymondK, BentFences<OneClock>>(&permits(2, 1), &[1, 1]);
    let found = search(&first, check::<BentFences<OneClock>>);
    assert_eq!(steps(&found), Some(2), "{found:?}");
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Deaf {}
impl Fault for Deaf {
    const HEARS: bool = false;
}

#[test]
fn a_clock_that_ignores_messages_breaks_fences() {
    let permission = find::<RicartAgrawala, BentFences<Deaf>>(&[1, 1]);
    let token = find::<NaimiTrehel, BentFences<Deaf>>(&[1, 1]);
    let quorum = find::<Maekawa, BentFences<Deaf>>(&[1, 1]);
    for found in [permission, token, quorum] {
        let why = complaint(&found);
        assert!(why.contains("is inside with fence 1, but"), "{why}");
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Forgetful {}
impl Fault for Forgetful {
    const KEEPS_CLOCK: bool = false;
}

/// A floor that is high enough for the algorithm may be too low for its fences, for example if one
/// node knows all grants and the algorithm has no numbers.
#[test]
fn a_forgotten_clock_breaks_fences() {
    assert!(steps(&find::<Central, BentFences<Forgetful>>(&[2, 2])).is_some());
    assert!(steps(&find::<WeightedMajority, BentFences<Forgetful>>(&[2, 2])).is_some());
    assert_eq!(steps(&find::<RicartAgrawala, BentFences<Forgetful>>(&[2, 2])), None);
}

/// The last fence of a node that crashes inside is lost. Only a number of the view, above the
/// clock, helps.
#[test]
fn after_a_crash_inside_the_next_grant_may_have_the_same_fence() {
    let mut first = watched::<MaekawaHeir, Fences>(&Shape::default(), &[1, 1, 1]);
    let limits = first.limits_mut();
    (limits.crashes, limits.detection) = (1, true);
    let found = search(&first, check::<Fences>);
    assert_eq!(steps(&found), Some(8), "{found:?}");
}
