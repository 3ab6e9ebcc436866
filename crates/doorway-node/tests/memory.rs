//! What a node costs in memory: nothing for a re-entry, and nothing for requests that are gone.
//!
//! There is one test in this file, for the allocator is counted in the whole process.

use std::alloc::System;
use std::task::{Context, Poll, Waker};

use doorway_node::{Handle, Node};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

mod common;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn re_entries_allocate_nothing_and_requests_leave_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let alone = Node::alone();
        re_enter(&alone.open("orders").expect("a name")).await;
        drop_requests(&alone.open("orders").expect("a name")).await;
        let (_scratch, configs) = common::group(3, &[]);
        let nodes = common::start(&configs).await;
        re_enter(&nodes[1].open("orders").expect("a name")).await;
    });
}

/// Nothing here ever waits, so nothing else runs on this thread meanwhile.
async fn re_enter(lock: &Handle) {
    drop(lock.lock().await.expect("a lock")); // Now the permission is here.
    drop(lock.lock().await.expect("a lock"));
    let region = Region::new(ALLOCATOR);
    for _ in 0..10_000 {
        drop(lock.lock().await.expect("a lock"));
        drop(lock.try_lock().expect("a lock").expect("nobody else"));
    }
    // A few belong to other threads of the process; of ours there would be ten thousand.
    let allocations = region.change().allocations;
    assert!(allocations < 10, "{allocations} allocations");
}

/// A million requests are made and dropped while they wait, or when they are granted.
async fn drop_requests(lock: &Handle) {
    let mut guard = Some(lock.lock().await.expect("a lock"));
    let mut round = |requests: usize| {
        for request in 0..requests {
            let mut waiting = std::pin::pin!(lock.lock());
            let polled = waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(polled, Poll::Pending) == guard.is_some());
            if request % 3 == 0 {
                guard = None;
            } else if guard.is_none()
                && let Ok(again) = lock.try_lock()
            {
                guard = again;
            }
        }
    };
    round(1000);
    let region = Region::new(ALLOCATOR);
    round(1_000_000);
    let change = region.change();
    let left = change.bytes_allocated.abs_diff(change.bytes_deallocated);
    assert!(left < 1000, "{left} bytes are left");
}
