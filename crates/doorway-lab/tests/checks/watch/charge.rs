//! What each request costs, in every schedule.

use doorway_core::algorithms::lamport::{Lamport, Message};
use doorway_core::algorithms::suzuki_kasami::SuzukiKasami;
use doorway_core::algorithms::{self, Task};
use doorway_core::{Algorithm, NodeId, Shape, Wiring};
use doorway_lab::check::Verdict;
use doorway_lab::watch::charge::{Charges, check};
use doorway_lab::{AnyAlgorithm, World};

use super::{asks, complaint, sound, steps};
use crate::watching::{search, world};
use doorway_lab::spoiled::{Sends, Spoil, SpoiledAlgorithm};

fn charged<A: Algorithm>(shape: &Shape, asks: &[u32]) -> World {
    world(AnyAlgorithm::of::<A>().watched::<Charges>(), shape, asks)
}

struct Try(&'static [u32]);

impl Task for Try {
    type Output = Option<Verdict>;

    fn run<A: Algorithm>(self) -> Option<Verdict> {
        let first = charged::<A>(&Shape::default(), self.0);
        // If a request may cost any number of messages, there are infinitely many worlds.
        let bounded = (A::INFO.messages.most.of)(first.group()).is_finite();
        bounded.then(|| search(&first, check))
    }
}

#[test]
fn no_schedule_costs_more_or_less_than_claimed() {
    for info in sound() {
        for asks in asks(info.name) {
            let found = algorithms::with(info.name, Try(asks)).expect("a name of the list");
            assert_eq!(found.is_none(), info.name == "le-lann", "{} is unbounded", info.name);
            let Some(found) = found else { continue };
            println!("{} {asks:?}: {found:?}", info.name);
            assert_eq!(steps(&found), None, "{} {asks:?}: {found:?}", info.name);
        }
    }
}

#[test]
fn the_token_that_carries_its_queue_costs_what_the_wiring_allows() {
    for wiring in [Wiring::Mesh, Wiring::Ring, Wiring::Tree] {
        let shape = Shape { wiring: Some(wiring), ..Shape::default() };
        let found = search(&charged::<SuzukiKasami>(&shape, &[2, 2, 2]), check);
        assert_eq!(steps(&found), None, "{wiring:?}: {found:?}");
    }
}

/// Acknowledges twice, which does no harm.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Chatty;

impl Spoil for Chatty {
    type Of = Lamport;

    fn change(&mut self, mut sends: Sends<Self>) -> Sends<Self> {
        if let [ack @ (_, Message::Ack(_))] = &sends[..] {
            sends.push(ack.clone());
        }
        sends
    }
}

/// Does not acknowledge a request that is older than its own, because its own request says as much.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Laconic {
    /// The number of our own last request.
    own: u64,
    /// The number of the request that has just arrived, if the message is one.
    heard: u64,
}

impl Spoil for Laconic {
    type Of = Lamport;

    fn hears(&mut self, _from: NodeId, message: Message) -> Option<Message> {
        self.heard = if let Message::Request(clock) = message { clock } else { 0 };
        Some(message)
    }

    fn change(&mut self, mut sends: Sends<Self>) -> Sends<Self> {
        let heard = std::mem::take(&mut self.heard);
        if let Some((_, Message::Request(clock))) = sends.first() {
            self.own = *clock;
        }
        if self.own > heard {
            sends.retain(|(_, message)| !matches!(message, Message::Ack(_)));
        }
        sends
    }
}

#[track_caller]
fn complains<A: Algorithm>(word: &str) {
    let first = charged::<A>(&Shape::default(), &[2, 2]);
    let why = complaint(&search(&first, check));
    assert!(why.contains("pays") && why.contains(word), "{why}");
}

#[test]
fn a_cost_outside_the_claim_is_found() {
    complains::<SpoiledAlgorithm<Chatty>>("above the claimed");
    complains::<SpoiledAlgorithm<Laconic>>("below the claimed");
}
