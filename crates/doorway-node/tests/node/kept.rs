//! Locks that a program keeps until somebody else wants them, on a node alone and in a group.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use doorway_node::{AcquireError, Fence, KeptLock, Name, Node, RuleConfig};
use tokio::time::timeout;

use crate::common::{Scratch, group};

/// Longer than anything here may take, also on a busy machine.
const LONG: Duration = Duration::from_secs(30);

fn grants(node: &Node) -> u64 {
    node.counters().rules.iter().map(|rule| rule.counts.grants).sum()
}

fn is_free(node: &Node, name: &str) -> bool {
    node.clients_of(&Name::new(name).expect("a name")).is_none()
}

async fn enter(lock: &mut KeptLock) -> Fence {
    let guard = timeout(LONG, lock.lock()).await.expect("in time").expect("a grant");
    assert!(!guard.is_lost());
    guard.fence()
}

#[tokio::test]
async fn many_entries_take_one_grant_and_their_fences_grow() {
    let node = Node::alone();
    let mut orders = node.open("orders").unwrap().keep();
    let mut last = enter(&mut orders).await;
    for entry in 1..=3000 {
        let fence = enter(&mut orders).await;
        assert_eq!(fence, last.next().unwrap(), "entry {entry}");
        last = fence;
    }
    assert_eq!(grants(&node), 3, "a grant has a thousand numbers besides its fence");
    orders.give_back();
    let next = node.lock("orders").await.unwrap();
    assert!(next.fence() > last);
}

#[tokio::test]
async fn a_client_that_asks_gets_the_lock_at_once_if_it_is_not_used() {
    let node = Node::alone();
    let (mut orders, other) = (node.open("orders").unwrap().keep(), node.open("orders").unwrap());
    let first = enter(&mut orders).await;
    let second = timeout(LONG, other.lock()).await.expect("in time").unwrap();
    assert!(second.fence() > first);
    assert!(orders.try_lock().unwrap().is_none(), "it is not kept any more");
    drop(second);
    let third = enter(&mut orders).await;
    let tried = other.try_lock().unwrap().expect("it is kept, and not used");
    assert!(tried.fence() > third);
    drop(tried);
    assert!(enter(&mut orders).await > third);
}

#[tokio::test]
async fn a_client_that_asks_waits_for_the_guard() {
    let node = Node::alone();
    let (mut orders, other) = (node.open("orders").unwrap().keep(), node.open("orders").unwrap());
    enter(&mut orders).await;
    let guard = orders.lock().await.unwrap();
    assert!(other.try_lock().unwrap().is_none(), "it is used");
    let waiting = tokio::spawn(async move { other.lock_owned().await.unwrap().fence() });
    while node.counters().waiting == 0 {
        tokio::task::yield_now().await;
    }
    let fence = guard.fence();
    assert_eq!(guard.release(), Ok(()));
    assert!(timeout(LONG, waiting).await.expect("in time").unwrap() > fence);
}

#[tokio::test]
async fn the_lock_is_released_with_its_owner_and_after_a_forgotten_guard() {
    let node = Node::alone();
    let mut orders = node.open("orders").unwrap().keep();
    enter(&mut orders).await;
    drop(orders);
    assert!(is_free(&node, "orders"), "nobody holds it");
    let mut orders = node.open("orders").unwrap().keep();
    std::mem::forget(orders.lock().await.unwrap());
    assert!(node.try_lock("orders").unwrap().is_none(), "a forgotten guard is inside");
    enter(&mut orders).await;
    drop(node.lock("orders").await.unwrap());
    std::mem::forget(orders.lock().await.unwrap());
    drop(orders);
    drop(node.try_lock("orders").unwrap().expect("nobody holds it"));
}

#[tokio::test]
async fn after_a_stop_nobody_enters_again() {
    let node = Node::alone();
    let mut orders = node.open("orders").unwrap().keep();
    let mut used = node.open("used").unwrap().keep();
    enter(&mut orders).await;
    enter(&mut used).await;
    let guard = used.lock().await.unwrap();
    node.stop().await;
    guard.lost().await;
    assert!(guard.is_lost() && guard.release().is_err());
    for lock in [&mut orders, &mut used] {
        assert!(matches!(lock.lock().await, Err(AcquireError::Stopped)));
        assert!(matches!(lock.try_lock(), Err(AcquireError::Stopped)));
    }
}

#[tokio::test]
async fn a_task_that_enters_again_and_again_lets_other_tasks_run() {
    let node = Node::alone();
    let ran = Arc::new(AtomicU64::new(0));
    let other = Arc::clone(&ran);
    tokio::spawn(async move { other.store(1, Ordering::Relaxed) });
    let mut orders = node.open("orders").unwrap().keep();
    for _ in 0..10_000 {
        drop(orders.lock().await.unwrap());
    }
    assert_eq!(ran.load(Ordering::Relaxed), 1, "the other task has not run yet");
}

/// Threads that all keep one lock take it from each other in the middle of everything.
#[test]
fn threads_take_a_kept_lock_from_each_other() {
    const ENTRIES: u64 = 20_000;
    let node = Node::alone();
    let (inside, last) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let threads = [0, 1, 2].map(|_| {
        let mut orders = node.open("orders").unwrap().keep();
        let (inside, last) = (Arc::clone(&inside), Arc::clone(&last));
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
            runtime.unwrap().block_on(async {
                for entry in 0..ENTRIES {
                    let guard = timeout(LONG, orders.lock()).await.expect("in time").unwrap();
                    assert_eq!(inside.swap(1, Ordering::Relaxed), 0, "two are inside");
                    let before = last.swap(guard.fence().get(), Ordering::Relaxed);
                    assert!(before < guard.fence().get(), "a fence that does not grow");
                    inside.store(0, Ordering::Relaxed);
                    drop(guard);
                    if entry % 16 == 0 {
                        thread::yield_now();
                    }
                }
            });
        })
    });
    for thread in threads {
        thread.join().expect("no panic");
    }
    assert!(is_free(&node, "orders"), "all have given it back");
}

async fn start(size: usize, rules: &[RuleConfig]) -> (Scratch, Vec<Node>) {
    let (scratch, configs) = group(size, rules);
    let mut nodes = Vec::new();
    for config in configs {
        nodes.push(Node::start(config).await.expect("a node that starts"));
    }
    (scratch, nodes)
}

/// Two nodes keep the same lock, and it goes back and forth as each of them asks.
#[tokio::test]
async fn another_node_gets_the_lock_when_it_asks() {
    let (_scratch, nodes) = start(2, &[]).await;
    let mut locks = [0, 1].map(|node| nodes[node].open("orders").unwrap().keep());
    let mut last = enter(&mut locks[0]).await;
    for round in 0..20 {
        for lock in &mut locks {
            for _ in 0..3 {
                let fence = enter(lock).await;
                assert!(fence > last, "round {round}: {fence:?} after {last:?}");
                last = fence;
            }
        }
    }
    let entries = 1 + 20 * 2 * 3;
    assert!(nodes.iter().map(grants).sum::<u64>() < entries / 2, "most entries need no grant");
    nodes[0].stop().await;
}

/// A node learns of requests at other nodes only by algorithms that tell it.
#[tokio::test]
async fn a_lock_of_a_quorum_is_not_kept() {
    let rules = [RuleConfig::new("votes", "majority", 1), RuleConfig::new("slots", "raymond-k", 2)];
    let (_scratch, nodes) = start(3, &rules).await;
    for name in ["votes", "slots"] {
        let mut lock = nodes[0].open(name).unwrap().keep();
        enter(&mut lock).await;
        assert!(is_free(&nodes[0], name), "{name} was released");
    }
}
