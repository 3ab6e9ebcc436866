//! A group that starts with holders behaves as one in which those nodes have just entered.

use std::sync::Arc;

use doorway_core::algorithms::central::Central;
use doorway_core::algorithms::lamport::Lamport;
use doorway_core::algorithms::raymond_k::RaymondK;
use doorway_core::algorithms::readers_writers::ReadersWriters;
use doorway_core::algorithms::{self, ALL, Task};
use doorway_core::{
    Algorithm, CLOCK_LIMIT, Group, Holder, Info, Mode, Needs, NodeId, NodeSet, Phase, Shape, Start,
    Wiring,
};
use doorway_lab::check::{Check, Verdict};
use doorway_lab::{AnyAlgorithm, Choice, Limits, World};

/// A group, and the nodes that are inside when it starts.
#[derive(Clone, Debug)]
struct Case {
    size: usize,
    shape: Shape,
    holders: Vec<Holder>,
}

impl Case {
    fn group<A: Algorithm>(&self) -> Arc<Group> {
        Arc::new(A::INFO.group(self.size, &self.shape).expect("small groups exist"))
    }

    fn start(&self) -> Start {
        Start { holders: self.holders.clone(), floor: 0 }
    }

    /// A world with the holders inside: by its start, or, if `fresh`, because they have entered.
    fn begin<A: Algorithm>(&self, fresh: bool) -> World {
        let group = self.group::<A>();
        let limits = Limits::reliable(&group, 0);
        let start = if fresh { Start::default() } else { self.start() };
        let mut world = World::new(AnyAlgorithm::of::<A>(), group, &start, A::INFO.channel, limits);
        settle(&mut world);
        for (node, mode) in self.seats().filter(|_| fresh) {
            acquire(&mut world, node, mode);
        }
        world
    }

    /// The holders, each once per permit that it holds.
    fn seats(&self) -> impl Iterator<Item = (NodeId, Mode)> + '_ {
        self.holders.iter().flat_map(|h| (0..h.permits).map(|_| (h.node, h.mode)))
    }
}

/// Every possible start of an algorithm with this number of nodes: each node alone and, if several
/// may be inside, several of them.
fn cases(info: &Info, size: usize) -> Vec<Case> {
    let holder = |node: usize, mode, permits| Holder { node: NodeId::at(node), mode, permits };
    let mut cases = Vec::new();
    for shape in shapes(info) {
        let mut add = |shape: &Shape, holders: Vec<Holder>| {
            cases.push(Case { size, shape: shape.clone(), holders });
        };
        for node in 0..size {
            let shape = begun_by(NodeId::at(node), info, &shape);
            add(&shape, vec![holder(node, Mode::Exclusive, 1)]);
            let next = (node + 1) % size;
            if info.shared {
                add(&shape, vec![holder(node, Mode::Shared, 1)]);
                let readers = [node, next].map(|node| holder(node, Mode::Shared, 1));
                add(&shape, readers.into());
            }
            if info.permits {
                let two = Shape { permits: Some(2), seats: Some(2), ..shape.clone() };
                let three = Shape { permits: Some(3), seats: Some(2), ..shape.clone() };
                let exclusive = |node, permits| holder(node, Mode::Exclusive, permits);
                add(&two, vec![exclusive(node, 1)]);
                add(&two, vec![exclusive(node, 2)]);
                add(&two, vec![exclusive(node, 1), exclusive(next, 1)]);
                add(&three, vec![exclusive(node, 2), exclusive(next, 1)]);
            }
        }
    }
    cases
}

fn shapes(info: &Info) -> Vec<Shape> {
    let wired = |wiring| Shape { wiring: Some(wiring), ..Shape::default() };
    match info.needs {
        Needs::Wiring => [Wiring::Mesh, Wiring::Ring, Wiring::Tree].map(wired).into(),
        _ => vec![Shape::default()],
    }
}

/// The shape with this node as initiator. A wave over a graph begins at the holder, so the fresh
/// group must begin its wave there too.
fn begun_by(node: NodeId, info: &Info, shape: &Shape) -> Shape {
    let initiators = (info.needs == Needs::Graph).then(|| NodeSet::from_iter([node]));
    Shape { initiators, ..shape.clone() }
}

fn sound() -> impl Iterator<Item = &'static Info> {
    ALL.iter().map(|entry| &entry.info).filter(|info| info.refuted.is_none())
}

/// Checks every world that can be reached from a start.
struct Exhaust {
    case: Case,
    acquires: u32,
}

impl Task for Exhaust {
    type Output = Verdict;

    fn run<A: Algorithm>(self) -> Verdict {
        let group = self.case.group::<A>();
        let limits = Limits::reliable(&group, self.acquires);
        let world =
            World::new(AnyAlgorithm::of::<A>(), group, &self.case.start(), A::INFO.channel, limits);
        Check::safety(&world, 20_000).run().verdict
    }
}

#[test]
fn a_start_with_holders_is_safe_and_has_no_deadlock() {
    for info in sound() {
        for (size, acquires) in [(2, 2), (3, 1)] {
            for case in cases(info, size) {
                let task = Exhaust { case: case.clone(), acquires };
                let verdict = algorithms::with(info.name, task).unwrap();
                let good = !matches!(verdict, Verdict::Violated { .. });
                assert!(good, "{} {case:?}: {verdict:?}", info.name);
            }
        }
    }
}

/// Serves `requests` one at a time, after the holders have left, in a group that starts with the
/// holders of a case, or in a fresh one which they have just entered one after the other.
struct Serve {
    case: Case,
    fresh: bool,
    requests: Vec<NodeId>,
}

impl Task for Serve {
    /// How many messages each request cost.
    type Output = Vec<usize>;

    fn run<A: Algorithm>(self) -> Vec<usize> {
        let mut world = self.case.begin::<A>(self.fresh);
        for (node, _) in self.case.seats() {
            happen(&mut world, Choice::Release(node));
        }
        let mut serve = |node| {
            let asked = acquire(&mut world, node, Mode::Exclusive);
            asked + happen(&mut world, Choice::Release(node))
        };
        self.requests.into_iter().map(&mut serve).collect()
    }
}

#[test]
fn a_start_with_holders_is_as_if_they_had_just_entered() {
    for info in sound() {
        for case in [2, 3].into_iter().flat_map(|size| cases(info, size)) {
            for requests in sequences(case.size, 3) {
                let serve = |fresh| {
                    let task = Serve { case: case.clone(), fresh, requests: requests.clone() };
                    algorithms::with(info.name, task).unwrap()
                };
                assert_eq!(serve(false), serve(true), "{} {case:?} {requests:?}", info.name);
            }
        }
    }
}

/// Lets another node ask while the holders are inside.
struct Wait {
    case: Case,
    fresh: bool,
    asks: NodeId,
}

impl Task for Wait {
    /// The nodes inside before the first holder leaves, and after each holder has left.
    type Output = Vec<Vec<NodeId>>;

    fn run<A: Algorithm>(self) -> Vec<Vec<NodeId>> {
        let mut world = self.case.begin::<A>(self.fresh);
        request(&mut world, self.asks, Mode::Exclusive);
        let mut inside = vec![world.live_in(Phase::Inside)];
        for (node, _) in self.case.seats() {
            happen(&mut world, Choice::Release(node));
            inside.push(world.live_in(Phase::Inside));
        }
        inside
    }
}

#[test]
fn a_waiting_node_enters_when_the_holders_of_a_start_have_left() {
    for info in sound() {
        for case in [2, 3].into_iter().flat_map(|size| cases(info, size)) {
            let start = case.start();
            let others =
                (0..case.size).map(NodeId::at).filter(|node| start.holder(*node).is_none());
            for asks in others {
                let wait = |fresh| {
                    let task = Wait { case: case.clone(), fresh, asks };
                    algorithms::with(info.name, task).unwrap()
                };
                let inside = wait(false);
                assert_eq!(inside, wait(true), "{} {case:?} {asks}", info.name);
                assert_eq!(inside.last(), Some(&vec![asks]), "{} {case:?}", info.name);
            }
        }
    }
}

/// Lets a node enter; counts the messages sent.
fn acquire(world: &mut World, node: NodeId, mode: Mode) -> usize {
    let messages = request(world, node, mode);
    assert_eq!(world.nodes().member(node).phase(), Phase::Inside, "node {node}");
    messages
}

fn request(world: &mut World, node: NodeId, mode: Mode) -> usize {
    world.limits_mut().acquires[node.index()] = (1, mode);
    happen(world, Choice::Acquire(node, mode))
}

/// Makes one choice, delivers all messages that follow, and counts the messages sent.
fn happen(world: &mut World, choice: Choice) -> usize {
    assert!(world.choices().contains(&choice), "{choice:?} can happen");
    let step = world.apply(choice);
    assert_eq!(step.violation, None);
    step.sends.len() + settle(world)
}

/// Delivers what is under way, oldest first, and counts the messages sent. A token that circulates
/// forever is followed only for a while.
fn settle(world: &mut World) -> usize {
    let mut messages = 0;
    for _ in 0..100 {
        let oldest = world.under_way().min_by_key(|(_, letter)| letter.id);
        let Some((position, _)) = oldest else { break };
        let step = world.apply(Choice::Deliver(position));
        assert_eq!(step.violation, None);
        messages += step.sends.len();
    }
    messages
}

/// Every sequence of `length` nodes of a group.
fn sequences(size: usize, length: u32) -> Vec<Vec<NodeId>> {
    let digit = |number: usize, at: u32| NodeId::at(number / size.pow(at) % size);
    let sequence = |number| (0..length).map(|at| digit(number, at)).collect();
    (0..size.pow(length)).map(sequence).collect()
}

#[test]
fn an_impossible_start_is_refused() {
    let holder = |node, mode, permits| Holder { node: NodeId(node), mode, permits };
    let (alone, reader) =
        (|node| holder(node, Mode::Exclusive, 1), |node| holder(node, Mode::Shared, 1));
    let check = |info: &Info, shape: &Shape, holders: &[Holder], floor| {
        let group = info.group(3, shape).expect("small groups exist");
        Start { holders: holders.to_vec(), floor }.check(info, &group).is_ok()
    };
    let plain = Shape::default();
    let central = |holders: &[Holder]| check(&Central::INFO, &plain, holders, 0);
    assert!(central(&[]) && central(&[alone(2)]));
    assert!(!central(&[alone(3)]), "a stranger");
    assert!(!central(&[alone(1), alone(2)]), "two inside");
    assert!(!central(&[holder(1, Mode::Exclusive, 0)]), "inside with nothing");
    assert!(!central(&[reader(1)]), "a mode not served");

    let shared = |holders: &[Holder]| check(&ReadersWriters::INFO, &plain, holders, 0);
    assert!(shared(&[reader(0), reader(1), reader(2)]));
    assert!(!shared(&[reader(0), reader(0)]), "named twice");
    assert!(!shared(&[reader(0), alone(1)]), "a reader and a writer");

    let three = Shape { permits: Some(3), seats: Some(2), ..Shape::default() };
    let permits = |holders: &[(u32, u32)]| {
        let holders: Vec<_> = holders.iter().map(|h| holder(h.0, Mode::Exclusive, h.1)).collect();
        check(&RaymondK::INFO, &three, &holders, 0)
    };
    assert!(permits(&[(0, 2), (1, 1)]));
    assert!(!permits(&[(0, 3)]), "more than a node has seats");
    assert!(!permits(&[(0, 2), (1, 2)]), "more than there are permits");

    assert!(check(&Lamport::INFO, &plain, &[], CLOCK_LIMIT - 1));
    assert!(!check(&Lamport::INFO, &plain, &[], CLOCK_LIMIT));
}
