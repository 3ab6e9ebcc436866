//! The memory that a node uses: nothing for a re-entry, and nothing for requests and locks that are
//! gone.
//!
//! There is one test in this file, because allocations are counted for the whole process.

use std::alloc::System;
use std::task::{Context, Waker};

use doorway_node::{Config, Handle, Node};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::task::unconstrained;

mod common;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn re_entries_allocate_nothing_and_requests_leave_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let alone = Node::alone();
        re_enter(&alone.open("orders").expect("a name")).await;
        // Poll by hand, without yielding the thread.
        unconstrained(drop_requests(&alone.open("orders").expect("a name"))).await;
        many_locks().await;
        let (_scratch, configs) = common::group(3, &[]);
        let nodes = common::start(&configs).await;
        re_enter(&nodes[1].open("orders").expect("a name")).await;
    });
}

/// Nothing here ever waits, but the task yields now and then.
async fn re_enter(lock: &Handle) {
    drop(lock.lock().await.expect("a lock")); // From now on the permission is at this node.
    drop(lock.lock().await.expect("a lock"));
    let region = Region::new(ALLOCATOR);
    for _ in 0..10_000 {
        drop(lock.lock().await.expect("a lock"));
        drop(lock.try_lock().expect("a lock").expect("nobody else"));
    }
    // A few allocations belong to other threads of the process. If re-entries allocated, there
    // would be ten thousand.
    let allocations = region.change().allocations;
    assert!(allocations < 10, "{allocations} allocations");
}

/// A million requests are made and dropped: a third while they wait, a third after the grant but
/// before they were polled, and a third inside.
async fn drop_requests(lock: &Handle) {
    let mut guard = Some(lock.lock().await.expect("a lock"));
    let mut round = |requests: usize| {
        let mut waited = 0;
        for request in 0..requests {
            let mut asking = std::pin::pin!(lock.lock());
            let entered = asking.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            waited += usize::from(entered.is_pending());
            assert_eq!(entered.is_pending(), guard.is_some());
            drop(entered); // Leave, if it was inside.
            match request % 3 {
                0 => {}
                1 => guard = None,
                _ => guard = lock.try_lock().expect("a lock that is served"),
            }
        }
        waited
    };
    round(999);
    let region = Region::new(ALLOCATOR);
    let waited = round(999_999);
    let change = region.change();
    assert_eq!(waited, 666_666, "two of three had to wait");
    let left = change.bytes_allocated.abs_diff(change.bytes_deallocated);
    assert!(left < 1000, "{left} bytes are left");
}

/// Many locks are held at once, and after their release few are left in memory. Those, and one that
/// is held all the time, may have been moved and must still work.
async fn many_locks() {
    const MANY: usize = 50_000;
    let config = Config { keep_idle: 256, ..Config::default() };
    let node = Node::start(config).await.expect("a node");
    let lock = |number: usize| node.lock(&format!("orders/{number}"));
    drop(lock(0).await.expect("a lock"));
    let region = Region::new(ALLOCATOR);
    let mut guards = Vec::new();
    for number in 0..MANY {
        guards.push(lock(number).await.expect("a lock"));
    }
    let held = guards.pop().expect("the last one");
    drop(guards);
    let change = region.change();
    let left = change.bytes_allocated.abs_diff(change.bytes_deallocated);
    assert!(left < 1_000_000, "{left} bytes are left");
    let fence = held.fence();
    for number in 0..MANY {
        let name = format!("orders/{number}");
        let inside = node.try_lock(&name).expect("a lock that is served");
        assert_eq!(inside.is_some(), number < MANY - 1, "{name}");
    }
    drop(held);
    assert!(lock(MANY - 1).await.expect("a lock").fence() > fence);
}
