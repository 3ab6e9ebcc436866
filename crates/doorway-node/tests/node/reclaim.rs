//! A node whose process was killed starts again, and its former holders reclaim their locks.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use doorway_node::{Config, Fence, Mode, Node, OnLost, OwnedGuard, ReclaimError};
use tokio::runtime::Runtime;
use tokio::time::sleep;

use crate::common::{Scratch, group, rule};

const PATIENCE: Duration = Duration::from_secs(30);

/// Wait until a condition holds, with a timeout.
async fn until(what: &str, is: impl Fn() -> bool) {
    for _ in 0..3000 {
        if is() {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("timed out waiting until {what}");
}

/// End a node as a kill of its process would, as far as the others can tell: all links are cut at
/// once. Only its clients know what they held.
fn kill(runtime: Runtime, node: Node, guard: OwnedGuard) -> Fence {
    drop(runtime);
    let fence = guard.fence();
    drop((guard, node));
    fence
}

/// The configuration of a node without peers that was killed while a client held a lock.
fn alone(scratch: &Scratch) -> Config {
    let rules = vec![rule("readers-writers", 1), rule("raymond-k", 2)];
    Config { data: Some(scratch.path().join("node")), rules, ..Config::default() }
}

#[tokio::test]
async fn a_node_alone_grants_nothing_until_it_serves() {
    let scratch = Scratch::new();
    let node = Node::start(alone(&scratch)).await.unwrap();
    let fence = node.lock("orders").await.unwrap().fence();
    drop(node);
    let node = Node::start_reclaiming(alone(&scratch)).await.unwrap();
    assert!(node.is_reclaiming());
    assert!(node.try_lock("stock").unwrap().is_none());
    assert_eq!(node.why("orders").await.unwrap().reclaiming, ["node"]);
    let queued = tokio::spawn(node.lock("orders").within(PATIENCE));
    until("a client queues", || node.counters().waiting == 1).await;
    let session = node.session();
    let guard = node.reclaim("orders", Mode::Exclusive, fence, session).unwrap();
    assert_eq!((guard.fence(), guard.is_lost()), (fence, false));
    let holders = node.why("orders").await.unwrap().holders;
    assert_eq!((holders[0].fence, holders[0].session), (Some(fence), Some(session.number())));
    node.serve();
    node.serve();
    assert!(!node.is_reclaiming() && !guard.is_lost());
    assert!(node.try_lock("stock").unwrap().is_some());
    assert!(!queued.is_finished() && node.counters().waiting == 1);
    assert_eq!(guard.release(), Ok(()));
    assert!(queued.await.unwrap().unwrap().fence() > fence);
    let late = node.reclaim("orders", Mode::Exclusive, fence, session);
    assert!(matches!(late, Err(ReclaimError::TooLate)));
}

#[tokio::test]
async fn claims_that_cannot_be_true_are_refused() {
    let scratch = Scratch::new();
    Node::start(alone(&scratch)).await.unwrap().stop().await;
    let node = Node::start_reclaiming(alone(&scratch)).await.unwrap();
    let session = node.session();
    let reclaim = |name: &str, mode, clock| node.reclaim(name, mode, Fence::new(1, clock), session);
    let taken =
        |result: Result<OwnedGuard, ReclaimError>| matches!(result, Err(ReclaimError::Taken(_)));
    let _one = reclaim("orders", Mode::Exclusive, 1).unwrap();
    assert!(taken(reclaim("orders", Mode::Exclusive, 2)));
    let shared = "readers-writers/x";
    let _readers = [1, 2].map(|clock| reclaim(shared, Mode::Shared, clock).unwrap());
    assert!(taken(reclaim(shared, Mode::Exclusive, 3)));
    assert!(taken(reclaim(shared, Mode::Shared, 2)), "nobody else has this fence");
    let _permits = [1, 2].map(|clock| reclaim("raymond-k/x", Mode::Exclusive, clock).unwrap());
    assert!(taken(reclaim("raymond-k/x", Mode::Exclusive, 3)));
    let error = reclaim("orders2", Mode::Shared, 1).unwrap_err();
    assert!(error.to_string().contains("`orders2` cannot have been shared"), "{error}");
    assert!(matches!(reclaim("", Mode::Shared, 1), Err(ReclaimError::Name(_))));
    // The view that is about to begin has the number 2.
    let future = node.reclaim("stock", Mode::Exclusive, Fence::new(2, 0), session).unwrap_err();
    assert_eq!(future, ReclaimError::Future { fence: Fence::new(2, 0), next: 2 });
    // A client that leaves before the node serves makes room.
    drop(reclaim("again", Mode::Exclusive, 1).unwrap());
    drop(reclaim("again", Mode::Exclusive, 2).unwrap());
    // The refused claims have left nothing behind.
    node.serve();
    assert!(node.try_lock("stock").unwrap().is_some());
    assert!(node.try_lock("orders").unwrap().is_none());
    assert_eq!(
        node.locks("", None, 10, |_| true).iter().map(|lock| lock.inside.len()).sum::<usize>(),
        5
    );
}

#[test]
fn others_go_on_while_a_member_waits_for_its_former_holders() {
    let (_scratch, configs) = group(3, &[]);
    let (runtime, victim) = (Runtime::new().unwrap(), Runtime::new().unwrap());
    let first = victim.block_on(Node::start(configs[0].clone())).unwrap();
    let start = |at: usize| runtime.block_on(Node::start(configs[at].clone())).unwrap();
    let others = [start(1), start(2)];
    let guard = runtime.block_on(first.lock("orders").within(PATIENCE)).unwrap();
    // The permission to enter this lock again is at the second node.
    drop(runtime.block_on(others[0].lock("stock").within(PATIENCE)).unwrap());
    let fence = kill(victim, first, guard);
    runtime.block_on(goes_on(&configs[0], &others, fence));
}

async fn goes_on(config: &Config, others: &[Node; 2], fence: Fence) {
    let first = Node::start_reclaiming(config.clone()).await.expect("a start");
    until("links are up", || others.iter().chain([&first]).all(|node| node.away().is_empty()))
        .await;
    assert!(others[0].try_lock("stock").expect("a name").is_some(), "the old view still runs");
    assert_eq!(others[0].why("orders").await.expect("a name").reclaiming, ["n1"]);
    let ask = |node: &Node| {
        let request = node.lock("orders").within(PATIENCE);
        tokio::spawn(async move { request.await.map(|guard| guard.fence()) })
    };
    let waiting = [ask(&others[0]), ask(&others[1]), ask(&first)];
    let session = first.session();
    let reclaim = |fence| first.reclaim("orders", Mode::Exclusive, fence, session);
    let ahead = Fence::new(4, 0);
    let refused = reclaim(ahead).expect_err("no view had this number");
    assert_eq!(refused, ReclaimError::Future { fence: ahead, next: 4 });
    let guard = reclaim(fence).expect("it was inside");
    assert_eq!(first.counters().view, None);
    first.serve();
    let all = || others.iter().chain([&first]);
    until("the next view", || all().all(|node| node.counters().view == Some(4))).await;
    sleep(Duration::from_millis(50)).await;
    assert!(waiting.iter().all(|waiting| !waiting.is_finished()) && !guard.is_lost());
    let why = others[1].why("orders").await.expect("a name");
    assert_eq!((why.holders.len(), why.holders[0].fence), (1, Some(fence)));
    assert!(why.reclaiming.is_empty());
    assert_eq!(guard.release(), Ok(()));
    let mut fences = vec![fence];
    for waiting in waiting {
        fences.push(waiting.await.expect("no panic").expect("a lock"));
    }
    assert!(fences[1..].iter().all(|later| *later > fence), "{fences:?}");
    fences.sort_unstable();
    fences.dedup();
    assert_eq!(fences.len(), 4);
}

/// As long as the epochs of the other members are unknown, the node cannot know which fences were
/// ever granted.
#[tokio::test]
async fn a_fence_that_was_never_granted_is_found_out_in_the_end() {
    let (_scratch, mut configs) = group(2, &[]);
    let lost = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&lost);
    configs[0].on_lost = Some(OnLost::new(move |session, lock, fence| {
        told.lock().unwrap().push((session, lock.to_string(), fence));
    }));
    let first = Node::start_reclaiming(configs[0].clone()).await.unwrap();
    let session = first.session();
    let claim = |name: &str, view| {
        first.reclaim(name, Mode::Exclusive, Fence::new(view, 1), session).unwrap()
    };
    let (past, future) = (claim("orders", 1), claim("stock", 2));
    first.serve();
    let second = Node::start(configs[1].clone()).await.unwrap();
    until("a view", || second.counters().view == Some(2)).await;
    assert_eq!((past.is_lost(), future.is_lost()), (false, true));
    assert!(second.lock("stock").within(PATIENCE).await.is_ok());
    let by = |lock: &str, guard: &OwnedGuard| (session.number(), lock.to_owned(), guard.fence());
    assert_eq!(lost.lock().unwrap().split_off(0), [by("stock", &future)]);
    let _nobody = first.lock("others").within(PATIENCE).await.unwrap();
    first.stop().await;
    // Each session is told once. Claims without a session are not reported.
    assert_eq!(*lost.lock().unwrap(), [by("orders", &past)]);
}

/// The directory is a copy: another process has already told the others its epoch.
#[tokio::test]
async fn an_epoch_that_others_know_already_is_not_used_again() {
    let (scratch, configs) = group(2, &[]);
    let nodes = crate::common::start(&configs).await;
    drop(nodes[0].lock("orders").within(PATIENCE).await.unwrap());
    nodes[0].stop().await;
    std::fs::remove_file(scratch.path().join("n1/epoch")).unwrap();
    let again = Node::start_reclaiming(configs[0].clone()).await.unwrap();
    until("links are up", || again.away().is_empty()).await;
    again.serve();
    assert!(again.lock("orders").within(PATIENCE).await.unwrap().fence().view() > 2);
}

#[tokio::test]
async fn the_first_epoch_is_never_below_what_was_configured() {
    let scratch = Scratch::new();
    let data = scratch.path().join("node");
    let view = async |first_epoch| {
        let config = Config { data: Some(data.clone()), first_epoch, ..Config::default() };
        let node = Node::start(config).await.unwrap();
        let view = node.lock("orders").await.unwrap().fence().view();
        node.stop().await;
        view
    };
    assert_eq!([view(0).await, view(1000).await, view(1000).await], [1, 1000, 1001]);
    std::fs::remove_dir_all(&data).unwrap();
    assert_eq!([view(2000).await, view(5).await], [2000, 2001]);
    let full = Config { first_epoch: Fence::VIEW_LIMIT, ..Config::default() };
    assert!(Node::start(full).await.is_err());
}
