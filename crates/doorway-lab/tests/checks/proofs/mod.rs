//! The invariants of the papers' own proofs, checked in every world of small groups.

mod overtaking;

use std::collections::BTreeSet;

use doorway_core::algorithms::carvalho_roucairol::{self, CarvalhoRoucairol};
use doorway_core::algorithms::le_lann::LeLann;
use doorway_core::algorithms::naimi_trehel::NaimiTrehel;
use doorway_core::algorithms::raymond_echo::RaymondEcho;
use doorway_core::algorithms::raymond_tree::{self, RaymondTree};
use doorway_core::algorithms::ricart_agrawala_token::{self, RicartAgrawalaToken};
use doorway_core::algorithms::suzuki_kasami::SuzukiKasami;
use doorway_core::tree::TreeShape;
use doorway_core::{Algorithm, Group, NodeId, Shape, Start};
use doorway_lab::check::Verdict;
use doorway_lab::erased::AnyMessage;
use doorway_lab::trace::kind;
use doorway_lab::watch::{Event, NotedMessage, Outgoing, Watch, watch_of};
use doorway_lab::{AnyAlgorithm, ChannelPosition, Letter, Violation, World};

use crate::watching::{search, world};
use doorway_lab::spoiled::{Sends, Spoil, SpoiledAlgorithm};

#[track_caller]
fn holds(verdict: &Verdict) {
    assert_eq!(*verdict, Verdict::Holds);
}

/// The claim is violated, with this complaint. Returns the number of steps.
#[track_caller]
fn broken(verdict: &Verdict, complaint: &str) -> usize {
    match verdict {
        Verdict::Violated { trace, violation: Violation::Claim(why), .. }
            if why.contains(complaint) =>
        {
            trace.len()
        }
        verdict => panic!("not {complaint:?}, but {verdict:?}"),
    }
}

/// Raymond 1989, section 5: a queue holds each neighbour once, and pointers lead to the token.
fn lift(world: &World) -> Option<String> {
    let state = |node: NodeId| world.nodes().member(node).algorithm::<RaymondTree>();
    let token = |(position, letter): (ChannelPosition, &Letter)| {
        let message: &raymond_tree::Message = letter.body.get();
        (*message == raymond_tree::Message::Privilege).then_some(position.to)
    };
    // A token under way counts as being at its receiver, because its sender points there already.
    let rests = world.group().nodes().filter(|node| state(*node).holder() == *node);
    let tokens: Vec<NodeId> = rests.chain(world.under_way().filter_map(token)).collect();
    let [token] = tokens[..] else { return Some(format!("the token is at {tokens:?}")) };
    world.group().nodes().find_map(|node| {
        let queue: Vec<NodeId> = state(node).queue().collect();
        let distinct: BTreeSet<NodeId> = queue.iter().copied().collect();
        if distinct.len() < queue.len() {
            return Some(format!("node {node} has a node in its queue twice: {queue:?}"));
        }
        let mut at = node;
        for _ in world.group().nodes() {
            at = if at == token { at } else { state(at).holder() };
        }
        (at != token).then(|| format!("from node {node} the pointers do not lead to the token"))
    })
}

#[test]
fn pointers_lead_to_the_token_and_queues_hold_each_neighbour_once() {
    let tree = AnyAlgorithm::of::<RaymondTree>;
    for shape in [TreeShape::Chain, TreeShape::Star] {
        let shape = Shape { tree: Some(shape), ..Shape::default() };
        holds(&search(&world(tree(), &shape, &[2; 3]), lift));
        holds(&search(&world(tree(), &shape, &[2; 4]), lift));
        let mut doubled = world(tree(), &shape, &[0, 1, 0]);
        doubled.limits_mut().duplicates = 1;
        assert_eq!(broken(&search(&doubled, lift), "the token is at"), 3);
    }
}

/// Whether the node has been inside.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct VisitMark(bool);

impl Watch for VisitMark {
    type Note = ();

    fn new(me: NodeId, _group: &Group, start: &Start) -> Self {
        Self(start.holder(me).is_some())
    }

    fn happened(&mut self, _event: Event<'_, ()>) {}

    fn entered(&mut self, _group: &Group) {
        self.0 = true;
    }

    fn note(&mut self, _: Event<'_, ()>, _: Outgoing<'_>) {}
}

/// Carvalho & Roucairol 1983: each pair of nodes has at most one permission, and exactly one as
/// soon as one of the two has been inside.
fn permissions(world: &World) -> Option<String> {
    let state = |node: NodeId| world.nodes().member(node).algorithm::<CarvalhoRoucairol>();
    let pairs = world.group().nodes().flat_map(|one| (0..one.0).map(move |two| (one, NodeId(two))));
    pairs.into_iter().find_map(|(one, two)| {
        let between = world.under_way().filter(|(position, letter)| {
            let ends = [(one, two), (two, one)].contains(&(position.from, position.to));
            let message = &letter.body.get::<NotedMessage<()>>().inner;
            ends && matches!(message.get(), carvalho_roucairol::Message::Reply)
        });
        let has = |one, two| usize::from(state(one).permitted_by(two));
        let permissions = between.count() + has(one, two) + has(two, one);
        let used = [one, two].into_iter().any(|node| watch_of::<VisitMark>(world, node).0);
        (permissions > 1 || (used && permissions == 0))
            .then(|| format!("nodes {one} and {two} have {permissions} permissions"))
    })
}

#[test]
fn each_pair_has_one_permission() {
    let fresh = Shape::default();
    let visited = || AnyAlgorithm::of::<CarvalhoRoucairol>().watched::<VisitMark>();
    for asks in [&[3, 3][..], &[2, 2, 2]] {
        holds(&search(&world(visited(), &fresh, asks), permissions));
    }
    let mut doubled = world(visited(), &fresh, &[1, 0]);
    doubled.limits_mut().duplicates = 1;
    assert_eq!(broken(&search(&doubled, permissions), "have 2 permissions"), 3);
}

/// Is this message the token? Each algorithm uses one of these names for it.
fn is_token(message: &AnyMessage) -> bool {
    matches!(kind(&format!("{message:?}")), "Token" | "Privilege")
}

/// How many tokens a node has: what it began with and received, less what it sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Tokens(i8);

impl Watch for Tokens {
    type Note = ();

    fn new(me: NodeId, _group: &Group, start: &Start) -> Self {
        Self(i8::from(start.token() == me))
    }

    fn happened(&mut self, event: Event<'_, ()>) {
        if let Event::Receive { message, .. } = event {
            self.0 += i8::from(is_token(&message.inner));
        }
    }

    fn note(&mut self, _: Event<'_, ()>, outgoing: Outgoing<'_>) {
        self.0 -= i8::from(is_token(outgoing.message));
    }
}

/// Check that no node sends a token that it does not have, or is inside without one.
fn one_token(world: &World) -> Option<String> {
    world.group().nodes().find_map(|node| {
        let member = world.nodes().member(node);
        let tokens = watch_of::<Tokens>(world, node).0;
        let right = tokens == 1 || (tokens == 0 && member.held() == 0);
        (!right).then(|| format!("node {node} has {tokens} tokens"))
    })
}

fn keeps_one_token<A: Algorithm>() {
    for asks in [&[3, 3][..], &[2, 2, 2]] {
        let first = world(AnyAlgorithm::of::<A>().watched::<Tokens>(), &Shape::default(), asks);
        holds(&search(&first, one_token));
    }
}

#[test]
fn there_is_one_token() {
    keeps_one_token::<LeLann>();
    keeps_one_token::<NaimiTrehel>();
    keeps_one_token::<RaymondEcho>();
    keeps_one_token::<RaymondTree>();
    keeps_one_token::<RicartAgrawalaToken>();
    keeps_one_token::<SuzukiKasami>();
}

/// Sends the token twice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct TwoTokens;

impl Spoil for TwoTokens {
    type Of = RicartAgrawalaToken;

    fn change(&mut self, sends: Sends<Self>) -> Sends<Self> {
        let copies: Sends<Self> = sends
            .iter()
            .filter(|(_, message)| matches!(message, ricart_agrawala_token::Message::Token(_)))
            .cloned()
            .collect();
        sends.into_iter().chain(copies).collect()
    }
}

#[test]
fn a_second_token_is_noticed() {
    let spoiled = AnyAlgorithm::of::<SpoiledAlgorithm<TwoTokens>>().watched::<Tokens>();
    let first = world(spoiled, &Shape::default(), &[1, 1, 1]);
    broken(&search(&first, one_token), "has -1 tokens");
}
