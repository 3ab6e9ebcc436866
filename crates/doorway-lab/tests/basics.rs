//! The coordinator, the permission algorithms and the token broadcasts, exhaustively: that they are
//! right, how they break without their assumptions, and what the schedules cost.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use Channel::{Fifo, Unordered};
use doorway_core::algorithms::carvalho_roucairol::{self, CarvalhoRoucairol};
use doorway_core::algorithms::central::{self, Central};
use doorway_core::algorithms::lamport::Lamport;
use doorway_core::algorithms::naimi_trehel::NaimiTrehel;
use doorway_core::algorithms::readers_writers::ReadersWriters;
use doorway_core::algorithms::ricart_agrawala::RicartAgrawala;
use doorway_core::algorithms::ricart_agrawala_token::{self, RicartAgrawalaToken};
use doorway_core::algorithms::suzuki_kasami::SuzukiKasami;
use doorway_core::{Algorithm, Channel, Member, Mode, NodeId, Shape, Start, Wiring};
use doorway_lab::explore::{Verdict, explore};
use doorway_lab::{Limits, Violation, World};

mod spoiled;
use spoiled::{Message, Sends, Spoil, Spoiled};

/// More worlds than any test here has.
const LIMIT: usize = 150_000;

/// A world in which node i asks `quotas[i]` times and nothing fails.
fn world<A: Algorithm>(channel: Channel, quotas: &[u32]) -> World<A> {
    shaped(&Shape::default(), channel, quotas)
}

fn wired(wiring: Wiring, channel: Channel, quotas: &[u32]) -> World<SuzukiKasami> {
    shaped(&Shape { wiring: Some(wiring), ..Shape::default() }, channel, quotas)
}

fn shaped<A: Algorithm>(shape: &Shape, channel: Channel, quotas: &[u32]) -> World<A> {
    let group = Arc::new(A::INFO.group(quotas.len(), shape).expect("small groups exist"));
    let mut limits = Limits::reliable(&group, 0);
    limits.acquires = quotas.iter().map(|quota| (*quota, Mode::Exclusive)).collect();
    World::new(group, &Start::default(), channel, limits)
}

fn losing<A: Algorithm>(mut world: World<A>, losses: u32) -> World<A> {
    world.limits_mut().losses = losses;
    world
}

fn doubling<A: Algorithm>(mut world: World<A>, duplicates: u32) -> World<A> {
    world.limits_mut().duplicates = duplicates;
    world
}

/// Nothing goes wrong in any reachable world.
#[track_caller]
fn holds<A: Algorithm>(world: World<A>) {
    let verdict = explore(world, LIMIT);
    assert!(matches!(verdict, Verdict::Holds { .. }), "{}: {verdict:?}", A::INFO.name);
}

/// The length of the shortest way to a violation, and the violation.
#[track_caller]
fn violation<A: Algorithm>(world: World<A>) -> (usize, Violation) {
    match explore(world, LIMIT) {
        Verdict::Violated { trace, violation } => (trace.len(), violation),
        verdict => panic!("{}: {verdict:?}", A::INFO.name),
    }
}

/// The length of the shortest way to two inside that may not be, if there is one.
fn together<A: Algorithm>(first: World<A>) -> Option<usize> {
    shortest(first, |_, violation| matches!(violation, Some(Violation::Together(_))))
}

/// The length of the shortest way to what is sought. Unlike `explore` this goes on where someone is
/// stuck, and where a message was refused, since a refusal changes nothing.
fn shortest<A: Algorithm>(
    first: World<A>,
    sought: impl Fn(&World<A>, Option<&Violation>) -> bool,
) -> Option<usize> {
    let mut seen = BTreeSet::from([fingerprint(&first)]);
    let mut layer = vec![first];
    let mut length = 0;
    while !layer.is_empty() {
        length += 1;
        let mut next = Vec::new();
        for before in layer {
            for choice in before.choices() {
                let mut world = before.clone();
                let step = world.apply(choice);
                if sought(&world, step.violation.as_ref()) {
                    return Some(length);
                }
                let refused = matches!(step.violation, Some(Violation::Rejected { .. }));
                assert!(step.violation.is_none() || refused, "{:?}", step.violation);
                if seen.insert(fingerprint(&world)) {
                    next.push(world);
                }
            }
        }
        assert!(seen.len() < LIMIT, "{}: too many worlds", A::INFO.name);
        layer = next;
    }
    None
}

/// The fewest and the most messages in all, over every schedule.
fn messages<A: Algorithm>(first: World<A>) -> (usize, usize) {
    let mut seen = BTreeSet::new();
    let mut open = vec![(first, 0)];
    let (mut least, mut most) = (usize::MAX, 0);
    while let Some((before, sent)) = open.pop() {
        let choices = before.choices();
        if choices.is_empty() {
            (least, most) = (least.min(sent), most.max(sent));
        }
        for choice in choices {
            let mut world = before.clone();
            let sent = sent + world.apply(choice).sends.len();
            if seen.insert((fingerprint(&world), sent)) {
                open.push((world, sent));
            }
        }
        assert!(seen.len() < LIMIT, "{}: too many worlds", A::INFO.name);
    }
    (least, most)
}

fn fingerprint<A: Algorithm>(world: &World<A>) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}

#[test]
fn all_are_right_under_longer_schedules() {
    holds(world::<Central>(Unordered, &[2, 2, 2]));
    holds(world::<Central>(Unordered, &[0, 3, 3]));
    holds(world::<Lamport>(Fifo, &[3, 3]));
    holds(world::<CarvalhoRoucairol>(Unordered, &[4, 4]));
    holds(world::<CarvalhoRoucairol>(Unordered, &[2, 2, 2]));
    holds(world::<RicartAgrawalaToken>(Unordered, &[2, 2, 2]));
    holds(world::<NaimiTrehel>(Unordered, &[3, 3, 3]));
    holds(world::<NaimiTrehel>(Unordered, &[2, 2, 2, 2]));
}

#[test]
fn suzuki_kasami_is_right_over_every_wiring() {
    for channel in [Fifo, Unordered] {
        for wiring in [Wiring::Mesh, Wiring::Ring, Wiring::Tree] {
            holds(wired(wiring, channel, &[2, 2, 1]));
        }
        for wiring in [Wiring::Ring, Wiring::Tree] {
            holds(wired(wiring, channel, &[1, 1, 1, 1]));
        }
    }
}

/// A world of readers and writers, each asking twice.
fn library(channel: Channel, modes: [Mode; 3]) -> World<ReadersWriters> {
    let mut world = world(channel, &[2; 3]);
    world.limits_mut().acquires = modes.map(|mode| (2, mode)).into();
    world
}

#[test]
fn readers_share_and_writers_are_alone() {
    use Mode::{Exclusive, Shared};
    for channel in [Fifo, Unordered] {
        holds(library(channel, [Exclusive, Shared, Shared]));
        holds(library(channel, [Exclusive, Exclusive, Shared]));
    }
    let inside = |count| move |world: &World<_>, _: Option<&_>| world.nodes().inside() == count;
    // Three requests and their six replies let all in; a writer among them never shares.
    assert_eq!(shortest(library(Unordered, [Shared; 3]), inside(3)), Some(15));
    assert_eq!(shortest(library(Unordered, [Exclusive, Shared, Shared]), inside(3)), None);
}

#[test]
fn lamport_needs_channels_that_keep_order_and_lose_nothing() {
    let both = Violation::Together(vec![NodeId(0), NodeId(1)]);
    assert_eq!(violation(world::<Lamport>(Unordered, &[1, 1])), (4, both));
    assert_eq!(together(losing(world::<Lamport>(Fifo, &[1, 1]), 1)), Some(5));
    assert_eq!(together(doubling(world::<Lamport>(Fifo, &[2, 2]), 2)), None);
}

#[test]
fn under_loss_all_but_lamport_stay_safe_and_wait() {
    fn waits<A: Algorithm>(quotas: &[u32], losses: u32) {
        let (_, found) = violation(losing(world::<A>(Unordered, quotas), losses));
        assert!(matches!(found, Violation::Stuck(_)), "{}: {found}", A::INFO.name);
        assert_eq!(together(losing(world::<A>(Unordered, quotas), losses)), None);
    }
    waits::<Central>(&[2, 2, 2], 2);
    waits::<RicartAgrawala>(&[1, 1, 1], 2);
    waits::<CarvalhoRoucairol>(&[1, 1, 1], 2);
    waits::<ReadersWriters>(&[1, 1, 1], 2);
    waits::<RicartAgrawalaToken>(&[2, 1, 1], 2);
    waits::<SuzukiKasami>(&[2, 1, 1], 2);
    waits::<NaimiTrehel>(&[2, 2, 2], 2);
}

#[test]
fn one_doubled_message_lets_two_in() {
    fn unsafe_after<A: Algorithm>(quotas: &[u32]) -> Option<usize> {
        together(doubling(world::<A>(Unordered, quotas), 1))
    }
    assert_eq!(unsafe_after::<Central>(&[0, 2, 2]), Some(10));
    assert_eq!(unsafe_after::<RicartAgrawala>(&[2, 2]), Some(9));
    assert_eq!(unsafe_after::<CarvalhoRoucairol>(&[2, 2]), Some(9));
    assert_eq!(unsafe_after::<ReadersWriters>(&[2, 2]), Some(9));
    assert_eq!(unsafe_after::<RicartAgrawalaToken>(&[2, 2]), Some(9));
    assert_eq!(unsafe_after::<SuzukiKasami>(&[2, 2]), Some(9));
    assert_eq!(unsafe_after::<NaimiTrehel>(&[2, 2]), Some(9));
}

#[test]
fn every_rule_is_needed() {
    // Carvalho & Roucairol: who gives a permission back while waiting asks for it again. Two nodes
    // do not show the need.
    holds(world::<Spoiled<NeverAskedBack>>(Unordered, &[4, 4]));
    let (steps, found) = violation(world::<Spoiled<NeverAskedBack>>(Unordered, &[2, 1, 1]));
    assert!(matches!(found, Violation::Stuck(_)), "{found}");
    assert_eq!(steps, 21);

    // Ricart & Agrawala: the scan ends at the first token sent.
    assert_eq!(together(world::<Spoiled<EveryTokenSent>>(Unordered, &[1, 1, 1])), Some(8));

    // The coordinator: a request of the node inside may have overtaken its release.
    holds(world::<Spoiled<HolderIgnored>>(Fifo, &[0, 3, 3]));
    let (steps, found) = violation(world::<Spoiled<HolderIgnored>>(Unordered, &[0, 3, 3]));
    assert!(matches!(found, Violation::Stuck(_)), "{found}");
    assert_eq!(steps, 7);
}

#[test]
fn no_schedule_costs_more_than_claimed() {
    assert_eq!(messages(world::<Central>(Unordered, &[1, 1, 1])), (6, 6));
    assert_eq!(messages(world::<Lamport>(Fifo, &[2, 2])), (12, 12));
    assert_eq!(messages(world::<CarvalhoRoucairol>(Unordered, &[2, 2, 2])), (12, 24));
    assert_eq!(messages(world::<RicartAgrawalaToken>(Unordered, &[2, 2, 2])), (6, 18));
    assert_eq!(messages(world::<SuzukiKasami>(Unordered, &[1, 1, 1])), (6, 9));
    assert_eq!(messages(world::<NaimiTrehel>(Unordered, &[1, 1, 1, 1])), (8, 10));
}

#[test]
fn a_ring_that_keeps_order_costs_n_and_one_that_does_not_up_to_2n() {
    assert_eq!(messages(wired(Wiring::Ring, Fifo, &[1, 1, 1])), (5, 9));
    assert_eq!(messages(wired(Wiring::Ring, Fifo, &[1, 1, 1, 1])), (9, 16));
    assert_eq!(messages(wired(Wiring::Ring, Unordered, &[1, 1, 1])), (4, 11));
    assert_eq!(messages(wired(Wiring::Ring, Unordered, &[1, 1, 1, 1])), (6, 22));
    assert_eq!(messages(wired(Wiring::Tree, Unordered, &[1, 1, 1, 1])), (13, 20));
}

#[test]
fn a_million_nodes_of_naimi_and_trehel_are_small() {
    assert!(size_of::<Member<NaimiTrehel>>() <= 40);
}

/// Carvalho & Roucairol without rule 4: a permission given back is not asked for again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct NeverAskedBack;

impl Spoil for NeverAskedBack {
    type Of = CarvalhoRoucairol;

    fn change(&mut self, mut sends: Sends<Self>) -> Sends<Self> {
        use carvalho_roucairol::Message;
        if matches!(sends.first(), Some((_, Message::Reply))) {
            sends.retain(|(_, message)| *message == Message::Reply);
        }
        sends
    }
}

/// Ricart & Agrawala's token without the end of the scan: all who ask get one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct EveryTokenSent {
    asked: BTreeMap<NodeId, u64>,
}

impl Spoil for EveryTokenSent {
    type Of = RicartAgrawalaToken;

    fn hears(&mut self, from: NodeId, message: Message<Self>) -> Option<Message<Self>> {
        if let ricart_agrawala_token::Message::Request(number) = message {
            self.asked.insert(from, number);
        }
        Some(message)
    }

    fn change(&mut self, mut sends: Sends<Self>) -> Sends<Self> {
        use ricart_agrawala_token::Message;
        if let Some((first, Message::Token(served))) = sends.first().cloned() {
            let open = self.asked.iter().filter(|(node, number)| **number > served[node.index()]);
            let others = open.map(|(node, _)| *node).filter(|node| *node != first);
            sends.extend(others.map(|node| (node, Message::Token(served.clone()))));
        }
        sends
    }
}

/// The coordinator that takes a request of the node inside for a mistake.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct HolderIgnored {
    holder: Option<NodeId>,
}

impl Spoil for HolderIgnored {
    type Of = Central;

    fn hears(&mut self, from: NodeId, message: Message<Self>) -> Option<Message<Self>> {
        if message == central::Message::Release {
            self.holder = None;
        }
        let ignored = message == central::Message::Request && self.holder == Some(from);
        (!ignored).then_some(message)
    }

    fn change(&mut self, sends: Sends<Self>) -> Sends<Self> {
        let grant = sends.iter().find(|(_, message)| *message == central::Message::Grant);
        self.holder = grant.map(|(to, _)| *to).or(self.holder);
        sends
    }
}
