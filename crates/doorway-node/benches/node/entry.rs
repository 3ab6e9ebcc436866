//! Locks whose permission is already at this node.

use std::hint::black_box;
use std::time::Instant;

use doorway_node::{Handle, Node};
use parking_lot::Mutex;
use stats_alloc::Region;
use tokio::task::{JoinSet, yield_now};

use crate::shared::pin::Placement;
use crate::shared::samples::Samples;
use crate::shared::table::{Row, Table, progress};
use crate::{ALGORITHMS, ALLOCATOR, Extent, group, handover};

/// How many tasks run, with one lock each.
const TASKS: usize = 8;

/// How many pairs a task makes before it yields.
const STRETCH: usize = 256;

pub(crate) fn measure(extent: Extent, table: &mut Table) {
    progress("entries that need no message");
    let [mut mutex, mut alone, mut kept, mut three] = [const { Samples::NONE }; 4];
    let (mut allocations, mut messages) = (0.0, 0.0);
    for _ in 0..extent.rounds {
        mutex.extend(mutexes(extent));
        let (times, more) = one_node(extent);
        alone.extend(times);
        allocations += more;
        kept.extend(kept_lock(extent));
        let (times, more) = three_nodes(extent);
        three.extend(times);
        messages += more;
    }
    let bare = mutex.median();
    table.add(Row::of("lock + unlock, parking_lot::Mutex").times(mutex));
    let row = Row::of("lock + unlock, one node").times(alone).allocations(allocations);
    table.add(row.against("a mutex", bare).goal("300 ns"));
    let row = Row::of("lock + unlock, one node, kept lock").times(kept);
    table.add(row.against("a mutex", bare).goal("100 ns"));
    let row = Row::of("lock + unlock, 3 nodes, permission here").times(three).messages(messages);
    table.add(row.against("a mutex", bare).goal("300 ns"));
    for (threads, word) in [(1, "1 thread"), (2, "2 threads")] {
        // Take the best of several turns, because everything else that runs slows them down.
        let turns = (0..extent.rounds).map(|_| eight_tasks(extent, threads));
        let row = Row::of(&format!("{TASKS} tasks on {TASKS} locks, {word}"));
        table.add(row.per_second(turns.fold(0.0, f64::max)));
    }
}

fn mutexes(extent: Extent) -> Samples {
    let thread = Placement::OneCore.spawn(0, move |_| {
        let mutex = Mutex::new(0_u64);
        let mut samples = Samples::default();
        let begun = Instant::now();
        while begun.elapsed() < extent.turn {
            let batch = Instant::now();
            for _ in 0..extent.batch {
                *black_box(&mutex).lock() += 1;
            }
            samples.push_each(batch.elapsed(), extent.batch);
        }
        samples
    });
    thread.join().unwrap()
}

/// Enter and leave for one turn.
async fn pairs(extent: Extent, mut pair: impl AsyncFnMut()) -> Samples {
    let mut samples = Samples::default();
    let begun = Instant::now();
    while begun.elapsed() < extent.turn {
        let batch = Instant::now();
        for _ in 0..extent.batch {
            pair().await;
        }
        samples.push_each(batch.elapsed(), extent.batch);
    }
    samples
}

/// Enter and leave once.
async fn pair(handle: &Handle) {
    drop(handle.lock().await.unwrap());
}

/// The times, and how many allocations a pair makes.
fn one_node(extent: Extent) -> (Samples, f64) {
    const PAIRS: u32 = 10_000;
    let thread = Placement::OneCore.spawn(0, move |runtime| {
        runtime.block_on(async {
            let handle = Node::alone().open("orders").unwrap();
            let samples = pairs(extent, async || pair(&handle).await).await;
            let region = Region::new(ALLOCATOR);
            for _ in 0..PAIRS {
                pair(&handle).await;
            }
            (samples, region.change().allocations as f64 / f64::from(PAIRS))
        })
    });
    thread.join().unwrap()
}

/// The lock is kept, and nobody else wants it.
fn kept_lock(extent: Extent) -> Samples {
    let thread = Placement::OneCore.spawn(0, move |runtime| {
        runtime.block_on(async {
            let mut lock = Node::alone().open("orders").unwrap().keep();
            pairs(extent, async || drop(lock.lock().await.unwrap())).await
        })
    });
    thread.join().unwrap()
}

/// The first of three nodes has the permission, and no other node wants the lock.
fn three_nodes(extent: Extent) -> (Samples, f64) {
    let parts = group::run(Placement::OneCore, ALGORITHMS[0], move |me, node| async move {
        if me > 0 {
            return None;
        }
        let handle = node.open("orders").unwrap();
        pair(&handle).await;
        let (sent, granted) = handover::counted(&node);
        let samples = pairs(extent, async || pair(&handle).await).await;
        let (sent_now, granted_now) = handover::counted(&node);
        Some((samples, (sent_now - sent) as f64 / (granted_now - granted) as f64))
    });
    parts.into_iter().flatten().next().unwrap()
}

/// Pairs per second of tasks that do not contend with each other.
fn eight_tasks(extent: Extent, threads: usize) -> f64 {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(threads).build().unwrap();
    runtime.block_on(async {
        let node = Node::alone();
        let begun = Instant::now();
        let mut tasks = JoinSet::new();
        for task in 0..TASKS {
            let handle = node.open(&format!("orders/{task}")).unwrap();
            tasks.spawn(async move {
                let mut pairs = 0;
                while begun.elapsed() < extent.turn {
                    for _ in 0..STRETCH {
                        pair(&handle).await;
                    }
                    pairs += STRETCH;
                    yield_now().await;
                }
                pairs
            });
        }
        let pairs: usize = tasks.join_all().await.into_iter().sum();
        pairs as f64 / begun.elapsed().as_secs_f64()
    })
}
