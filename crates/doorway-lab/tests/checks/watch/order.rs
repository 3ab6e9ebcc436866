//! Which algorithms grant requests in the order in which they happened.

use doorway_core::algorithms::lamport::Lamport;
use doorway_core::algorithms::ricart_agrawala::RicartAgrawala;
use doorway_core::algorithms::{self, Task};
use doorway_core::{Algorithm, Group, NodeId, Shape, Start};
use doorway_lab::check::Verdict;
use doorway_lab::watch::order::{Order, check};
use doorway_lab::watch::{Event, Outgoing, Watch};
use doorway_lab::{AnyAlgorithm, World};

use super::{asks, complaint, sound, steps};
use crate::watching::{search, world};

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

/// For two and for three nodes that ask twice, the length of the shortest way to grant a later
/// request first; `None` if there is none.
const OVERTAKES: [(&str, [Option<usize>; 2]); 18] = [
    ("ricart-agrawala", [None, Some(13)]),
    ("ricart-agrawala-ring", [None, Some(11)]),
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

/// Lamport's paper claims this order, and it holds. With a coordinator and on the ring, no node can
/// know of a request before the request has its place.
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

/// A flawed watch: it forgets its own requests once they are done, or it ignores messages.
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

/// A watch that forgets finished requests gives the next request a number that others know already.
#[test]
fn a_watch_that_forgets_accuses_lamport() {
    let first = watched::<Lamport, Lossy<false>>(&[2, 2]);
    let why = complaint(&search(&first, check::<Lossy<false>>));
    assert!(why.contains("asked before"), "{why}");
}

/// A watch that ignores messages does not know of the requests of other nodes.
#[test]
fn a_watch_that_ignores_messages_notices_nothing() {
    let first = watched::<RicartAgrawala, Lossy<true>>(&[2, 1, 1]);
    let found = search(&first, check::<Lossy<true>>);
    assert_eq!(steps(&found), None, "{found:?}");
}
