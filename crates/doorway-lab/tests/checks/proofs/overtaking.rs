//! How often a request is overtaken: the bounds in the papers' proofs that there is no starvation.

use doorway_core::algorithms::maekawa::{self, Maekawa};
use doorway_core::algorithms::raymond_k::{self, RaymondK};
use doorway_core::{Group, NodeId, Phase, Shape, Start};
use doorway_lab::check::Verdict;
use doorway_lab::flaws::served;
use doorway_lab::spoiled::{Spoil, SpoiledAlgorithm};
use doorway_lab::watch::{Event, Outgoing, Watch, watch_of};
use doorway_lab::{AnyAlgorithm, World};

use super::{broken, holds};
use crate::watching::{search, world};

/// Raymond (K entries) 1989, section 6.3: how often a node has entered since a request arrived.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Arrivals {
    /// How many requests we have made.
    made: u32,
    /// For each node, its last request that has arrived, how often we have entered since, up to
    /// twice, and whether we have answered it.
    since: Vec<(u32, u32, bool)>,
}

impl Watch for Arrivals {
    /// How many requests the sender has made.
    type Note = u32;

    fn new(_me: NodeId, group: &Group, _start: &Start) -> Self {
        Self { made: 0, since: vec![(0, 0, true); group.size() as usize] }
    }

    fn happened(&mut self, event: Event<'_, u32>) {
        match event {
            Event::Acquire(_) => self.made += 1,
            Event::Receive { from, message } => {
                let request = matches!(message.inner.get(), raymond_k::Message::Request(_));
                if request && message.note > self.since[from.index()].0 {
                    self.since[from.index()] = (message.note, 0, false);
                }
            }
            _ => {}
        }
    }

    fn entered(&mut self, _group: &Group) {
        self.since.iter_mut().for_each(|(_, entries, _)| *entries = 2.min(*entries + 1));
    }

    fn note(&mut self, _: Event<'_, u32>, outgoing: Outgoing<'_>) -> u32 {
        let reply = matches!(outgoing.message.get(), raymond_k::Message::Reply { .. });
        self.since[outgoing.to.index()].2 |= reply;
        self.made
    }
}

/// Check that no node has entered more than `most` times since the request of a waiting node
/// arrived. If `answered` is false, only entries before the node answered that request count.
fn overtaken(world: &World, most: u32, answered: bool) -> Option<String> {
    let watch = |node: NodeId| watch_of::<Arrivals>(world, node);
    world.live_in(Phase::Waiting).into_iter().find_map(|waiting| {
        world.group().others(waiting).find_map(|node| {
            let (request, entries, replied) = watch(node).since[waiting.index()];
            let counts = request == watch(waiting).made && (answered || !replied);
            (counts && entries > most)
                .then(|| format!("node {node} overtakes node {waiting} {entries} times"))
        })
    })
}

fn overtaking(permits: u32, asks: &[u32], most: u32, answered: bool) -> Verdict {
    let shape = Shape { permits: Some(permits), ..Shape::default() };
    let watched = AnyAlgorithm::of::<RaymondK>().watched::<Arrivals>();
    search(&world(watched, &shape, asks), move |world| overtaken(world, most, answered))
}

/// The paper says that a node enters at most once before a request that has arrived at it. With one
/// permit that is true. With more permits it is true only until the node has answered: while its
/// REPLY is under way, the node may enter again by the replies of others.
#[test]
fn a_node_enters_at_most_once_before_it_answers_a_request() {
    holds(&overtaking(1, &[3, 3], 1, true));
    holds(&overtaking(1, &[2, 1, 1], 1, true));
    for asks in [[2, 1, 0], [1, 2, 0], [0, 2, 2]] {
        holds(&overtaking(2, &asks, 1, false));
    }
    holds(&overtaking(2, &[3, 3], 1, false));
    assert_eq!(broken(&overtaking(2, &[2, 1, 0], 1, true), "2 times"), 9);
    // One such entry does happen.
    broken(&overtaking(2, &[1, 1, 1], 0, false), "1 times");
}

/// Learns numbers only from the requests it receives, as printed: LOCKED carries none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct UnlearnedNumbers;

impl Spoil for UnlearnedNumbers {
    type Of = Maekawa;

    fn hears(&mut self, _from: NodeId, message: maekawa::Message) -> Option<maekawa::Message> {
        Some(match message {
            maekawa::Message::Locked(_) => maekawa::Message::Locked(0),
            message => message,
        })
    }
}

/// The paper says that at most K-1 requests are served at a member while another one waits there,
/// because later requests have larger numbers. These sets meet all its conditions, with K = 3.
#[test]
fn more_requests_than_claimed_are_served_while_another_waits() {
    let sets: &[&[u32]] = &[&[1, 2, 3], &[2, 3, 4], &[1, 3, 4], &[1, 2, 4]];
    let asks = [2, 2, 2, 0];
    let printed = served::world::<SpoiledAlgorithm<UnlearnedNumbers>>(sets, &asks);
    let printed = search(&printed, served::at_most::<2>);
    let repaired = search(&served::world::<Maekawa>(sets, &asks), served::at_most::<2>);
    for found in [printed, repaired] {
        assert_eq!(broken(&found, "3 requests were served at node 3"), 24);
    }
}

/// A claim about every world: what is wrong in a world that breaks it.
type Claim = fn(&World) -> Option<String>;

/// Nodes that receive no requests do not learn of higher numbers. They enter again and again, the
/// more often the higher the number of the waiting request, unless LOCKED carries the number.
#[test]
fn nodes_that_receive_no_requests_overtake_without_bound_unless_locked_carries_numbers() {
    let star: &[&[u32]] = &[&[1], &[1, 2], &[1, 3], &[1, 4]];
    let claims: [([u32; 4], Claim, Claim); 2] = [
        ([0, 2, 2, 2], served::at_most::<4>, served::at_most::<3>),
        ([0, 3, 3, 3], served::at_most::<6>, served::at_most::<5>),
    ];
    for (asks, enough, too_few) in claims {
        let printed = || served::world::<SpoiledAlgorithm<UnlearnedNumbers>>(star, &asks);
        holds(&search(&printed(), enough));
        broken(&search(&printed(), too_few), "were served");
        holds(&search(&served::world::<Maekawa>(star, &asks), served::at_most::<3>));
    }
}
