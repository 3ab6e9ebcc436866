//! Locks of three real nodes whose connections are cut, delayed and silenced all the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use doorway_node::{AcquireError, Config, Handle, Node};
use parking_lot::Mutex;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

mod spoiler;

use crate::common::book::Book;
use crate::common::visit::{Visit, assert_fair};
use crate::common::{group, rule, start};
use spoiler::{Tally, spoil};

/// Two algorithms that ask for permissions, and two whose token must never be lost.
const ALGORITHMS: [&str; 4] = ["carvalho-roucairol", "maekawa", "suzuki-kasami", "naimi-trehel"];

/// A timeout that is longer than anything here takes.
const LONG: Duration = Duration::from_mins(1);

/// Put a proxy that spoils connections in front of every node.
async fn stand_between(configs: &mut [Config], tally: &Arc<Tally>) -> JoinSet<()> {
    let mut spoilers = JoinSet::new();
    for dials in 0..configs.len() {
        for dialled in dials + 1..configs.len() {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            let through = listener.local_addr().expect("an address").to_string();
            let member = &mut configs[dials].members[dialled];
            let target = std::mem::replace(&mut member.address, through);
            let seed = (10 * dials + dialled) as u64;
            spoilers.spawn(spoil(listener, target, Arc::clone(tally), seed));
        }
    }
    spoilers
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let wait = async {
        while !is_so() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    assert!(timeout(LONG, wait).await.is_ok(), "it never came about that {what}");
}

/// Enter a lock again and again, sometimes with a deadline, until told to stop.
async fn work(handle: Handle, client: u64, book: Arc<Mutex<Book>>, enough: Arc<AtomicBool>) {
    let mut dice = ChaCha8Rng::seed_from_u64(client);
    while !enough.load(Ordering::SeqCst) {
        let roll = dice.next_u32();
        let mut request = handle.lock_owned();
        if roll.is_multiple_of(8) {
            request = request.within(Duration::from_millis(u64::from(roll >> 8) % 50));
        }
        match request.await {
            Ok(guard) => {
                let _visit = Visit::begin(&book, client, guard, false, 1);
                if roll & 0xf0 == 0 {
                    sleep(Duration::from_millis(1)).await;
                } else {
                    tokio::task::yield_now().await;
                }
            }
            Err(error) => assert_eq!(error, AcquireError::TimedOut),
        }
    }
}

/// The messages of all algorithms that were sent and received.
fn messages(nodes: &[Node]) -> (u64, u64) {
    let rules = nodes.iter().flat_map(|node| node.counters().rules);
    rules.fold((0, 0), |(sent, received), rule| {
        (sent + rule.counts.sent, received + rule.counts.received)
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_are_passed_on_over_connections_that_break() {
    let (_scratch, mut configs) = group(3, &ALGORITHMS.map(|algorithm| rule(algorithm, 1)));
    let tally: Arc<Tally> = Arc::default();
    let spoilers = stand_between(&mut configs, &tally).await;
    for config in &mut configs {
        (config.heartbeat, config.silence) =
            (Duration::from_millis(20), Duration::from_millis(200));
        config.handovers = 1; // Make locks move from node to node.
    }
    let nodes = start(&configs).await;
    until("a view runs", || nodes.iter().all(|node| node.counters().view.is_some())).await;
    let view = nodes[0].counters().view;
    let (book, enough): (Arc<Mutex<Book>>, Arc<AtomicBool>) = Default::default();
    let mut clients = JoinSet::new();
    for (node, algorithm) in nodes.iter().flat_map(|node| ALGORITHMS.map(|name| (node, name))) {
        for _ in 0..2 {
            let handle = node.open(&format!("{algorithm}/x")).expect("a name");
            let number = clients.len() as u64;
            clients.spawn(work(handle, number, Arc::clone(&book), Arc::clone(&enough)));
        }
    }
    let done = || {
        let count = |count: &std::sync::atomic::AtomicUsize| count.load(Ordering::SeqCst);
        (count(&tally.cut), count(&tally.late), count(&tally.mute))
    };
    until("enough was spoiled", || {
        let (cut, late, mute) = done();
        cut >= 20 && late >= 15 && mute >= 8
    })
    .await;
    let entries = || book.lock().entries;
    let amid = entries();
    tally.peace.store(true, Ordering::SeqCst);
    until("all go on", || entries() > amid + 1000).await;
    enough.store(true, Ordering::SeqCst);
    let all = timeout(LONG, clients.join_all()).await;
    assert!(all.is_ok(), "a request has no end");
    for (node, algorithm) in nodes.iter().flat_map(|node| ALGORITHMS.map(|name| (node, name))) {
        let last = node.lock(&format!("{algorithm}/x")).within(LONG).await;
        assert!(last.is_ok(), "{algorithm} at {node:?}: {last:?}");
    }
    // Each message has arrived exactly once, and the first view is still running.
    until("all has arrived", || messages(&nodes).0 == messages(&nodes).1).await;
    assert!(nodes.iter().all(|node| node.counters().view == view), "a cut is not a restart");
    println!("{amid} entries, and (cut, late, mute) were {:?}", done());
    assert!(amid > 1000, "there was no load: {amid} entries");
    assert_fair(&book);
    drop(spoilers);
}
