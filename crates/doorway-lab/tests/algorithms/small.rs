//! Exhaustive checks of every algorithm in small groups.

use std::sync::Arc;

use doorway_core::algorithms::{self, ALL, Task};
use doorway_core::{Algorithm, Channel, Info, Mode, Shape, Start};
use doorway_lab::check::{Check, Report, Verdict};
use doorway_lab::{AnyAlgorithm, FOREVER, Limits, World};

/// A group in which node i makes `asks[i].0` requests, in mode `asks[i].1`.
#[derive(Clone, Debug)]
struct Exhaust {
    asks: Vec<(u32, Mode)>,
    forgetting: bool,
    withdrawing: bool,
}

impl Exhaust {
    fn exclusive(asks: &[u32], forgetting: bool) -> Self {
        let asks = asks.iter().map(|times| (*times, Mode::Exclusive)).collect();
        Self { asks, forgetting, withdrawing: false }
    }
}

impl Task for Exhaust {
    type Output = Report;

    fn run<A: Algorithm>(self) -> Report {
        let group = A::INFO.group(self.asks.len(), &Shape::default()).expect("small groups exist");
        let group = Arc::new(group);
        let limits = Limits {
            acquires: self.asks,
            forgetting: self.forgetting,
            withdrawing: self.withdrawing,
            ..Limits::reliable(&group, 0)
        };
        let channel: Channel = A::INFO.channel;
        let world = World::new(AnyAlgorithm::of::<A>(), group, &Start::default(), channel, limits);
        Check::new(&world, 300_000).run()
    }
}

/// Check every world. Nothing must be violated.
#[track_caller]
fn holds(name: &str, task: &Exhaust) {
    let report = algorithms::with(name, task.clone()).expect("a name of the list");
    println!("{name} {task:?}: {report:?}");
    assert_eq!(report.verdict, Verdict::Holds, "{name} {task:?}");
}

/// The algorithms that are correct, or the one that `ONLY=relay cargo test ...` names.
fn sound() -> impl Iterator<Item = &'static Info> {
    let only = std::env::var("ONLY").ok();
    let chosen = move |info: &&Info| only.as_ref().is_none_or(|only| only == info.name);
    ALL.iter().map(|entry| &entry.info).filter(|info| info.refuted.is_none()).filter(chosen)
}

/// Algorithms that have too many worlds for a test if three nodes ask twice. Here the third node
/// does not ask.
const LARGE: [&str; 3] = ["lamport", "majority", "weighted-majority"];

/// Algorithms that have few enough worlds if two nodes of three ask and give up for ever. Only runs
/// without end show that a node starves because others ask and give up again and again.
const ENDLESS: [&str; 4] =
    ["ricart-agrawala", "ricart-agrawala-ring", "carvalho-roucairol", "readers-writers"];

#[test]
fn every_algorithm_is_safe_and_lets_all_nodes_in_at_small_size() {
    for Info { name, .. } in sound() {
        let most: &[u32] = if LARGE.contains(name) { &[2, 1, 0] } else { &[2, 2, 2] };
        for asks in [&[2][..], &[2, 2], &[1, 1, 1], most] {
            for forgetting in [false, true] {
                holds(name, &Exhaust::exclusive(asks, forgetting));
            }
        }
    }
}

#[test]
fn readers_are_let_in_together_and_writers_alone() {
    for Info { name, .. } in sound().filter(|info| info.shared) {
        let (reads, writes) = ((2, Mode::Shared), (2, Mode::Exclusive));
        for asks in [[reads, reads, writes], [reads, writes, writes], [reads, reads, reads]] {
            for forgetting in [false, true] {
                holds(name, &Exhaust { asks: asks.to_vec(), forgetting, withdrawing: false });
            }
        }
    }
}

/// Clients may give up at any time and ask again. Nobody else starves, and nothing is mistaken for
/// an answer to the new request.
#[test]
fn requests_can_be_withdrawn_where_that_is_declared() {
    for info in sound().filter(|info| info.withdraws) {
        let groups: &[&[u32]] = if LARGE.contains(&info.name) {
            &[&[2], &[2, 2], &[1, 1, 0]]
        } else {
            &[&[2], &[3, 3], &[1, 1, 1], &[2, 2, 1]]
        };
        // With permits, several requests of a node may have replies under way.
        let groups = if info.permits { &groups[..3] } else { groups };
        for asks in groups {
            for forgetting in [false, true] {
                let exclusive = Exhaust::exclusive(asks, forgetting);
                holds(info.name, &Exhaust { withdrawing: true, ..exclusive });
            }
        }
        if ENDLESS.contains(&info.name) {
            for asks in [&[FOREVER; 2][..], &[FOREVER, FOREVER, 0]] {
                let endless = Exhaust::exclusive(asks, false);
                holds(info.name, &Exhaust { withdrawing: true, ..endless });
            }
        }
        if info.shared {
            let (reads, writes) = (|times| (times, Mode::Shared), (1, Mode::Exclusive));
            for asks in [[reads(2), reads(1), writes], [reads(2), writes, writes]] {
                let asks = asks.to_vec();
                holds(info.name, &Exhaust { asks, forgetting: true, withdrawing: true });
            }
        }
    }
}
