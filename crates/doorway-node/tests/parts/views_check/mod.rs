//! Explores how three nodes go from view to view, with crashes, restarts and raised epochs at any
//! time, for the most liberal algorithm possible and for three of the core's.

mod course;
mod happen;
mod reclaim;
mod search;
mod seats;
mod world;

use doorway_core::Algorithm;
use doorway_core::algorithms::carvalho_roucairol::CarvalhoRoucairol;
use doorway_core::algorithms::ricart_agrawala::RicartAgrawala;
use doorway_core::algorithms::suzuki_kasami::SuzukiKasami;
use doorway_node::locks::{Rule, Typed};
use doorway_node::views::Views;

use course::{Course, Sketch};
use search::{End, System, search};
use seats::{Liberal, Rash, Seat, Served};
use world::{Event, Flaw, Setting, World, Wrong};

/// More states than any of the searches has.
const LIMIT: usize = 6_000_000;

/// Nodes with one shard each. The clients of the first two make one request each, and nothing else
/// happens yet.
fn setting<A: Algorithm>(size: usize) -> Setting {
    let mut rule = Rule::new("ricart-agrawala", size, 1, 1).expect("it needs nothing");
    rule.info = A::INFO;
    let (shards, asks, crashes, raises) = (1, [1, 1, 0], 0, 0);
    let (overtaking, gives_up, reclaims, flaw) = (false, false, false, None);
    Setting { rule, size, shards, asks, crashes, raises, overtaking, gives_up, reclaims, flaw }
}

/// A group that runs its first view, with nothing else under way.
fn running<C: Course, M: Seat>(setting: Setting) -> World<C, M> {
    let mut world = World::new(setting);
    while !world.rests() {
        // All nodes are connected before any of them stops, so that even a flawed group gets here.
        let order = |event: &Event| match event {
            Event::Connect(..) => 0,
            Event::Deliver(..) => 1,
            event => 2 + u8::from(!World::<C, M>::is_duty(*event)),
        };
        let event = world.events().into_iter().min_by_key(order).expect("nobody is stuck");
        world = world.apply(event).expect("nothing goes wrong yet");
    }
    world
}

fn check<C: Course, M: Seat>(what: &str, setting: Setting) -> (usize, End<Event, Wrong>) {
    let (states, end) = search(running::<C, M>(setting), LIMIT);
    println!("{what}: {states} states, {end:?}");
    (states, end)
}

/// Check that nothing goes wrong, and count the states.
fn holds<A: Algorithm + Served + 'static>(setting: Setting) -> usize {
    let (states, end) = check::<Views, Typed<A>>(A::INFO.name, setting);
    assert_eq!(end, End::Holds);
    states
}

#[test]
fn a_crash_at_any_moment() {
    let setting = Setting { crashes: 1, asks: [1; 3], ..setting::<Liberal>(3) };
    assert_eq!(holds::<Liberal>(setting), 309_680);
}

#[test]
fn crashes_and_views_asked_for_among_two() {
    let setting = Setting { crashes: 2, raises: 1, ..setting::<Liberal>(2) };
    assert_eq!(holds::<Liberal>(setting), 241_415);
}

/// Crashes and requested views among three nodes, of which one has a client.
#[test]
#[ignore = "it takes minutes: cargo nextest run -p doorway-node --run-ignored only among_three"]
fn crashes_and_views_asked_for_among_three() {
    let setting = || Setting { crashes: 1, asks: [1, 0, 0], ..setting::<Liberal>(3) };
    assert_eq!(holds::<Liberal>(Setting { raises: 1, ..setting() }), 2_200_765);
    assert_eq!(holds::<Liberal>(Setting { crashes: 2, ..setting() }), 5_135_595);
}

#[test]
fn two_views_asked_for_at_any_moment() {
    holds::<Liberal>(Setting { raises: 2, ..setting::<Liberal>(3) });
}

#[test]
fn shards_stop_one_after_another() {
    holds::<Liberal>(Setting { raises: 1, shards: 2, ..setting::<Liberal>(3) });
}

#[test]
fn token() {
    let setting = setting::<SuzukiKasami>;
    let raise = Setting { raises: 1, asks: [1; 3], ..setting(3) };
    assert_eq!(holds::<SuzukiKasami>(raise), 207_810);
    holds::<SuzukiKasami>(Setting { crashes: 1, ..setting(3) });
}

#[test]
fn permissions_that_stay() {
    let setting = setting::<CarvalhoRoucairol>;
    holds::<CarvalhoRoucairol>(Setting {
        raises: 1,
        asks: [2, 1, 0],
        gives_up: true,
        ..setting(3)
    });
    holds::<CarvalhoRoucairol>(Setting { crashes: 1, ..setting(3) });
}

#[test]
fn permissions() {
    let setting = setting::<RicartAgrawala>;
    holds::<RicartAgrawala>(Setting { raises: 1, overtaking: true, ..setting(3) });
    holds::<RicartAgrawala>(Setting { crashes: 1, ..setting(3) });
}

/// A node is killed at any time, and its client lives on and reclaims its lock at the next process.
#[test]
fn clients_that_outlive_their_node() {
    let setting = || Setting { crashes: 1, reclaims: true, ..setting::<Liberal>(3) };
    assert_eq!(holds::<Liberal>(setting()), 135_491);
    holds::<SuzukiKasami>(Setting { crashes: 2, size: 2, ..setting() });
    let early = Setting { size: 2, ..setting() };
    assert_eq!(spoil::<Typed<Liberal>>(Flaw::ServeEarly, early), (TWO_INSIDE, 14));
}

/// The sketch, into which the searches below plant flaws, behaves as the machine does.
#[test]
fn the_sketch_has_the_states_of_the_machine() {
    let setting = || Setting { crashes: 1, ..setting::<Liberal>(3) };
    let sketch = check::<Sketch, Typed<Liberal>>("sketch", setting());
    assert_eq!(sketch, (holds::<Liberal>(setting()), End::Holds));
}

/// What goes wrong with a flaw, or nothing if the group only gets stuck; and in how many steps at
/// least.
fn spoil<M: Seat>(flaw: Flaw, setting: Setting) -> (Option<Wrong>, usize) {
    let setting = Setting { flaw: Some(flaw), ..setting };
    match check::<Sketch, M>(&format!("{flaw:?}"), setting).1 {
        End::Holds => panic!("{flaw:?} is not noticed"),
        End::Wrong(wrong, way) => (Some(wrong), way.len()),
        End::Stuck(way) => (None, way.len()),
    }
}

const TWO_INSIDE: Option<Wrong> = Some(Wrong::TwoInside);
const STARTS: Option<Wrong> = Some(Wrong::Starts);
const STUCK: Option<Wrong> = None;

/// Each rule is needed: without it something goes wrong, in exactly this many steps.
#[test]
fn flaws_of_the_views() {
    let liberal = |flaw, size, crashes, raises| {
        let setting = Setting { crashes, raises, ..setting::<Liberal>(size) };
        spoil::<Typed<Liberal>>(flaw, setting)
    };
    assert_eq!(liberal(Flaw::Majority, 3, 0, 1), (TWO_INSIDE, 9));
    assert_eq!(liberal(Flaw::Alone, 3, 0, 1), (TWO_INSIDE, 7));
    assert_eq!(liberal(Flaw::SameEpoch, 3, 1, 0), (STUCK, 1));
    assert_eq!(liberal(Flaw::OlderFlush, 2, 0, 2), (STARTS, 12));
    assert_eq!(liberal(Flaw::Backwards, 2, 0, 2), (TWO_INSIDE, 15));
    assert_eq!(liberal(Flaw::NoHolders, 3, 0, 1), (TWO_INSIDE, 12));
    assert_eq!(liberal(Flaw::SnapshotFirst, 3, 0, 1), (TWO_INSIDE, 15));
    assert_eq!(liberal(Flaw::Reread, 3, 0, 1), (STARTS, 15));
    assert_eq!(liberal(Flaw::RereadOwn, 3, 0, 1), (STARTS, 13));
    assert_eq!(liberal(Flaw::ReleaseForgotten, 3, 0, 1), (STUCK, 5));
    assert_eq!(liberal(Flaw::NotAskedAgain, 3, 0, 1), (STUCK, 3));
    assert_eq!(liberal(Flaw::FlushOnce, 3, 1, 0), (STUCK, 5));
}

#[test]
fn flaws_of_the_locks() {
    let raise = |setting| Setting { raises: 1, ..setting };
    let suzuki = || raise(setting::<SuzukiKasami>(3));
    // Links that keep the order deliver all old messages before the flush.
    let overtaking = Setting { overtaking: true, ..suzuki() };
    assert_eq!(spoil::<Typed<SuzukiKasami>>(Flaw::OldSteps, overtaking), (TWO_INSIDE, 14));
    let fence = spoil::<Typed<SuzukiKasami>>(Flaw::BareFence, suzuki());
    assert_eq!(fence, (Some(Wrong::Fence), 13));
    let ricart = raise(setting::<RicartAgrawala>(3));
    assert_eq!(spoil::<Typed<RicartAgrawala>>(Flaw::KeptDropped, ricart), (STUCK, 10));
    let carvalho = Setting { asks: [2, 1, 0], ..raise(setting::<CarvalhoRoucairol>(2)) };
    let entered = spoil::<Typed<CarvalhoRoucairol>>(Flaw::EnterInFlush, carvalho);
    assert_eq!(entered, (TWO_INSIDE, 15));
    let rash = Setting { asks: [2, 1, 1], gives_up: true, ..setting::<RicartAgrawala>(3) };
    assert_eq!(spoil::<Rash>(Flaw::SecondAcquire, rash), (TWO_INSIDE, 13));
}
