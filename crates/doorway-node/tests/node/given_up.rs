//! Clients of three real nodes that give up at any time: by dropping the request, by a deadline, or
//! with their task. They leave nothing behind at any node, also if a member is away.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use doorway_node::locks::{LockCounters, served};
use doorway_node::{AcquireError, Config, Handle, Node, RuleConfig};
use parking_lot::Mutex;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};
use tokio::runtime::Runtime;
use tokio::task::{JoinSet, yield_now};
use tokio::time::{sleep, timeout};

use crate::common::book::Book;
use crate::common::visit::{Visit, assert_fair};
use crate::common::{group, rule, start};

/// A timeout that is longer than anything here takes.
const LONG: Duration = Duration::from_mins(1);

/// How many clients may be inside a lock with permits.
const PERMITS: u32 = 2;

fn permits(algorithm: &str) -> u32 {
    if algorithm == "raymond-k" { PERMITS } else { 1 }
}

fn rules() -> Vec<RuleConfig> {
    served().into_iter().map(|algorithm| rule(algorithm, permits(algorithm))).collect()
}

/// Poll a future, with a waker that does nothing.
fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// A client, and the record of its visits.
struct Client {
    number: u64,
    dice: ChaCha8Rng,
    book: Arc<Mutex<Book>>,
}

impl Client {
    fn roll(&mut self, sides: u32) -> u32 {
        self.dice.next_u32() % sides
    }

    /// A duration from zero to a few times what a lock takes to come from another node.
    fn moment(&mut self) -> Duration {
        Duration::from_micros(u64::from(self.roll(1 << 11)))
    }

    /// Request locks, and mostly give up.
    async fn run(mut self, handles: Vec<Handle>, requests: u32) {
        for _ in 0..requests {
            let at = self.roll(handles.len() as u32) as usize;
            self.ask(&handles[at]).await;
        }
    }

    /// Make a request, and give up in one of the possible ways, or enter.
    async fn ask(&mut self, handle: &Handle) {
        let shares = handle.serves_shared() && self.roll(2) == 0;
        let permits = permits(handle.algorithm()) as usize;
        let mut request = handle.lock_owned();
        if shares {
            request = request.shared();
        }
        let (number, book) = (self.number, Arc::clone(&self.book));
        let visit = move |guard| Visit::begin(&book, number, guard, shares, permits);
        match self.roll(6) {
            0 => {
                // If it is granted, the grant is never polled.
                let polled = poll_once(&mut request);
                let _visit = polled.map_ok(visit);
                for _ in 0..self.roll(4) {
                    yield_now().await;
                }
            }
            1 => {
                let ended = request.within(self.moment()).await.map(visit);
                assert!(!ended.is_err_and(|error| error != AcquireError::TimedOut));
            }
            2 | 3 => {
                let entered = timeout(self.moment(), request).await;
                let _visit = entered.map(|entered| visit(entered.expect("no other end")));
            }
            4 => {
                // It may be waiting, just inside, or about to leave.
                let task = tokio::spawn(async move {
                    let _visit = visit(request.await.expect("no other end"));
                    sleep(Duration::from_micros(100)).await;
                });
                sleep(self.moment()).await;
                task.abort();
                let ended = task.await;
                assert!(!ended.is_err_and(|error| error.is_panic()));
            }
            _ => {
                let _visit = visit(request.await.expect("no other end"));
                yield_now().await;
            }
        }
    }
}

/// Let clients at every node request these locks, this many times each.
async fn crowd(nodes: &[Node], names: &[String], clients: u64, requests: u32) {
    let book: Arc<Mutex<Book>> = Arc::default();
    let mut crowd = JoinSet::new();
    for (node, number) in nodes.iter().cycle().zip(0..clients * nodes.len() as u64) {
        let open = |name: &String| node.open(name).expect("a name");
        let handles = names.iter().map(open).collect();
        let dice = ChaCha8Rng::seed_from_u64(number);
        let client = Client { number, dice, book: Arc::clone(&book) };
        crowd.spawn(client.run(handles, requests));
    }
    assert!(timeout(LONG, crowd.join_all()).await.is_ok(), "a request has no end");
    println!("{} entries", book.lock().entries);
    assert_fair(&book);
    for node in nodes {
        assert_eq!(node.counters().waiting, 0, "{node:?}");
    }
}

/// The counts of all algorithms at one node.
pub(crate) fn counts(node: &Node) -> LockCounters {
    let mut sum = LockCounters::default();
    node.counters().rules.into_iter().for_each(|rule| sum += rule.counts);
    sum
}

/// Wait until no message is under way: as many have arrived as were sent.
pub(crate) async fn settle(nodes: &[Node]) {
    let under_way = || {
        let total = |count: fn(&LockCounters) -> u64| -> u64 {
            nodes.iter().map(|node| count(&counts(node))).sum()
        };
        total(|counts| counts.sent) != total(|counts| counts.received)
    };
    let wait = async {
        while under_way() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    assert!(timeout(LONG, wait).await.is_ok(), "messages are under way for ever");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_given_up_at_any_moment_leave_every_lock_free() {
    let (_scratch, configs) = group(3, &rules());
    let nodes = start(&configs).await;
    let names: Vec<String> = served().iter().map(|algorithm| format!("{algorithm}/x")).collect();
    crowd(&nodes, &names, 8, 500).await;
    settle(&nodes).await;
    for name in &names {
        // Unwanted grants have been released, and no client is left.
        let why = nodes[0].open(name).expect("a name").why().await;
        let left = (&why.holders, &why.waiters, &why.elsewhere, &why.silent);
        assert!(left == (&vec![], &vec![], &vec![], &vec![]), "{name}: {left:?}");
        for node in &nodes {
            let last = node.lock(name).within(LONG).await;
            assert!(last.is_ok(), "{name} at {node:?}: {last:?}");
        }
    }
}

/// A request that was given up is still answered, and then its lock can be forgotten.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_were_given_up_are_forgotten() {
    let (_scratch, configs) = group(3, &[]);
    let brief = |config: Config| Config { keep_idle: 64, ..config };
    let nodes = start(&configs.into_iter().map(brief).collect::<Vec<_>>()).await;
    for round in 0..10 {
        let names: Vec<String> = (0..200).map(|name| format!("{round}/{name}")).collect();
        crowd(&nodes, &names, 4, 200).await;
    }
    settle(&nodes).await;
    for node in &nodes {
        let kept = counts(node).kept;
        assert!(kept < 400, "{kept} of 2000 names are kept by {node:?}");
    }
}

/// How long a request waits that cannot be granted.
const VAIN: Duration = Duration::from_millis(500);

/// A member is away. One survivor can enter without it, and the other one cannot. A request that is
/// given up at the latter does not take the lock from the former.
fn a_vain_request_keeps_nobody_out(algorithm: &str) {
    let (_scratch, configs) = group(3, &[rule(algorithm, 1)]);
    let (runtime, victim) = (Runtime::new().expect("threads"), Runtime::new().expect("threads"));
    let third = victim.block_on(Node::start(configs[2].clone())).expect("a start");
    let survivors: [Node; 2] =
        [0, 1].map(|at| runtime.block_on(Node::start(configs[at].clone())).expect("a start"));
    let name = format!("{algorithm}/orders");
    for node in [&survivors[1], &third, &survivors[0]] {
        drop(runtime.block_on(node.lock(&name).within(LONG)).expect("all members are here"));
    }
    // As far as the others can tell, its process is killed: all links are cut at once.
    drop(victim);
    drop(third);
    runtime.block_on(async {
        let [able, other] = match survivors[0].lock(&name).within(VAIN).await {
            Ok(_) => [&survivors[0], &survivors[1]],
            Err(_) => [&survivors[1], &survivors[0]],
        };
        for round in 0..3 {
            let entered = able.lock(&name).within(LONG).await;
            assert!(entered.is_ok(), "{algorithm}, round {round}: {entered:?}");
            drop(entered);
            let vain = other.lock(&name).within(VAIN).await.map(|_| ());
            assert_eq!(vain, Err(AcquireError::TimedOut), "{algorithm}, round {round}");
        }
        let entered = able.lock(&name).within(LONG).await;
        assert!(entered.is_ok(), "{algorithm}: {entered:?}");
    });
}

#[test]
fn a_vain_request_keeps_nobody_out_by_default() {
    a_vain_request_keeps_nobody_out("carvalho-roucairol");
}

#[test]
fn a_vain_request_keeps_nobody_out_with_quorums() {
    a_vain_request_keeps_nobody_out("maekawa");
    a_vain_request_keeps_nobody_out("maekawa-eager");
}
