//! Locks that pass from node to node.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use doorway_node::Node;
use tokio::sync::Notify;
use tokio::task::yield_now;

use crate::group::{self, SIZE};
use crate::shared::baton::{Baton, Load};
use crate::shared::pin::Placement;
use crate::shared::samples::Samples;
use crate::{ALGORITHMS, Extent};

const NAME: &str = "orders";

/// How long a node holds a lock until all other nodes that should wait surely do.
const HOLD: Duration = Duration::from_micros(100);

/// The result of clients that all want the same lock all the time.
#[derive(Default)]
pub(crate) struct Traffic {
    pub(crate) load: Load,
    /// Messages and grants of the nodes, including the warm-up.
    sent: u64,
    granted: u64,
}

impl Traffic {
    pub(crate) fn add(&mut self, other: Self) {
        self.load.add(other.load);
        self.sent += other.sent;
        self.granted += other.granted;
    }

    pub(crate) fn messages_per_grant(&self) -> f64 {
        self.sent as f64 / self.granted as f64
    }
}

/// Messages sent and grants made by a node.
pub(crate) fn counted(node: &Node) -> (u64, u64) {
    let rules = node.counters().rules;
    let sum = |(sent, grants), (more, entries)| (sent + more, grants + entries);
    rules.iter().map(|rule| (rule.counts.sent, rule.counts.grants)).fold((0, 0), sum)
}

/// One client at each node acquires the lock, releases it at once, and asks again as soon as
/// another client has it. So a client always waits, and every grant goes to another node.
pub(crate) fn under_load(extent: Extent, placement: Placement, algorithm: &str) -> Traffic {
    let baton = Arc::new(OnceLock::new());
    let all = Arc::clone(&baton);
    let parts = group::run(placement, algorithm, move |client, node| {
        let baton = Arc::clone(&all);
        async move {
            let handle = node.open(NAME).unwrap();
            let baton = baton.get_or_init(|| Baton::new(extent.turn));
            loop {
                let guard = handle.lock().await.unwrap();
                baton.entered(client);
                baton.leaves();
                drop(guard);
                if !baton.passed(client).await {
                    break counted(&node);
                }
            }
        }
    });
    let load = baton.get().map(|baton| Load::of(baton, extent.turn)).unwrap_or_default();
    let sum = |(sent, granted): (u64, u64), part: (u64, u64)| (sent + part.0, granted + part.1);
    let (sent, granted) = parts.into_iter().fold((0, 0), sum);
    Traffic { load, sent, granted }
}

/// One hand-over at a time: the client inside tells the next node to ask, and releases when that
/// request has long arrived and nothing else happens.
pub(crate) fn one_by_one(extent: Extent, placement: Placement) -> Samples {
    let baton = Arc::new(OnceLock::new());
    let (all, turns) = (Arc::clone(&baton), Arc::<[Notify; SIZE]>::default());
    turns[0].notify_one();
    group::run(placement, ALGORITHMS[0], move |me, node| {
        let (baton, turns) = (Arc::clone(&all), Arc::clone(&turns));
        async move {
            let handle = node.open(NAME).unwrap();
            let baton = baton.get_or_init(|| Baton::new(extent.turn));
            while !baton.is_over() {
                turns[me].notified().await;
                let guard = handle.lock().await.unwrap();
                baton.entered(me);
                turns[(me + 1) % SIZE].notify_one();
                let begun = Instant::now();
                while begun.elapsed() < HOLD {
                    // Let this node work, and the nodes on the same core.
                    yield_now().await;
                    std::thread::yield_now();
                }
                baton.leaves();
                drop(guard);
            }
            turns[(me + 1) % SIZE].notify_one();
        }
    });
    baton.get().map(Baton::delays).unwrap_or_default()
}

/// The nodes take turns, so that no client waits and the permission is always at another node.
pub(crate) fn first_acquires(extent: Extent, placement: Placement) -> Samples {
    // All stop at the same time: otherwise the turns of the rest would go to nodes that have left.
    let (turns, end) = (Arc::<[Notify; SIZE]>::default(), Arc::new(OnceLock::new()));
    turns[0].notify_one();
    let parts = group::run(placement, ALGORITHMS[0], move |me, node| {
        let (turns, end) = (Arc::clone(&turns), Arc::clone(&end));
        async move {
            let handle = node.open(NAME).unwrap();
            let mut samples = Samples::default();
            let end = *end.get_or_init(|| Instant::now() + extent.turn);
            while Instant::now() < end {
                turns[me].notified().await;
                let asked = Instant::now();
                let guard = handle.lock().await.unwrap();
                samples.push(asked.elapsed());
                drop(guard);
                turns[(me + 1) % SIZE].notify_one();
            }
            // Clients that still wait for a turn get it, so that they see that time is over.
            turns[(me + 1) % SIZE].notify_one();
            samples
        }
    });
    let mut samples = Samples::default();
    for part in parts {
        samples.extend(part);
    }
    samples
}
