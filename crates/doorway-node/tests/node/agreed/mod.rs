//! Groups that agree on their members: nodes die, come back, lose their lease, join and leave, and
//! the others go on.

mod arranged;
mod holds;
mod register;

use std::sync::Arc;
use std::time::Duration;

use doorway_node::members::{Answer, Command, GroupState, Record, Seat, SeatId};
use doorway_node::net::Identity;
use doorway_node::{Config, Mode, Node, OwnedGuard, ReclaimError, RuleConfig};
use tokio::time::{Instant, sleep, timeout};

use crate::common::{Scratch, group};
use register::{Register, RegisterStore};

/// The shortest lease that a group may have.
const LEASE: Duration = Duration::from_secs(2);

/// Longer than anything here may take, also on a busy machine.
const LONG: Duration = Duration::from_secs(30);

/// A group on this machine, with its register.
struct Group {
    configs: Vec<Config>,
    register: Arc<Register>,
    nodes: Vec<Option<Node>>,
    stores: Vec<Option<Arc<RegisterStore>>>,
    _scratch: Scratch,
}

impl Group {
    /// Make configurations for `size` nodes, and found a group of the first `seats` of them.
    fn new(size: usize, seats: usize) -> Self {
        Self::with_rules(size, seats, &[])
    }

    /// Make a group with rules for locks, as [`Group::new`] does.
    fn with_rules(size: usize, seats: usize, rules: &[RuleConfig]) -> Self {
        let (scratch, configs) = group(size, rules);
        let configs: Vec<Config> = configs.into_iter().map(alone).collect();
        let first = (0..seats).map(|node| seat(&configs, node)).collect();
        let record = Record::new(7, LEASE.as_millis() as u32, 0, first);
        let rules = configs[0].lock_rules().tables();
        let register = Register::new(GroupState::new(record).with_rules(rules));
        let (nodes, stores) = (vec![None; size], vec![None; size]);
        Self { configs, register, nodes, stores, _scratch: scratch }
    }

    /// Start all nodes of a new group, and wait until all of them are in one view.
    async fn started(size: usize) -> Self {
        let mut group = Self::new(size, size);
        for node in 0..size {
            group.start(node, false).await;
        }
        group.together(size).await;
        group
    }

    async fn start(&mut self, node: usize, reclaiming: bool) {
        let config = self.configs[node].clone();
        let tls = config.tls.as_ref().expect("certificates");
        let identity = Identity::from_pem(&tls.ca, &tls.certificate, &tls.key).expect("good ones");
        let store = self.register.store(SeatId(node as u64 + 1));
        self.stores[node] = Some(Arc::clone(&store));
        let started = Node::start_agreed(config, identity, store, reclaiming).await;
        self.nodes[node] = Some(started.expect("a node that starts"));
    }

    /// End a process without a goodbye.
    async fn kill(&mut self, node: usize) {
        self.stores[node].take().expect("a store").cut(true);
        self.nodes[node].take().expect("a running node").stop().await;
    }

    fn node(&self, node: usize) -> &Node {
        self.nodes[node].as_ref().expect("a running node")
    }

    /// Wait until the running nodes are in one view of this many members.
    async fn together(&self, members: usize) {
        until("the nodes are in one view", || {
            let record = self.register.record();
            let newest = record.seated().count() == members;
            let running = self
                .nodes
                .iter()
                .flatten()
                .all(|node| node.membership().is_some_and(|it| it.view == Some(record.number)));
            newest && running
        })
        .await;
    }

    /// Wait until the group has removed this node.
    async fn together_without(&self, node: usize) {
        let seat = SeatId(node as u64 + 1);
        until("the node is removed", || self.register.record().members_of(seat).next().is_none())
            .await;
    }

    async fn lock(&self, node: usize, name: &str) -> OwnedGuard {
        let guard = timeout(LONG, self.node(node).lock(name)).await;
        guard.expect("the lock is free in time").expect("a grant")
    }
}

/// The configuration of a node that learns its peers from the store.
fn alone(mut config: Config) -> Config {
    config.members.retain(|member| member.name == config.me);
    config.data = None;
    config
}

fn seat(configs: &[Config], node: usize) -> Seat {
    let config = &configs[node];
    let (name, address) = (config.me.clone(), config.members[0].address.clone());
    Seat { id: SeatId(node as u64 + 1), name, address, voter: true }
}

/// Wait until something is so.
async fn until(what: &str, is: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is() {
        assert!(begin.elapsed() < LONG, "{what}: this has not happened for {LONG:?}");
        sleep(Duration::from_millis(5)).await;
    }
}

/// The machine of a holder dies. The others go on after its lease, and not before.
#[tokio::test]
async fn a_dead_holder_gives_way_after_its_lease() {
    let mut group = Group::started(3).await;
    let first = group.lock(2, "orders").await;
    let (fence, begin) = (first.fence(), Instant::now());
    group.kill(2).await;
    let second = group.lock(0, "orders").await;
    assert!(begin.elapsed() > LEASE * 8 / 10, "it was granted after {:?}", begin.elapsed());
    assert!(second.fence() > fence);
    // Every lock is free now, also one that was never used.
    group.together(2).await;
    drop(second);
    for (node, name) in [(0, "orders"), (1, "orders"), (0, "new"), (1, "new")] {
        drop(group.lock(node, name).await);
    }
}

/// A process that is started again succeeds its predecessor at once. Its clients keep their locks.
#[tokio::test]
async fn a_restarted_node_succeeds_its_predecessor() {
    let mut group = Group::started(3).await;
    let guard = group.lock(1, "orders").await;
    let fence = guard.fence();
    std::mem::forget(guard); // The client lives on in another process.
    group.kill(1).await;
    group.start(1, true).await;
    let session = group.node(1).session();
    let again = group.node(1).reclaim("orders", Mode::Exclusive, fence, session);
    let again = again.expect("the predecessor is still a member");
    group.node(1).serve();
    group.together(3).await;
    assert!(!again.is_lost());
    let early = timeout(Duration::from_millis(300), group.node(0).lock("orders")).await;
    assert!(early.is_err(), "the lock is still held");
    drop(again);
    assert!(group.lock(0, "orders").await.fence() > fence);
}

/// A process that comes back too late cannot give its clients their locks again.
#[tokio::test]
async fn what_a_removed_member_granted_cannot_be_reclaimed() {
    let mut group = Group::started(3).await;
    let guard = group.lock(1, "orders").await;
    let fence = guard.fence();
    std::mem::forget(guard);
    group.kill(1).await;
    group.together(2).await;
    let held = group.lock(0, "orders").await;
    group.start(1, true).await;
    let node = group.node(1).clone();
    until("the node is a member", || node.membership().is_some_and(|it| it.member.is_some())).await;
    // The claim may come before the record that refuses it; then the client is told of the loss.
    until("the claim is refused", || {
        let claim = node.reclaim("orders", Mode::Exclusive, fence, node.session());
        matches!(claim, Err(ReclaimError::Ended))
    })
    .await;
    node.serve();
    group.together(3).await;
    assert!(!held.is_lost());
    let early = timeout(Duration::from_millis(300), node.lock("orders")).await;
    assert!(early.is_err(), "the lock is held at another node");
}

/// A node that cannot reach the group gives up its locks before anybody else gets them, and is a
/// member again when it can.
#[tokio::test]
async fn a_node_without_a_store_loses_its_locks_in_time() {
    let group = Group::started(3).await;
    let guard = group.lock(0, "orders").await;
    let fence = guard.fence();
    let store = group.stores[0].as_ref().expect("a store");
    store.cut(true);
    let next = group.lock(1, "orders").await;
    assert!(guard.is_lost(), "two clients believe that they hold the lock");
    assert!(next.fence() > fence);
    let waiting = tokio::spawn({
        let node = group.node(0).clone();
        async move { node.lock("orders").await.map(|guard| guard.fence()) }
    });
    store.cut(false);
    group.together(3).await;
    let fence = next.fence();
    drop(next);
    let last = timeout(LONG, waiting).await.expect("in time").expect("no panic").expect("a grant");
    assert!(last > fence, "a request that waited through it is granted");
}

/// A lock that a node keeps is lost with the lease of the node, and is given to others at once if
/// the lease lasts.
#[tokio::test]
async fn a_kept_lock_ends_with_the_lease() {
    let group = Group::started(3).await;
    let mut kept = group.node(0).open("orders").expect("a name").keep();
    let first = kept.lock().await.expect("a grant").fence();
    let begin = Instant::now();
    let other = group.lock(1, "orders").await;
    assert!(other.fence() > first && begin.elapsed() < LEASE, "it did not wait for the lease");
    drop(other);
    let second = timeout(LONG, kept.lock()).await.expect("in time").expect("a grant").fence();
    assert!(kept.try_lock().expect("no error").is_some(), "it is kept");
    let store = group.stores[0].as_ref().expect("a store");
    store.cut(true);
    group.together_without(0).await;
    assert!(kept.try_lock().expect("no error").is_none(), "another node may hold it by now");
    assert!(group.lock(1, "orders").await.fence() > second);
    store.cut(false);
    group.together(3).await;
    timeout(LONG, kept.lock()).await.expect("in time").expect("a grant").release().expect("held");
}

/// A machine that is added takes part, and one that leaves is not waited for.
#[tokio::test]
async fn machines_come_and_go() {
    let mut group = Group::new(4, 3);
    for node in 0..3 {
        group.start(node, false).await;
    }
    group.together(3).await;
    let held = group.lock(0, "orders").await;
    group.start(3, false).await;
    let blocked = || group.node(3).membership().and_then(|it| it.blocked);
    until("the fourth node knows that it has no seat", || blocked().is_some()).await;
    let added = group.register.apply(&Command::AddSeat(seat(&group.configs, 3)));
    assert!(matches!(added, Answer::Done(_)));
    group.together(4).await;
    assert!(!held.is_lost());
    drop(held);
    drop(group.lock(3, "orders").await);

    timeout(LONG, group.node(3).leave()).await.expect("the group agrees");
    group.nodes[3].take().expect("a node").stop().await;
    let dropped = group.register.apply(&Command::DropSeat(SeatId(4)));
    assert!(matches!(dropped, Answer::Done(_)));
    group.together(3).await;
    drop(group.lock(1, "orders").await);
    until("the others have forgotten the machine", || group.node(0).members().len() == 3).await;
}

/// A running machine is removed. If a client holds a lock there, the others wait for the lease of
/// its node, because it may be impossible to tell the client. If not, new locks wait only until the
/// node has noticed that it was removed.
#[tokio::test]
async fn a_removed_machine_that_holds_nothing_is_not_waited_for() {
    for holds in [false, true] {
        let group = Group::started(3).await;
        let guard = group.lock(2, "orders").await;
        let guard = holds.then_some(guard);
        let begin = Instant::now();
        let dropped = group.register.apply(&Command::DropSeat(SeatId(3)));
        assert!(matches!(dropped, Answer::Done(_)));
        // Every lock that was never used needs the answers of all members.
        drop(group.lock(0, "new").await);
        let waited = begin.elapsed();
        let is_early = waited < LEASE * 6 / 10;
        assert!(is_early != holds, "holds: {holds}, and a new lock waited for {waited:?}");
        assert!(guard.is_none_or(|guard| guard.is_lost()));
        drop(group.lock(1, "orders").await);
    }
}

/// All nodes are killed at once, and come back: nothing waits for a lease.
#[tokio::test]
async fn a_whole_group_comes_back() {
    let mut group = Group::started(3).await;
    let fence = group.lock(0, "orders").await.fence();
    for node in 0..3 {
        group.kill(node).await;
    }
    for node in 0..3 {
        group.start(node, false).await;
    }
    group.together(3).await;
    assert!(group.lock(2, "orders").await.fence() > fence);
}
