//! The library on a node without peers: everything that a program can do with locks.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use doorway_node::{AcquireError, Config, Handle, Node, OwnedGuard, RuleConfig};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};

fn rule(pattern: &str, algorithm: &str, permits: u32) -> RuleConfig {
    RuleConfig::new(pattern, algorithm, permits)
}

async fn start() -> Node {
    let rules = vec![rule("files/*", "readers-writers", 1), rule("slots", "raymond-k", 3)];
    Node::start(Config { rules, ..Config::default() }).await.expect("a good configuration")
}

/// Poll a future once, with a waker that does nothing.
fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn one_at_a_time_with_growing_fences() {
    let node = Node::alone();
    let first = node.lock("orders").await.unwrap();
    let mut second = pin!(node.lock("orders"));
    assert!(poll(second.as_mut()).is_pending());
    let other = node.lock("invoices").await.unwrap();
    let fence = first.fence();
    drop(first);
    let second = second.await.unwrap();
    assert!(second.fence() > fence, "{:?} after {fence:?}", second.fence());
    drop((second, other));
}

#[tokio::test]
async fn a_task_that_enters_again_and_again_lets_other_tasks_run() {
    let node = Node::alone();
    let ran = Arc::new(AtomicUsize::new(0));
    let other = Arc::clone(&ran);
    tokio::spawn(async move { other.store(1, Ordering::Relaxed) });
    for _ in 0..10_000 {
        drop(node.lock("orders").await.unwrap());
    }
    assert_eq!(ran.load(Ordering::Relaxed), 1, "the other task has not run yet");
}

#[tokio::test]
async fn a_handle_names_its_algorithm() {
    let node = start().await;
    let served = ["files/a", "slots", "orders"].map(|name| node.open(name).unwrap());
    let algorithms = served.each_ref().map(Handle::algorithm);
    assert_eq!(algorithms, ["readers-writers", "raymond-k", "carvalho-roucairol"]);
    assert_eq!(served.each_ref().map(Handle::serves_shared), [true, false, false]);
}

#[tokio::test]
async fn readers_share_and_writers_do_not() {
    let node = start().await;
    let file = node.open("files/a").unwrap();
    let (one, two) = (file.lock().shared().await.unwrap(), file.lock().shared().await.unwrap());
    let mut writer = pin!(file.lock());
    assert!(poll(writer.as_mut()).is_pending());
    let mut late = pin!(file.lock().shared());
    assert!(poll(late.as_mut()).is_pending(), "a reader does not pass a waiting writer");
    let fences = one.fence().max(two.fence());
    drop((one, two));
    let writer = writer.await.unwrap();
    assert!(writer.fence() > fences);
    let fence = writer.fence();
    drop(writer);
    assert!(late.await.unwrap().fence() > fence);
}

#[tokio::test]
async fn a_shared_request_for_an_exclusive_lock_is_an_error() {
    let error = Node::alone().lock("orders").shared().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "`orders` cannot be shared: its algorithm, carvalho-roucairol, serves exclusive locks only"
    );
}

#[tokio::test]
async fn as_many_clients_enter_as_there_are_permits() {
    let node = start().await;
    let slots = node.open("slots").unwrap();
    let mut inside = Vec::new();
    for _ in 0..3 {
        inside.push(slots.lock().await.unwrap());
    }
    let mut fourth = pin!(slots.lock());
    assert!(poll(fourth.as_mut()).is_pending());
    inside.pop();
    inside.push(fourth.await.unwrap());
    let mut fences: Vec<u64> = inside.iter().map(|guard| guard.fence().get()).collect();
    fences.sort_unstable();
    fences.dedup();
    assert_eq!(fences.len(), 3, "the fences of permits are unique");
}

#[tokio::test]
async fn trying_never_waits() {
    let node = Node::alone();
    let orders = node.open("orders").unwrap();
    let guard = orders.try_lock().unwrap().expect("nobody else is there");
    assert!(orders.try_lock().unwrap().is_none());
    drop(guard);
    assert!(node.try_lock("orders").unwrap().is_some());
    let file = start().await.open("files/a").unwrap();
    let reader = file.lock().shared().try_now().unwrap();
    assert!(reader.is_some() && file.lock().shared().try_now().unwrap().is_some());
    assert!(file.try_lock().unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn deadlines_end_the_wait_and_leave_nothing() {
    let node = Node::alone();
    let orders = node.open("orders").unwrap();
    let guard = orders.lock().await.unwrap();
    let late = orders.lock().within(Duration::from_millis(20)).await;
    assert_eq!(late.unwrap_err(), AcquireError::TimedOut);
    let never = orders.lock().within(Duration::ZERO).await;
    assert_eq!(never.unwrap_err(), AcquireError::TimedOut);
    drop(guard);
    let forever = orders.lock().within(Duration::MAX).await;
    assert!(forever.is_ok(), "a deadline too far away to come");
}

#[tokio::test]
async fn invalid_names_are_refused() {
    let node = Node::alone();
    let said = |error: AcquireError| error.to_string();
    assert!(said(node.lock("").await.unwrap_err()).contains("must not be empty"));
    assert!(said(node.lock("a\nb").await.unwrap_err()).contains("'\\n'"));
    assert!(said(node.lock(&"x".repeat(201)).await.unwrap_err()).contains("200 bytes, not 201"));
    assert!(node.lock_all(&["good", ""]).await.is_err());
    assert!(node.try_lock("good").unwrap().is_some(), "nothing was taken before the mistake");
}

#[tokio::test]
async fn several_locks_are_taken_in_one_order() {
    let node = Arc::new(Node::alone());
    let tasks = (0..8).map(|task| {
        let node = Arc::clone(&node);
        tokio::spawn(async move {
            for _ in 0..200 {
                let names = if task % 2 == 0 { ["a", "b", "c"] } else { ["c", "a", "b"] };
                let guards = node.lock_all(&names).await.unwrap();
                assert_eq!(guards.len(), 3);
                tokio::task::yield_now().await;
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert_eq!(node.lock_all(&["a", "a"]).await.unwrap().len(), 1, "a name given twice is one");
}

/// A caller that gives up half-way leaves nothing behind: neither the locks that it has already nor
/// its place in a queue.
#[tokio::test]
async fn several_locks_given_up_half_way_are_all_free() {
    let node = Node::alone();
    let second = node.lock("b").await.unwrap();
    {
        let mut all = pin!(node.lock_all(&["a", "b", "c"]));
        assert!(poll(all.as_mut()).is_pending());
        assert!(node.try_lock("a").unwrap().is_none(), "the first one is held");
        assert!(node.try_lock("c").unwrap().is_some(), "the third one is not asked for yet");
        assert_eq!(node.counters().waiting, 1);
    }
    assert!(node.try_lock("a").unwrap().is_some());
    assert_eq!(node.counters().waiting, 0);
    drop(second);
    assert!(node.try_lock("b").unwrap().is_some(), "nobody waits for it any more");
}

#[tokio::test]
async fn a_stopped_node_has_lost_its_locks() {
    let node = Node::alone();
    let orders = node.open("orders").unwrap();
    let guard = orders.lock().await.unwrap();
    let mut waiting = pin!(orders.lock());
    assert!(poll(waiting.as_mut()).is_pending());
    assert!(!guard.is_lost());
    {
        let mut lost = pin!(guard.lost());
        assert!(poll(lost.as_mut()).is_pending());
        node.stop().await;
        lost.await;
    }
    assert!(guard.is_lost());
    assert!(guard.release().is_err());
    assert_eq!(waiting.await.unwrap_err(), AcquireError::Stopped);
    assert_eq!(orders.lock().await.unwrap_err(), AcquireError::Stopped);
}

#[tokio::test]
async fn requests_beyond_the_limit_are_refused() {
    let node = Node::start(Config { outstanding: 2, ..Config::default() }).await.unwrap();
    let orders = node.open("orders").unwrap();
    let guard = orders.lock().await.unwrap();
    let (mut one, mut two) = (pin!(orders.lock()), pin!(orders.lock()));
    assert!(poll(one.as_mut()).is_pending() && poll(two.as_mut()).is_pending());
    assert_eq!(orders.lock().await.unwrap_err(), AcquireError::Busy(2));
    drop(guard);
    drop(one.await.unwrap());
    assert!(two.await.is_ok(), "the one that was refused is not in the queue");
}

#[tokio::test]
async fn a_guard_keeps_its_node_running() {
    let guard = Node::alone().lock("orders").await.unwrap();
    assert!(!guard.is_lost());
    assert_eq!(guard.release(), Ok(()));
}

/// A request that is dropped at any stage leaves the lock to others.
#[tokio::test]
async fn a_request_can_be_dropped_at_every_moment() {
    let node = Node::alone();
    let orders = node.open("orders").unwrap();
    drop(orders.lock()); // Before it was polled.
    let guard = orders.lock().await.unwrap();
    {
        let mut waiting = pin!(orders.lock());
        assert!(poll(waiting.as_mut()).is_pending());
    } // While it waits.
    {
        let mut granted = pin!(orders.lock());
        assert!(poll(granted.as_mut()).is_pending());
        drop(guard);
    } // After the grant, before it was polled again.
    assert!(orders.try_lock().unwrap().is_some());
}

#[test]
fn guards_and_requests_go_between_threads() {
    fn send<T: Send + 'static>() {}
    send::<OwnedGuard>();
    send::<doorway_node::Acquire<Handle>>();
    send::<Node>();
}

/// Tasks on two threads begin a million requests and drop them at random times. No two are ever
/// inside together, and in the end nothing is held or left in a queue.
#[test]
fn a_million_requests_dropped_at_random_leave_nothing() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let node = Node::alone();
    let inside: Arc<[AtomicUsize; 4]> = Arc::default();
    runtime.block_on(async {
        let tasks: Vec<_> = (0..8)
            .map(|seed| tokio::spawn(drop_many(node.clone(), Arc::clone(&inside), seed)))
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    for name in NAMES {
        assert!(node.try_lock(name).unwrap().is_some(), "{name} is still held");
    }
    let counters = node.counters();
    assert_eq!(counters.waiting, 0);
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

async fn drop_many(node: Node, inside: Arc<[AtomicUsize; 4]>, seed: u64) {
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let handles: Vec<Handle> = NAMES.iter().map(|name| node.open(name).expect("a name")).collect();
    for _ in 0..125_000 {
        let roll = dice.next_u32();
        let at = (roll & 3) as usize;
        let mut request = Box::pin(handles[at].lock_owned());
        if roll & 4 == 0 && poll(request.as_mut()).is_ready() {
            continue; // It entered, and left again at once.
        }
        if roll & 8 == 0 {
            tokio::task::yield_now().await;
            continue;
        }
        if roll & 0xf0 != 0 {
            continue;
        }
        let guard = request.await.expect("a lock that comes free");
        assert_eq!(inside[at].fetch_add(1, Ordering::SeqCst), 0, "two inside");
        tokio::task::yield_now().await;
        inside[at].fetch_sub(1, Ordering::SeqCst);
        drop(guard);
    }
}

#[tokio::test]
async fn everyone_who_watches_a_lock_hears_of_its_loss() {
    let node = Node::alone();
    let guard = Arc::new(node.lock("orders").await.unwrap());
    let watchers: Vec<_> = (0..20)
        .map(|_| {
            let guard = Arc::clone(&guard);
            tokio::spawn(async move { guard.lost().await })
        })
        .collect();
    tokio::task::yield_now().await;
    node.stop().await;
    for watcher in watchers {
        watcher.await.unwrap();
    }
    assert_eq!(node.try_lock("orders").unwrap_err(), AcquireError::Stopped);
}

/// Outside a runtime there is no timer. The panic that says so leaves no client in the queue.
#[test]
fn a_deadline_without_a_runtime_leaves_nothing() {
    let node = Node::alone();
    let orders = node.open("orders").unwrap();
    let guard = orders.try_lock().unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        poll(pin!(orders.lock().within(Duration::from_secs(1)))).is_pending()
    }));
    assert!(panicked.is_err());
    drop(guard);
    assert!(orders.try_lock().unwrap().is_some());
    assert_eq!(node.counters().waiting, 0);
}

/// A task that owns a lock, and is kept alive only by the waker that another lock has of it.
struct Task(#[expect(dead_code, reason = "it is owned, not used")] OwnedGuard);

impl std::task::Wake for Task {
    fn wake(self: Arc<Self>) {}
}

/// If the last reference to a task is a waker, its locks are released when the waker is dropped.
#[test]
fn a_waker_may_own_a_lock_of_the_same_shard() {
    let node = Node::alone();
    let orders = node.open("orders").unwrap();
    let guard = orders.try_lock().unwrap().unwrap();
    // With this many names, some are in the same shard as the first.
    for number in 0..400 {
        let owned = node.try_lock(&format!("{number}")).unwrap().unwrap();
        let waker = Waker::from(Arc::new(Task(owned)));
        let polled = pin!(guard.lost()).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
    }
    drop(guard);
    for number in 0..400 {
        assert!(node.try_lock(&format!("{number}")).unwrap().is_some());
    }
}
