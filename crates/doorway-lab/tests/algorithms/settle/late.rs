//! Settling with messages that arrive too late to matter, and nodes whose numbers are far behind.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use doorway_core::algorithms::maekawa_heir::MaekawaHeir;
use doorway_core::algorithms::ricart_agrawala_token::RicartAgrawalaToken;
use doorway_core::algorithms::suzuki_kasami::SuzukiKasami;
use doorway_core::algorithms::{self, Task};
use doorway_core::quorums::{Kind, Quorums};
use doorway_core::{Algorithm, Channel, Group, Info, Mode, Needs, NodeId, Shape, Start};
use doorway_lab::{AnyAlgorithm, Choice, FOREVER, Limits, World};

use super::Case;
use super::pair::{Pair, fingerprint};
use crate::listed::listed;

/// A group in which two nodes ask a third one for its lock.
pub(crate) fn one_arbiter() -> Shape {
    Shape { quorums: Some(Kind::Weighted.into()), weights: Some(vec![0, 0, 1]), ..Shape::default() }
}

/// A group of three in which a message may arrive too late to matter, and the numbers of a node may
/// be far behind: one node decides between the others, or two permits let a node in after one
/// reply.
fn late(info: &Info) -> Case {
    let twice = Case::new(&[2, 0, 0], info.channel);
    let for_ever = Case::new(&[FOREVER, FOREVER, 0], info.channel);
    match info.needs {
        _ if info.permits => {
            let shape = Shape { permits: Some(2), seats: Some(1), ..Shape::default() };
            Case { shape, ..twice }
        }
        Needs::Quorums => Case { shape: one_arbiter(), ..for_ever },
        _ => Case { shape: Shape { quorums: None, ..one_arbiter() }, ..for_ever },
    }
}

/// How many settled worlds such a group has.
struct SettledCount;

impl Task for SettledCount {
    type Output = usize;

    fn run<A: Algorithm>(self) -> usize {
        let first = late(&A::INFO).world::<A>().settled();
        let mut known = BTreeSet::from([fingerprint(&first)]);
        let mut open = VecDeque::from([first]);
        while let Some(world) = open.pop_front().filter(|_| known.len() < 10_000) {
            for choice in world.choices() {
                let mut next = world.clone();
                next.apply(choice);
                let next = next.settled();
                if known.insert(fingerprint(&next)) {
                    open.push_back(next);
                }
            }
        }
        known.len()
    }
}

const LATE: [(&str, usize); 6] = [
    ("maekawa", 334),
    ("maekawa-heir", 334),
    ("maekawa-eager", 270),
    ("maekawa-unordered", 437),
    ("weighted-majority", 490),
    ("raymond-k", 41),
];

#[test]
fn messages_that_arrive_too_late_are_settled_away() {
    for (name, expected) in LATE.into_iter().filter(|(name, _)| listed(name)) {
        let count = algorithms::with(name, SettledCount).expect("a name");
        assert_eq!(count, expected, "{name}");
    }
}

/// Node 1 is the only node that nodes 2 and 3 both ask. It crashes, and node 2 is its heir. So node
/// 2 does not learn how often node 3 has been inside, and may itself enter as often.
#[test]
fn if_nodes_may_crash_the_distance_between_numbers_is_kept() {
    let [one, two, three] = [0, 1, 2].map(NodeId);
    let quorums = Quorums::from_sets(vec![vec![one], vec![one, two], vec![one, three]]);
    let group = Group::new(3).and_then(|group| group.with_quorums(quorums?)).expect("they meet");
    let limits = Limits { crashes: 1, detection: true, ..Limits::reliable(&group, FOREVER) };
    let start = Start::default();
    let world = World::new(
        AnyAlgorithm::of::<MaekawaHeir>(),
        Arc::new(group),
        &start,
        Channel::Fifo,
        limits,
    );
    let mut pair = Pair::new(world);
    let mut happen = |choice| {
        let mut next = Some(choice);
        while let Some(choice) = next {
            pair = pair.step(choice).expect("they do the same").expect("all is well");
            assert_eq!(pair.check(), Ok(()));
            next = pair.world.under_way().next().map(|(position, _)| Choice::Deliver(position));
        }
    };
    let acquire = |node| Choice::Acquire(node, Mode::Exclusive);
    let visit = |node| [acquire(node), Choice::Release(node)];
    [three; 20].into_iter().flat_map(visit).for_each(&mut happen);
    happen(Choice::Crash(one));
    let learns = |node| Choice::Detect { node, failed: one };
    [two, three].into_iter().map(learns).for_each(&mut happen);
    [two; 10].into_iter().flat_map(visit).for_each(&mut happen);
    [two, three].into_iter().map(acquire).for_each(&mut happen);
}

/// A world that is settled after each step never has a request with a high number under way. A
/// world that is settled late has one, and must become the same world.
fn settled_late_or_early<A: Algorithm>() {
    let [one, two] = [0, 1].map(NodeId);
    let mut late = Case::new(&[1, 2], Channel::Fifo).world::<A>();
    let mut early = late.settled();
    let mut happen = |choice| {
        late.apply(choice);
        early.apply(choice);
        early = early.settled();
        late.under_way().next().map(|(position, _)| Choice::Deliver(position))
    };
    for node in [two, one] {
        let mut next = Some(Choice::Acquire(node, Mode::Exclusive));
        while let Some(choice) = next {
            next = happen(choice);
        }
        happen(Choice::Release(node));
    }
    happen(Choice::Acquire(two, Mode::Exclusive));
    assert_ne!(late, early);
    assert_eq!(late.settled(), early);
}

#[test]
fn settling_late_or_early_gives_the_same_world() {
    settled_late_or_early::<RicartAgrawalaToken>();
    settled_late_or_early::<SuzukiKasami>();
}
