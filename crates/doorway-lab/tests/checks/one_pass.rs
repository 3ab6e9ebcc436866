//! Token algorithms whose token one pass of Ricart & Agrawala's algorithm makes.

use std::sync::Arc;

use doorway_core::algorithms::one_pass::{Message, OnePass};
use doorway_core::algorithms::suzuki_kasami::SuzukiKasami;
use doorway_core::{Algorithm, Effects, Input, Member, Mode, NodeId, Phase, Shape, Start};
use doorway_lab::check::census::why_endless_after_one_pass;
use doorway_lab::check::{Check, Report, Verdict};
use doorway_lab::simulate::{Options, Simulation};
use doorway_lab::{AnyAlgorithm, FOREVER, Limits, World};

/// The algorithms that can begin so.
const TOKENS: [&str; 5] =
    ["ricart-agrawala-token", "suzuki-kasami", "naimi-trehel", "le-lann", "raymond-tree"];

fn check(name: &str, asks: &[u32]) -> Report {
    let algorithm = AnyAlgorithm::by_one_pass(name).expect("a token algorithm");
    let group = algorithm.info().group(asks.len(), &Shape::default()).expect("a group");
    let asks = asks.iter().map(|times| (*times, Mode::Exclusive)).collect();
    let limits = Limits { acquires: asks, ..Limits::reliable(&group, 0) };
    let channel = algorithm.info().channel;
    let world = World::new(algorithm, Arc::new(group), &Start::default(), channel, limits);
    Check::new(&world, 1_000_000).run()
}

/// Exclusion, no deadlock and no starvation, in every world of a few nodes. In all of them at most
/// one token is made: two would let two nodes in.
#[test]
fn every_token_algorithm_may_begin_without_a_token() {
    for name in TOKENS {
        for asks in [&[2][..], &[2, 2], &[1, 1, 1], &[2, 1, 1]] {
            let report = check(name, asks);
            assert_eq!(report.verdict, Verdict::Holds, "{name} {asks:?}: {report:?}");
        }
    }
}

#[test]
fn nodes_that_ask_for_ever_have_finitely_many_worlds_unless_requests_pile_up() {
    for name in TOKENS {
        for asks in [&[FOREVER; 2][..], &[FOREVER; 3]] {
            if why_endless_after_one_pass(name, asks.len()).is_none() {
                let report = check(name, asks);
                assert_eq!(report.verdict, Verdict::Holds, "{name} {asks:?}: {report:?}");
            }
        }
    }
    let endless = |name: &&str| why_endless_after_one_pass(name, 3).is_some();
    let endless: Vec<_> = TOKENS.into_iter().filter(endless).collect();
    assert_eq!(endless, ["ricart-agrawala-token", "suzuki-kasami"]);
}

#[test]
fn algorithms_without_a_token_do_not_begin_so() {
    for name in ["lamport", "maekawa", "central", "raymond-echo", "no-such-algorithm"] {
        assert!(AnyAlgorithm::by_one_pass(name).is_none(), "{name}");
    }
}

/// The first entry costs what it costs in `ricart-agrawala`. Later ones cost what they cost in the
/// token algorithm, and a node that did not know of the token asks once in vain.
#[test]
fn the_first_entry_costs_one_pass() {
    let algorithm = AnyAlgorithm::by_one_pass("suzuki-kasami").expect("a token algorithm");
    let group = algorithm.info().group(5, &Shape::default()).expect("a group");
    let mut options = Options::new(algorithm.info(), group);
    let arrivals = [(0.0, 2), (100.0, 2), (200.0, 4), (300.0, 2)];
    let arrival = |(at, node)| doorway_lab::simulate::Arrival::new(at, NodeId(node));
    options.workload = doorway_lab::simulate::Workload::Scripted(arrivals.map(arrival).into());
    options.entries = 4;
    options.trace = 1_000;
    let mut run = Simulation::new(algorithm, options).expect("a run");
    while !run.advance(100) {}
    let sent = |from: f64, to: f64| {
        let events = run.trace().events.iter().filter(|event| (from..to).contains(&event.at));
        events.filter(|e| matches!(e.what, doorway_lab::trace::EventKind::Send { .. })).count()
    };
    assert_eq!(run.report().violation, None);
    assert_eq!(sent(0.0, 100.0), 8, "2(N-1)");
    assert_eq!(sent(100.0, 200.0), 0, "the token is there");
    // REQUEST to four, one MADE and three REPLYs, then REQUEST to four and the token.
    assert_eq!(sent(200.0, 300.0), 8 + 5, "once in vain");
    assert_eq!(sent(300.0, 400.0), 5, "N");
}

/// What no correct peer sends is refused, and changes nothing.
#[test]
fn impossible_messages_are_refused() {
    type Node = Member<OnePass<SuzukiKasami>>;
    let group = SuzukiKasami::INFO.group(3, &Shape::default()).expect("a group");
    let mut out = Effects::default();
    let node = || {
        let mut out = Effects::default();
        Node::begin(NodeId(1), &group, &Start::default(), &mut out).expect("it begins")
    };
    let mut waiting = node();
    waiting.step(&group, Input::Acquire(Mode::Exclusive), &mut out).expect("it asks");
    let token = doorway_core::algorithms::suzuki_kasami::Message::Request(NodeId(1), 1);
    for (mut node, message) in [
        (node(), Message::Made(NodeId(0))),
        (waiting.clone(), Message::Made(NodeId(1))),
        (waiting.clone(), Message::Made(NodeId(3))),
        (waiting.clone(), Message::Token(NodeId(1), token.clone())),
        // A request in our own name: the token algorithm refuses it, and we know of no token then.
        (waiting.clone(), Message::Token(NodeId(0), token)),
    ] {
        let before = node.clone();
        let from = NodeId(0);
        node.step(&group, Input::Receive { from, message }, &mut out).expect("a contract");
        assert!(out.rejected().is_some());
        assert_eq!(node, before);
    }
    // The real one is heard, and the node asks for the token.
    let (from, message) = (NodeId(0), Message::Made(NodeId(0)));
    waiting.step(&group, Input::Receive { from, message }, &mut out).expect("a contract");
    assert_eq!((out.rejected(), out.sends().len(), waiting.phase()), (None, 2, Phase::Waiting));
    // A second token cannot be.
    let (from, message) = (NodeId(2), Message::Made(NodeId(2)));
    waiting.step(&group, Input::Receive { from, message }, &mut out).expect("a contract");
    assert!(out.rejected().is_some());
}
