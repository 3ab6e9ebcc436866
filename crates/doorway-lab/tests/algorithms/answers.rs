//! The answers of `Member::wanted` and `Member::floor`: does another node wait for this one, and
//! may this node be forgotten?

use std::sync::Arc;

use doorway_core::algorithms::{self, ALL, Task};
use doorway_core::quorums::Kind;
use doorway_core::{Algorithm, Effects, Info, Member, Mode, Needs, NodeId, Phase, Shape, Start};
use doorway_lab::simulate::Dice;
use doorway_lab::{AnyAlgorithm, Limits, World};

fn sound() -> impl Iterator<Item = &'static Info> {
    ALL.iter().map(|entry| &entry.info).filter(|info| info.refuted.is_none())
}

/// Shapes for groups of four: every number of permits with which a node may have to wait, and one
/// quorum per node, so that no node has to remember which of its quorums is next.
fn shapes(info: &Info) -> Vec<Shape> {
    let permits = |permits| Shape { permits: Some(permits), ..Shape::default() };
    let quorums = (info.needs == Needs::Quorums).then_some(Kind::Grid);
    if info.permits {
        vec![permits(1), permits(2), permits(3)]
    } else {
        vec![Shape { quorums: quorums.map(Into::into), ..Shape::default() }]
    }
}

/// Check worlds of four nodes that each ask twice, under random schedules.
fn worlds<A: Algorithm>(check: impl Fn(&World)) {
    for shape in shapes(&A::INFO) {
        let group = Arc::new(A::INFO.group(4, &shape).expect("a group of four"));
        for seed in 0..100 {
            let mut limits = Limits::reliable(&group, 2);
            if A::INFO.shared {
                limits.acquires[1].1 = Mode::Shared;
                limits.acquires[2].1 = Mode::Shared;
            }
            let start = Start::default();
            let mut world =
                World::new(AnyAlgorithm::of::<A>(), group.clone(), &start, A::INFO.channel, limits);
            let mut dice = Dice::new(seed);
            // A token that circulates forever is followed only for a while.
            for _ in 0..1000 {
                let choices = world.choices();
                if choices.is_empty() {
                    break;
                }
                assert_eq!(world.apply(choices[dice.below(choices.len())]).violation, None);
                check(&world);
            }
        }
    }
}

fn is_quiet(world: &World) -> bool {
    world.under_way().next().is_none()
}

/// The algorithms in which the node inside learns of every request, and so knows when no node
/// waits.
const KNOWING: [&str; 12] = [
    "carvalho-roucairol",
    "lamport",
    "majority",
    "naimi-trehel",
    "raymond-echo",
    "raymond-k",
    "raymond-tree",
    "readers-writers",
    "ricart-agrawala",
    "ricart-agrawala-ring",
    "ricart-agrawala-token",
    "suzuki-kasami",
];

/// Can this node, while inside, know that no node waits? A coordinator can. With several permits, a
/// node that asked this one may have got another permit.
fn can_know(info: &Info, permits: u32, node: NodeId) -> bool {
    let coordinates = info.name == "central" && node == NodeId(0);
    coordinates || KNOWING.contains(&info.name) && permits == 1
}

struct WantedCheck;

impl Task for WantedCheck {
    type Output = ();

    fn run<A: Algorithm>(self) {
        worlds::<A>(|world| {
            // While a request is under way, both answers are right.
            if !is_quiet(world) {
                return;
            }
            for node in world.live_in(Phase::Inside) {
                let waits = !world.live_in(Phase::Waiting).is_empty();
                let wanted = world.nodes().member(node).wanted();
                assert!(wanted || !waits, "{}: {node} is wanted: {world:?}", A::INFO.name);
                let right = wanted == waits || !can_know(&A::INFO, world.group().permits(), node);
                assert!(right, "{}: nobody wants {node}: {world:?}", A::INFO.name);
            }
        });
    }
}

#[test]
fn a_node_inside_knows_whether_another_waits_for_it() {
    for info in sound() {
        algorithms::with(info.name, WantedCheck);
    }
}

/// The algorithms whose state, while all nodes are idle, matters only for one number.
const FORGETTING: [&str; 15] = [
    "carvalho-roucairol",
    "central",
    "lamport",
    "maekawa",
    "maekawa-cyclic",
    "maekawa-eager",
    "maekawa-heir",
    "maekawa-sequential",
    "maekawa-unordered",
    "majority",
    "raymond-k",
    "readers-writers",
    "ricart-agrawala",
    "ricart-agrawala-ring",
    "weighted-majority",
];

/// The algorithms that keep permissions for the next entry, which are worth remembering besides a
/// number.
const REMEMBERING: &str = "carvalho-roucairol";

struct ForgetCheck;

impl Task for ForgetCheck {
    type Output = ();

    fn run<A: Algorithm>(self) {
        worlds::<A>(|world| {
            let idle = world.live_in(Phase::Outside).len() == world.group().size() as usize;
            if !idle || !is_quiet(world) {
                return;
            }
            for node in world.group().nodes() {
                let member = world.nodes().member(node);
                let floor = member.floor().expect("it may be forgotten");
                let start = Start { holders: Vec::new(), floor };
                let mut out = Effects::default();
                let fresh = Member::<A>::begin(node, world.group(), &start, &mut out);
                let fresh = fresh.expect("the contract is kept");
                assert!(out.sends().is_empty(), "{fresh:?}");
                assert!(
                    *member.algorithm::<A>() == *fresh.algorithm() || A::INFO.name == REMEMBERING,
                    "{member:?} {fresh:?}"
                );
            }
        });
    }
}

/// Other tests check that forgetting does no harm. This one checks that it is possible, and that a
/// node that may be forgotten keeps nothing that no longer matters.
#[test]
fn idle_nodes_may_be_forgotten() {
    for info in sound().filter(|info| FORGETTING.contains(&info.name)) {
        algorithms::with(info.name, ForgetCheck);
    }
}
