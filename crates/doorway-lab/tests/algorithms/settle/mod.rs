//! A settled world behaves exactly like the world that it stands for.
//!
//! A run takes the same steps in two worlds, of which one is settled after each step. At every step
//! both have the same choices, except for messages that the settled world has dropped. Every choice
//! makes the same node do the same in both. A dropped message changes nothing when it arrives.

use std::collections::{BTreeSet, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;

use doorway_core::algorithms::ricart_agrawala::{self, RicartAgrawala};
use doorway_core::algorithms::suzuki_kasami::{self, SuzukiKasami};
use doorway_core::algorithms::{self, ALL, Task};
use doorway_core::quorums::Kind;
use doorway_core::{
    Algorithm, Channel, Group, Info, Needs, NodeId, Shape, Snapshot, Start, Wiring,
};
use doorway_lab::check::{Check, Verdict};
use doorway_lab::{AnyAlgorithm, Choice, FOREVER, Limits, World};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

mod late;
mod pair;

use crate::listed::listed;
use doorway_lab::spoiled::{Spoil, SpoiledAlgorithm};
use pair::Pair;

/// A group in which node i asks `asks[i]` times.
#[derive(Clone, Debug)]
struct Case {
    shape: Shape,
    asks: Vec<u32>,
    channel: Channel,
    forgetting: bool,
    crashes: u32,
    withdrawing: bool,
}

impl Case {
    fn new(asks: &[u32], channel: Channel) -> Self {
        let shape = Shape::default();
        let (asks, forgetting, withdrawing) = (asks.to_vec(), false, false);
        Self { shape, asks, channel, forgetting, crashes: 0, withdrawing }
    }

    fn world<A: Algorithm>(&self) -> World {
        let group = A::INFO.group(self.asks.len(), &self.shape).expect("the shape fits");
        let group = Arc::new(group);
        let mut limits = Limits {
            forgetting: self.forgetting,
            crashes: self.crashes,
            withdrawing: self.withdrawing,
            detection: true,
            ..Limits::reliable(&group, 0)
        };
        for (limit, asks) in limits.acquires.iter_mut().zip(&self.asks) {
            limit.0 = *asks;
        }
        World::new(AnyAlgorithm::of::<A>(), group, &Start::default(), self.channel, limits)
    }
}

/// Compare the worlds nearest to the beginning, up to the given number.
struct Nearest<'a>(&'a Case, usize);

impl Task for Nearest<'_> {
    type Output = Result<(), String>;

    fn run<A: Algorithm>(self) -> Result<(), String> {
        let first = Pair::new(self.0.world::<A>());
        let mut known = BTreeSet::from([first.fingerprint()]);
        let mut open = VecDeque::from([first]);
        while let Some(pair) = open.pop_front() {
            pair.check()?;
            for choice in pair.world.choices() {
                let Some(next) = pair.step(choice)? else { continue };
                if known.len() < self.1 && known.insert(next.fingerprint()) {
                    open.push_back(next);
                }
            }
        }
        Ok(())
    }
}

/// Compare the worlds of a random walk with this seed and number of steps. The first node is
/// preferred, so that the numbers of the others fall behind.
struct Walk<'a>(&'a Case, u64, usize);

impl Task for Walk<'_> {
    type Output = Result<(), String>;

    fn run<A: Algorithm>(self) -> Result<(), String> {
        let mut dice = ChaCha8Rng::seed_from_u64(self.1);
        let mut pair = Pair::new(self.0.world::<A>());
        for _ in 0..self.2 {
            pair.check()?;
            let mut choices = pair.world.choices();
            let others_wait = dice.next_u64() % 8 > 0;
            let asks = |choice: &Choice| matches!(choice, Choice::Acquire(NodeId(1..), _));
            if others_wait && !choices.iter().all(asks) {
                choices.retain(|choice| !asks(choice));
            }
            let Some(pick) = (dice.next_u64() as usize).checked_rem(choices.len()) else { break };
            let Some(next) = pair.step(choices[pick])? else { break };
            pair = next;
        }
        Ok(())
    }
}

/// How many settled worlds the checker goes through, if no more than `limit` and nothing is
/// violated.
struct Count<'a>(&'a Case, u64);

impl Task for Count<'_> {
    type Output = Option<u64>;

    fn run<A: Algorithm>(self) -> Option<u64> {
        let report = Check::safety(&self.0.world::<A>(), self.1).run();
        (report.verdict == Verdict::Holds).then_some(report.progress.states)
    }
}

/// The cases in which node i asks `asks[i]` times, with and without forgetting.
fn cases(asks: &[u32], needs: Channel) -> Vec<Case> {
    let mut cases = vec![Case::new(asks, needs)];
    if needs == Channel::Unordered {
        cases.push(Case::new(asks, Channel::Fifo));
    }
    cases.push(Case { forgetting: true, ..Case::new(asks, needs) });
    cases.push(Case { withdrawing: true, ..Case::new(asks, needs) });
    cases
}

/// Run a comparison with the algorithm called `name`. If one pass of `ricart-agrawala` can make its
/// token, run another comparison with the algorithm that begins so.
fn compare<T: Task<Output = Result<(), String>>>(
    name: &str,
    task: impl Fn() -> T,
) -> Result<(), String> {
    algorithms::with(name, task()).expect("a name")?;
    algorithms::with_one_pass(name, task()).unwrap_or(Ok(()))
}

#[test]
fn settled_worlds_behave_the_same_near_the_beginning() {
    for info in ALL.iter().map(|entry| entry.info) {
        for asks in [&[3, 3][..], &[1, 1, 1], &[2, 2, 2], &[3, 0, 1]] {
            for case in cases(asks, info.channel) {
                let result = compare(info.name, || Nearest(&case, 150));
                assert_eq!(result, Ok(()), "{} {case:?}", info.name);
            }
        }
    }
}

#[test]
fn settled_worlds_behave_the_same_after_many_requests() {
    for info in ALL.iter().map(|entry| entry.info) {
        for size in [2, 3] {
            let asks = vec![FOREVER; size];
            let mut cases = cases(&asks, info.channel);
            cases.push(Case { crashes: 1, ..Case::new(&asks, info.channel) });
            for (seed, case) in cases.iter().enumerate() {
                let result = compare(info.name, || Walk(case, seed as u64, 200));
                assert_eq!(result, Ok(()), "{} {case:?}", info.name);
            }
        }
    }
}

/// Shapes other than the default, with the sizes of their groups. With the default quorums of three
/// nodes, no two nodes ask the same third node, so a node gets INQUIRE only from itself.
fn shaped(info: &Info) -> Vec<(Shape, RangeInclusive<usize>)> {
    let wired = |wiring| Shape { wiring: Some(wiring), ..Shape::default() };
    let permits = |k, seats| Shape { permits: Some(k), seats: Some(seats), ..Shape::default() };
    let asking = |kind: Kind| Shape { quorums: Some(kind.into()), ..Shape::default() };
    let weights = || Shape { weights: Some(vec![1, 1, 0]), ..Shape::default() };
    match info.needs {
        _ if info.permits => vec![(permits(2, 1), 2..=3), (permits(2, 2), 2..=3)],
        Needs::Wiring => vec![(wired(Wiring::Ring), 2..=3), (wired(Wiring::Tree), 2..=3)],
        Needs::Weights => vec![(weights(), 3..=3)],
        Needs::Quorums => vec![
            (asking(Kind::Triangle), 2..=3),
            (asking(Kind::Grid), 4..=4),
            (late::one_arbiter(), 3..=3),
        ],
        Needs::Nothing | Needs::Tree | Needs::Graph => Vec::new(),
    }
}

#[test]
fn settled_worlds_behave_the_same_with_other_shapes() {
    for info in ALL.iter().map(|entry| entry.info) {
        let sized = |(shape, sizes): (Shape, RangeInclusive<usize>)| {
            sizes.map(move |size| (shape.clone(), size))
        };
        for (shape, size) in shaped(&info).into_iter().flat_map(sized) {
            let case = Case { shape, ..Case::new(&vec![2; size], info.channel) };
            let result = compare(info.name, || Nearest(&case, 300));
            assert_eq!(result, Ok(()), "{} {case:?}", info.name);
            let case = Case { asks: vec![FOREVER; size], ..case };
            for seed in 0..10 {
                let result = compare(info.name, || Walk(&case, seed, 200));
                assert_eq!(result, Ok(()), "{} {case:?}", info.name);
            }
        }
    }
}

/// The number of settled worlds of two nodes that never stop asking, and of three nodes if a test
/// can explore all of them.
const FINITE: [(&str, Channel, &[u64]); 29] = [
    ("central", Channel::Fifo, &[13, 70]),
    ("central", Channel::Unordered, &[16, 98]),
    ("carvalho-roucairol", Channel::Fifo, &[31, 6661]),
    ("carvalho-roucairol", Channel::Unordered, &[35, 8695]),
    ("ricart-agrawala", Channel::Fifo, &[18, 1833]),
    ("ricart-agrawala", Channel::Unordered, &[24, 2622]),
    ("readers-writers", Channel::Unordered, &[24, 2622]),
    ("ricart-agrawala-token", Channel::Fifo, &[14, 192]),
    ("ricart-agrawala-token", Channel::Unordered, &[16, 252]),
    ("suzuki-kasami", Channel::Fifo, &[14, 240]),
    ("suzuki-kasami", Channel::Unordered, &[16, 312]),
    ("naimi-trehel", Channel::Fifo, &[14, 282]),
    ("naimi-trehel", Channel::Unordered, &[16, 318]),
    ("le-lann", Channel::Unordered, &[12, 36]),
    ("maekawa", Channel::Fifo, &[51, 8000]),
    ("maekawa-heir", Channel::Fifo, &[51, 8000]),
    ("maekawa-eager", Channel::Fifo, &[40, 10371]),
    ("maekawa-unordered", Channel::Unordered, &[91, 25726]),
    ("maekawa-sequential", Channel::Fifo, &[27, 160]),
    ("maekawa-sequential", Channel::Unordered, &[34, 223]),
    ("maekawa-cyclic", Channel::Fifo, &[27, 160]),
    ("maekawa-cyclic", Channel::Unordered, &[34, 223]),
    ("raymond-tree", Channel::Unordered, &[16, 110]),
    ("raymond-echo", Channel::Unordered, &[50, 2208]),
    ("raymond-k", Channel::Fifo, &[17, 1804]),
    ("raymond-k", Channel::Unordered, &[23, 2562]),
    ("lamport", Channel::Fifo, &[91]),
    ("majority", Channel::Fifo, &[40]),
    ("majority", Channel::Unordered, &[91]),
];

#[test]
fn endless_requests_lead_to_finitely_many_settled_worlds() {
    for (name, channel, counts) in FINITE {
        for (size, expected) in (2..).zip(counts).filter(|_| listed(name)) {
            let case = Case::new(&vec![FOREVER; size], channel);
            let count = algorithms::with(name, Count(&case, 30_000)).expect("a name");
            assert_eq!(count.as_ref(), Some(expected), "{name} {case:?}");
        }
    }
}

/// The number of settled worlds of two nodes that never stop asking, and of three nodes if there
/// are finitely many, where one pass of `ricart-agrawala` makes the token. Requests that go to all
/// nodes pile up on their way to a third node that does not know of the token yet.
const FINITE_AFTER_ONE_PASS: [(&str, &[u64]); 5] = [
    ("ricart-agrawala-token", &[61]),
    ("suzuki-kasami", &[61]),
    ("naimi-trehel", &[61, 7919]),
    ("le-lann", &[61, 5873]),
    ("raymond-tree", &[61, 7295]),
];

#[test]
fn one_pass_leads_to_finitely_many_settled_worlds() {
    for (name, counts) in FINITE_AFTER_ONE_PASS {
        for (size, expected) in (2..).zip(counts).filter(|_| listed(name)) {
            let case = Case::new(&vec![FOREVER; size], Channel::Unordered);
            let count = algorithms::with_one_pass(name, Count(&case, 200_000)).expect("a name");
            assert_eq!(count.as_ref(), Some(expected), "{name} {case:?}");
        }
    }
}

/// A wrong way to settle: the numbers in requests under way are replaced by their ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct RankedNumbers;

impl Spoil for RankedNumbers {
    type Of = RicartAgrawala;

    fn settle(_group: &Group, snapshot: &mut Snapshot<SpoiledAlgorithm<Self>>) {
        snapshot.rebase_with_gap(
            1,
            |_, _| {},
            |mail, each| {
                if let ricart_agrawala::Message::Request(clock) = &mut mail.message {
                    each(clock);
                }
            },
        );
    }
}

/// A wrong way to settle: the numbers of nodes are rebased, but not those in requests under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct ForgottenMail;

impl Spoil for ForgottenMail {
    type Of = RicartAgrawala;

    fn settle(group: &Group, snapshot: &mut Snapshot<SpoiledAlgorithm<Self>>) {
        let nodes = snapshot.nodes.iter().map(|node| node.sound.clone()).collect();
        let mut silent = Snapshot { nodes, mail: Vec::new(), crashes: 0, withdrawals: false };
        RicartAgrawala::settle(group, &mut silent);
        for (node, sound) in snapshot.nodes.iter_mut().zip(silent.nodes) {
            node.sound = sound;
        }
    }
}

/// A wrong way to settle: the first request is dropped, although no node has served it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct DroppedRequest;

impl Spoil for DroppedRequest {
    type Of = SuzukiKasami;

    fn settle(_group: &Group, snapshot: &mut Snapshot<SpoiledAlgorithm<Self>>) {
        let first = |message: &_| matches!(message, suzuki_kasami::Message::Request(_, 1));
        snapshot.mail.retain(|mail| !first(&mail.message));
    }
}

#[test]
fn wrong_ways_to_settle_are_found() {
    let case = Case::new(&[2, 2], Channel::Unordered);
    let nearest = || Nearest(&case, 3000);
    for (spoil, result) in [
        ("ranked", nearest().run::<SpoiledAlgorithm<RankedNumbers>>()),
        ("forgotten", nearest().run::<SpoiledAlgorithm<ForgottenMail>>()),
        ("dropped", nearest().run::<SpoiledAlgorithm<DroppedRequest>>()),
    ] {
        assert!(result.is_err(), "{spoil}");
    }
}

/// The search meets a world in which a node waits for an answer to the dropped request.
#[test]
fn a_violation_that_only_settling_causes_is_not_reported_as_one() {
    let world = Case::new(&[FOREVER, FOREVER], Channel::Unordered)
        .world::<SpoiledAlgorithm<DroppedRequest>>();
    let report = Check::new(&world, 1000).run();
    assert_eq!(report.verdict, Verdict::Unconfirmed { steps: 1 });
}
