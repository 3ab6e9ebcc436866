//! The papers' claims about messages per entry, for every algorithm: how many there are, which
//! request they are charged to, and which nodes receive them.

use std::collections::BTreeSet;
use std::sync::Arc;

use doorway_core::algorithms::{self, ALL, Task};
use doorway_core::quorums::Kind;
use doorway_core::{Algorithm, Group, Mode, Needs, NodeId, Per, Shape, Start};
use doorway_lab::simulate::{self, Arrival, Delay, Distribution, Report, Workload};
use doorway_lab::{AnyAlgorithm, Choice, Limits, World};

use crate::listed::listed;

/// A run, and the group it ran on.
fn run(
    name: &str,
    size: usize,
    workload: Workload,
    (delay, inside, entries): (Distribution, f64, u64),
) -> (Report, Arc<Group>) {
    let mut group = None;
    let run = simulate::run(name, size, &Shape::default(), |options| {
        options.workload = workload;
        options.delay = Delay::Distribution(delay);
        options.inside = Distribution::Constant(inside);
        options.entries = entries;
        group = Some(options.group.clone());
    });
    let (report, _) = run.expect("a run");
    assert_eq!(report.entries, entries, "{name} n={size}: {:?}", report.violation);
    (report, group.expect("a run has a group"))
}

fn closed(think: f64) -> Workload {
    Workload::Closed { think: Distribution::Exponential(think) }
}

fn serial() -> Workload {
    Workload::Serial { pause: Distribution::Constant(1_000.0) }
}

#[test]
fn entries_cost_what_the_papers_claim() {
    let mut failures = Vec::new();
    for entry in ALL.iter().filter(|entry| entry.info.refuted.is_none()) {
        for size in [1, 2, 3, 5, 8, 16] {
            let loads = [serial(), closed(0.0), closed(3.0), closed(size as f64), closed(500.0)];
            for workload in loads {
                let label = format!("{} n={size} {workload:?}", entry.info.name);
                let usual = (Distribution::Exponential(1.0), 0.5, 300);
                let (report, group) = run(entry.info.name, size, workload, usual);
                let claim = entry.info.messages;
                let (least, most) = ((claim.least.of)(&group), (claim.most.of)(&group));
                let (low, high) = match claim.per {
                    Per::Entry => (report.messages_min.into(), report.messages_max.into()),
                    Per::Run => (report.messages_per_entry, report.messages_per_entry),
                };
                let within = low >= least - 1e-9 && high <= most + 1e-9;
                if !within {
                    failures.push(format!("{label}: {low} to {high}, claimed {least} to {most}"));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn light_load_costs_the_formula() {
    let mut failures = Vec::new();
    for entry in ALL.iter().filter(|entry| entry.info.refuted.is_none()) {
        let Some(formula) = entry.info.messages.light else { continue };
        for size in [2, 7, 12] {
            let usual = (Distribution::Constant(1.0), 0.5, 20_000);
            let (report, group) = run(entry.info.name, size, serial(), usual);
            let (mean, expected) = (report.messages_per_entry, (formula.of)(&group));
            let near = (mean - expected).abs() <= 0.02 * expected + 1e-9;
            if !near {
                failures.push(format!("{} n={size}: {mean}, claimed {expected}", entry.info.name));
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn heavy_load_costs_the_formula() {
    let mut failures = Vec::new();
    for entry in ALL.iter().filter(|entry| entry.info.refuted.is_none()) {
        let Some(formula) = entry.info.messages.heavy else { continue };
        for size in [5, 12, 30] {
            let workload = Workload::Closed { think: Distribution::Constant(size as f64 / 2.0) };
            let usual = (Distribution::Uniform(0.5, 1.5), 0.1, 20_000);
            let (report, group) = run(entry.info.name, size, workload, usual);
            let (mean, expected) = (report.messages_per_entry, (formula.of)(&group));
            let near = (mean - expected).abs() <= 0.03 * expected + 1e-9;
            if !near {
                failures.push(format!("{} n={size}: {mean}, claimed {expected}", entry.info.name));
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// The cost of the cheaper and of the dearer of two entries.
const TWO: [(&str, u32, u32); 19] = [
    ("carvalho-roucairol", 8, 8),
    ("central", 3, 3),
    ("lamport", 12, 12),
    ("maekawa", 3, 7), // Quorums of two and of three, and one FAILED.
    ("maekawa-cyclic", 3, 5),
    ("maekawa-eager", 3, 6),
    ("maekawa-heir", 3, 7),
    ("maekawa-sequential", 3, 6),
    ("maekawa-unordered", 3, 6),
    ("majority", 12, 12),
    ("naimi-trehel", 2, 3),
    ("raymond-k", 8, 8),
    ("raymond-tree", 2, 4),
    ("readers-writers", 8, 8),
    ("ricart-agrawala", 8, 8),
    ("ricart-agrawala-ring", 5, 5),
    ("ricart-agrawala-token", 5, 5),
    ("suzuki-kasami", 5, 5),
    ("weighted-majority", 12, 12),
];

/// Node 2 of 5 is inside when node 3 asks. The messages that then let node 3 in are charged to node
/// 3, although node 2 sends them when it leaves.
#[test]
fn the_waiting_node_pays_for_the_messages_that_let_it_in() {
    for (name, least, most) in TWO.into_iter().filter(|(name, ..)| listed(name)) {
        let arrivals = vec![Arrival::new(0.0, NodeId(1)), Arrival::new(50.0, NodeId(2))];
        let usual = (Distribution::Constant(1.0), 100.0, 2);
        let (report, _) = run(name, 5, Workload::Scripted(arrivals), usual);
        assert_eq!((report.messages_min, report.messages_max), (least, most), "{name}");
    }
}

/// Only node 2 asks, again and again, in a group in which each node has several quorums.
struct SoloRun;

impl Task for SoloRun {
    type Output = ();

    fn run<A: Algorithm>(self) {
        const ME: NodeId = NodeId(1);
        let shape = Shape { quorums: Some(Kind::Triangle.into()), ..Shape::default() };
        let group = Arc::new(A::INFO.group(6, &shape).expect("a triangle of six"));
        assert_ne!(group.quorum(ME, 0), group.quorum(ME, 1));
        let limits = Limits::reliable(&group, 2 * group.turns());
        let mut world = World::new(
            AnyAlgorithm::of::<A>(),
            group.clone(),
            &Start::default(),
            A::INFO.channel,
            limits,
        );
        for turn in 0..2 * group.turns() {
            let mut asked = BTreeSet::new();
            for choice in [Choice::Acquire(ME, Mode::Exclusive), Choice::Release(ME)] {
                let mut next = Some(choice);
                while let Some(choice) = next {
                    let step = world.apply(choice);
                    assert_eq!(step.violation, None);
                    asked.extend(step.sends.iter().map(|(to, _)| *to));
                    next = world.under_way().next().map(|(position, _)| Choice::Deliver(position));
                }
            }
            asked.remove(&ME);
            let others = group.quorum(ME, turn).iter().filter(|member| **member != ME).copied();
            assert_eq!(asked, others.collect(), "{}, request {}", A::INFO.name, turn + 1);
        }
    }
}

/// Nodes may have several quorums, so that the load is even. Then each request goes to the next
/// quorum, and no other node receives a message.
#[test]
fn requests_go_to_the_quorums_in_turn() {
    for entry in ALL.iter().filter(|entry| entry.info.needs == Needs::Quorums) {
        algorithms::with(entry.info.name, SoloRun).expect("a name of the list");
    }
}
