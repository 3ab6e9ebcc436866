//! Every algorithm under thousands of random schedules, timed and untimed. The same seed gives the
//! same run.

use std::sync::Arc;

use doorway_core::algorithms::{self, ALL, Task};
use doorway_core::{Algorithm, Mode, Phase, Shape, Start};
use doorway_lab::random::wander;
use doorway_lab::simulate::{self, Delay, Dice, Distribution, Workload};
use doorway_lab::{AnyAlgorithm, Limits, Trace, World};

fn sound() -> impl Iterator<Item = &'static str> {
    ALL.iter().filter(|entry| entry.info.refuted.is_none()).map(|entry| entry.info.name)
}

/// All shapes with which an algorithm has a group of five.
fn shapes<A: Algorithm>() -> Vec<Shape> {
    use doorway_core::tree::TreeShape::{Chain, Star};
    use doorway_core::{Needs, Wiring, quorums::Kind};
    let shape = Shape::default;
    let mut shapes = match A::INFO.needs {
        Needs::Quorums => {
            let kinds = Kind::ALL.iter().filter(|kind| **kind != Kind::ProjectivePlane);
            kinds.map(|kind| Shape { quorums: Some((*kind).into()), ..shape() }).collect()
        }
        Needs::Tree => {
            vec![
                shape(),
                Shape { tree: Some(Chain), ..shape() },
                Shape { tree: Some(Star), ..shape() },
            ]
        }
        Needs::Wiring => [Wiring::Mesh, Wiring::Ring, Wiring::Tree]
            .map(|wiring| Shape { wiring: Some(wiring), ..shape() })
            .into(),
        Needs::Weights => vec![shape(), Shape { weights: Some(vec![3, 1, 1, 0, 2]), ..shape() }],
        Needs::Graph => {
            let all = (0..5).map(doorway_core::NodeId).collect();
            let mesh = doorway_core::Graph::mesh(5).expect("a mesh of five nodes");
            vec![shape(), Shape { graph: Some(mesh), initiators: Some(all), ..shape() }]
        }
        Needs::Nothing => vec![shape()],
    };
    if A::INFO.permits {
        let permits = |k, s| Shape { permits: Some(k), seats: Some(s), ..shape() };
        shapes.extend([permits(2, 1), permits(4, 1), permits(5, 1), permits(3, 3), permits(8, 2)]);
    }
    shapes
}

#[derive(Default)]
struct Wander {
    seeds: std::ops::Range<u64>,
    forgetting: bool,
    withdrawing: bool,
}

impl Task for Wander {
    type Output = ();

    fn run<A: Algorithm>(self) {
        for shape in shapes::<A>() {
            let group = Arc::new(A::INFO.group(5, &shape).expect("a group of five"));
            for seed in self.seeds.clone() {
                let mut limits = Limits::reliable(&group, 3);
                (limits.forgetting, limits.withdrawing) = (self.forgetting, self.withdrawing);
                if A::INFO.shared {
                    limits.acquires[0].1 = Mode::Shared;
                    limits.acquires[3].1 = Mode::Shared;
                }
                let channel = A::INFO.channel;
                let mut world = World::new(
                    AnyAlgorithm::of::<A>(),
                    group.clone(),
                    &Start::default(),
                    channel,
                    limits,
                );
                let done = wander(&mut world, &mut Dice::new(seed), 100_000);
                let name = A::INFO.name;
                assert!(done.is_ok(), "{name} with {shape:?}, seed {seed}: {done:?}");
                assert!(done.is_ok_and(|steps| steps < 100_000), "{name}, seed {seed}: endless");
                assert_eq!(world.wishes(), 0);
                assert!(world.live_in(Phase::Waiting).is_empty());
            }
        }
    }
}

#[test]
fn random_schedules_let_all_nodes_in_one_at_a_time() {
    for name in sound() {
        algorithms::with(name, Wander { seeds: 0..1000, ..Wander::default() });
    }
}

#[test]
fn forgetting_at_random_does_no_harm() {
    for name in sound() {
        algorithms::with(name, Wander { seeds: 1000..1300, forgetting: true, withdrawing: false });
    }
}

/// The algorithms that can withdraw a request.
fn withdrawing() -> impl Iterator<Item = &'static str> {
    let withdraws = |entry: &&algorithms::Entry| entry.info.withdraws;
    ALL.iter().filter(withdraws).map(|entry| entry.info.name)
}

#[test]
fn giving_up_at_random_does_no_harm() {
    for name in withdrawing() {
        algorithms::with(name, Wander { seeds: 0..300, forgetting: true, withdrawing: true });
    }
}

#[test]
fn timed_runs_in_which_clients_give_up_violate_nothing() {
    for name in withdrawing() {
        for (size, seed) in (2..=16).zip(100..) {
            let run = simulate::run(name, size, &Shape::default(), |options| {
                options.delay = Delay::Distribution(Distribution::Exponential(1.0));
                options.workload = Workload::Closed { think: Distribution::Exponential(5.0) };
                (options.seed, options.entries, options.withdraw) = (seed, 500, 0.5);
            });
            let (report, _) = run.expect("a run");
            assert_eq!(report.violation, None, "{name} n={size} seed {seed}");
            assert_eq!(report.entries, 500, "{name} n={size} seed {seed}");
            assert!(report.withdrawn > 5, "{name} n={size} seed {seed}: {}", report.withdrawn);
        }
    }
}

/// Runs a seed to its end and returns its trace.
fn traced(name: &str, size: usize, seed: u64, entries: u64) -> Trace {
    let run = simulate::run(name, size, &Shape::default(), |options| {
        options.delay = Delay::Distribution(Distribution::Exponential(1.0));
        options.workload = Workload::Closed { think: Distribution::Exponential(5.0) };
        (options.seed, options.entries, options.trace) = (seed, entries, 1_000_000);
    });
    let (report, trace) = run.expect("a run");
    assert_eq!(report.violation, None, "{name} n={size} seed {seed}");
    assert_eq!(report.entries, entries, "{name} n={size} seed {seed}");
    trace
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_seed_another() {
    for name in sound() {
        let run = |seed| traced(name, 9, seed, 60);
        let first = run(17);
        assert_eq!(first, run(17), "{name}");
        assert_ne!(first, run(18), "{name}");
    }
}

#[test]
fn timed_runs_of_many_sizes_violate_nothing() {
    for name in sound() {
        for (size, seed) in (1..=24).zip(100..) {
            traced(name, size, seed, 300);
        }
    }
}
