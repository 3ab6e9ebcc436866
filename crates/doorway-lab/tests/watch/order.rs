//! Which algorithms serve requests in the order in which they happened.

use doorway_core::algorithms::lamport::Lamport;
use doorway_core::algorithms::ricart_agrawala::RicartAgrawala;
use doorway_core::algorithms::{self, Task};
use doorway_core::{Algorithm, Group, NodeId, Shape, Start};
use doorway_lab::check::Verdict;
use doorway_lab::watch::order::{Order, check};
use doorway_lab::watch::{Event, Outgoing, Watch};
use doorway_lab::{AnyAlgorithm, World};

use crate::watching::{search, world};
use crate::{asks, complaint, sound, steps};

fn watched<A: Algorithm, W: Watch>(asks: &[u32]) -> World {
    world(AnyAlgorithm::of::<A>().watched::<W>(), &Shape::default(), asks)
}

struct Try(&'static [u32]);

impl Task for Try {
    type Output = Verdict;

    fn run<A: Algorithm>(self) -> Verdict {
        search(&watched::<A, Order>(self.0), check::<Order>)
    }
}

/// The shortest way for two and for three nodes, who ask twice, to serve a later request first;
/// `None` where there is none.
const OVERTAKES: [(&str, [Option<usize>; 2]); 17] = [
    ("ricart-agrawala", [None, Some(13)]),
    ("carvalho-roucairol", [Some(6), Some(8)]),
    ("readers-writers", [None, Some(13)]),
    ("ricart-agrawala-token", [None, Some(5)]),
    ("suzuki-kasami", [None, Some(5)]),
    ("naimi-trehel", [None, Some(9)]),
    ("maekawa", [None, Some(16)]),
    ("maekawa-eager", [None, Some(13)]),
    ("maekawa-unordered", [None, Some(13)]),
    ("maekawa-sequential", [Some(9), Some(9)]),
    ("maekawa-cyclic", [Some(9), Some(9)]),
    ("maekawa-heir", [None, Some(16)]),
    ("raymond-tree", [None, Some(9)]),
    ("raymond-echo", [Some(4), Some(8)]),
    ("raymond-k", [None, Some(13)]),
    ("majority", [None, Some(8)]),
    ("weighted-majority", [Some(6), Some(8)]),
];

/// Lamport's paper claims it, and it holds. At the coordinator and on the ring nobody can know of a
/// request before it has its place.
const KEEP_ORDER: [&str; 3] = ["central", "lamport", "le-lann"];

#[test]
fn only_these_serve_requests_in_the_order_in_which_they_happened() {
    for info in sound() {
        let listed = OVERTAKES.iter().find(|(name, _)| *name == info.name);
        assert_eq!(listed.is_none(), KEEP_ORDER.contains(&info.name), "{}", info.name);
        let expected = listed.map_or([None; 2], |(_, steps)| *steps);
        let twice: [&[u32]; 2] = [&[2, 2], &[2, 2, 2]];
        let asks = if listed.is_none() { asks(info.name) } else { twice };
        for (asks, expected) in asks.into_iter().zip(expected) {
            let found = algorithms::with(info.name, Try(asks)).expect("a name of the list");
            println!("{} {asks:?}: {found:?}", info.name);
            assert_eq!(steps(&found), expected, "{} {asks:?}: {found:?}", info.name);
        }
    }
}

/// An order that loses something: its own requests once they are done, or what it is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Lossy<const DEAF: bool> {
    order: Order,
    me: NodeId,
    size: u32,
}

impl<const DEAF: bool> AsRef<Order> for Lossy<DEAF> {
    fn as_ref(&self) -> &Order {
        &self.order
    }
}

impl<const DEAF: bool> Watch for Lossy<DEAF> {
    type Note = Vec<u32>;

    fn new(me: NodeId, group: &Group, start: &Start) -> Self {
        Self { order: Order::new(me, group, start), me, size: group.size() }
    }

    fn happened(&mut self, event: Event<'_, Vec<u32>>) {
        match event {
            Event::Receive { .. } if DEAF => {}
            Event::Release if !DEAF => {
                let group = Group::new(self.size as usize).expect("as large as it was");
                self.order = Order::new(self.me, &group, &Start::default());
            }
            _ => self.order.happened(event),
        }
    }

    fn note(&mut self, event: Event<'_, Vec<u32>>, outgoing: Outgoing<'_>) -> Vec<u32> {
        self.order.note(event, outgoing)
    }
}

/// Who forgets what is done counts the next request under a number that others know already.
#[test]
fn an_order_that_forgets_accuses_lamport() {
    let first = watched::<Lamport, Lossy<false>>(&[2, 2]);
    let why = complaint(&search(&first, check::<Lossy<false>>));
    assert!(why.contains("asked before"), "{why}");
}

/// Of those who do not listen, nobody knows of anybody's request.
#[test]
fn an_order_that_is_deaf_notices_nothing() {
    let first = watched::<RicartAgrawala, Lossy<true>>(&[2, 1, 1]);
    let found = search(&first, check::<Lossy<true>>);
    assert_eq!(steps(&found), None, "{found:?}");
}
