//! Locks that a client keeps after it has left them: the numbers that are reserved for it, and when
//! it has to give the lock back.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Poll, Waker};

use doorway_core::Mode::{self, Exclusive, Shared};
use doorway_core::NodeId;
use doorway_node::Fence;
use doorway_node::locks::{
    ClientId, LockRequest, Rule, RuleBook, Seating, Shard, ShardEffects, Slot,
};
use doorway_node::messages::HeldLock;

use crate::nodes::{NOW, Nodes, ask, name};

/// How many numbers the clients of these tests want.
const NUMBERS: u32 = 100;

fn running(algorithm: &str, size: usize, permits: u32) -> Nodes {
    let rule = Rule::new(algorithm, size, permits, 0).expect("a rule");
    let mut nodes = Nodes::new(&[rule], 1000);
    for node in 0..size as u32 {
        nodes.shards[node as usize].stop(1);
        nodes.start(node, 1, Vec::new());
    }
    nodes
}

fn keep(mode: Mode) -> LockRequest {
    LockRequest { reserve: NUMBERS, ..ask(mode, 1) }
}

fn open(nodes: &mut Nodes) -> Vec<Slot> {
    nodes.shards.iter_mut().map(|shard| shard.open(&name("a"))).collect()
}

fn fence(shard: &mut Shard, client: ClientId) -> Option<Fence> {
    match shard.poll(client, Waker::noop(), &mut ShardEffects::default()) {
        Poll::Ready(fence) => Some(fence.expect("a fence")),
        Poll::Pending => None,
    }
}

#[test]
fn the_numbers_of_a_keeper_are_never_granted_to_others() {
    let mut nodes = running("carvalho-roucairol", 1, 1);
    let slot = open(&mut nodes)[0];
    let (client, first) = nodes.act(0, |s, out| s.acquire(slot, keep(Exclusive), out));
    assert_eq!(first, Some(Fence::new(1, 1)));
    assert_eq!(nodes.shards[0].reserved(client), NUMBERS);
    nodes.act(0, |s, out| s.leave(client, NOW, out));
    let (_, next) = nodes.act(0, |s, out| s.acquire(slot, ask(Exclusive, 2), out));
    assert_eq!(next, Some(Fence::new(1, 2 + u64::from(NUMBERS))), "whether they were used or not");
}

#[test]
fn another_client_of_the_node_wants_the_lock_once() {
    let mut nodes = running("carvalho-roucairol", 1, 1);
    let slot = open(&mut nodes)[0];
    let (keeper, _) = nodes.act(0, |s, out| s.acquire(slot, keep(Exclusive), out));
    for wanted in [vec![name("a")], vec![]] {
        let mut out = ShardEffects::default();
        let (_, got) = nodes.shards[0].acquire(slot, keep(Exclusive), &mut out);
        assert_eq!((got, out.wanted), (None, wanted));
        assert_eq!(nodes.shards[0].reserved(keeper), 0, "it must not enter again");
    }
    let mut out = ShardEffects::default();
    nodes.shards[0].leave(keeper, NOW, &mut out);
    assert_eq!(out.wanted, [], "the next one has nothing to keep, because another one waits");
}

#[test]
fn another_node_wants_the_lock_and_gets_a_higher_fence() {
    for algorithm in ["carvalho-roucairol", "suzuki-kasami", "naimi-trehel"] {
        let mut nodes = running(algorithm, 3, 1);
        let slots = open(&mut nodes);
        let (keeper, _) = nodes.act(0, |s, out| s.acquire(slots[0], keep(Exclusive), out));
        nodes.deliver_all();
        let first = fence(&mut nodes.shards[0], keeper).expect("nobody else wants it");
        assert_eq!(nodes.shards[0].reserved(keeper), NUMBERS, "{algorithm}");
        let (other, _) = nodes.act(1, |s, out| s.acquire(slots[1], keep(Exclusive), out));
        let mut wanted = Vec::new();
        while let Some((&(from, to), _)) = nodes.lines.first_key_value() {
            let line = nodes.lines.get_mut(&(from, to)).expect("a line in use");
            let message = line.pop_front().expect("a message");
            if line.is_empty() {
                nodes.lines.remove(&(from, to));
            }
            let heard = nodes.act(to.0, |shard, out| {
                shard.receive(from, &message, NOW, out);
                std::mem::take(&mut out.wanted)
            });
            wanted.extend(heard.into_iter().map(|lock| (to, lock)));
        }
        assert_eq!(wanted, [(NodeId(0), name("a"))], "{algorithm}");
        assert_eq!(nodes.shards[0].reserved(keeper), 0);
        nodes.act(0, |s, out| s.leave(keeper, NOW, out));
        nodes.deliver_all();
        let next = fence(&mut nodes.shards[1], other).expect("the lock was given back");
        assert!(next.clock() > first.clock() + u64::from(NUMBERS), "{algorithm}: {next:?}");
        assert_eq!(next.view(), 1);
    }
}

#[test]
fn nothing_is_reserved_for_locks_that_several_clients_hold() {
    let mut nodes = running("raymond-k", 1, 2);
    let slot = open(&mut nodes)[0];
    let (client, _) = nodes.act(0, |s, out| s.acquire(slot, keep(Exclusive), out));
    assert_eq!(nodes.shards[0].reserved(client), 0, "a permit");
    let mut nodes = running("readers-writers", 1, 1);
    let slot = open(&mut nodes)[0];
    let (client, _) = nodes.act(0, |s, out| s.acquire(slot, keep(Shared), out));
    assert_eq!(nodes.shards[0].reserved(client), 0, "a reader");
}

/// Where nodes ask quorums, a node need not hear of all requests, so nobody may keep its locks.
#[test]
fn nothing_is_reserved_if_other_nodes_may_wait_unseen() {
    for algorithm in ["maekawa", "majority", "weighted-majority"] {
        let mut nodes = running(algorithm, 3, 1);
        let slots = open(&mut nodes);
        let (client, _) = nodes.act(0, |s, out| s.acquire(slots[0], keep(Exclusive), out));
        nodes.deliver_all();
        assert!(fence(&mut nodes.shards[0], client).is_some(), "{algorithm}");
        assert_eq!(nodes.shards[0].reserved(client), 0, "{algorithm}");
    }
}

/// A client that keeps its lock while it is outside is released in the step in which another one
/// asks.
#[test]
fn a_keeper_outside_gives_way_at_once() {
    let mut nodes = running("carvalho-roucairol", 1, 1);
    let slot = open(&mut nodes)[0];
    let (keeper, _) = nodes.act(0, |s, out| s.acquire(slot, keep(Exclusive), out));
    assert_eq!(nodes.shards[0].keeper(slot), Some(keeper));
    let mut out = ShardEffects::default();
    let (other, _) = nodes.shards[0].acquire(slot, ask(Exclusive, 2), &mut out);
    assert_eq!((&out.revoked[..], nodes.shards[0].keeper(slot)), (&[keeper][..], None));
    let revoke = |client: ClientId| client == keeper;
    nodes.shards[0].release_revoked(NOW, &mut out, revoke);
    let next = fence(&mut nodes.shards[0], other).expect("the lock was released");
    assert_eq!(next.clock(), 2 + u64::from(NUMBERS));
}

type Loss<'a> = &'a dyn Fn(&mut Nodes, &mut ShardEffects);

/// However a lock is lost or its rules change, the client that keeps it is told.
#[test]
fn a_keeper_hears_of_every_loss() {
    let held = |node| (NodeId(node), HeldLock { lock: name("a"), mode: Exclusive, permits: 1 });
    let losses: [(&str, Loss<'_>); 5] = [
        ("the node stops", &|nodes, out| nodes.shards[0].end(NOW, out)),
        ("the membership ends", &|nodes, out| assert!(nodes.shards[0].discard(out))),
        ("the lease ends", &|nodes, out| {
            nodes.shards[0].set_lease(NOW);
            nodes.shards[0].leave(ClientId(77), NOW, out);
        }),
        ("the lock breaks", &|nodes, out| {
            nodes.shards[0].stop(2);
            *out = nodes.start_only(0, 2, vec![held(0), held(1)]);
        }),
        ("the rules change", &|nodes, out| {
            let before = &nodes.seatings[0];
            let rule = Rule::new("suzuki-kasami", 2, 1, 0).expect("a rule");
            let (members, me) = (before.members.clone(), before.me);
            let rules = RuleBook::of_all(rule).agreed(2);
            nodes.shards[0].stop_for(2, &rules);
            let seating = Arc::new(Seating { members, me, rules });
            nodes.shards[0].start(2, &seating, vec![held(0)], NOW, out);
            assert_eq!(out.wanted, [name("a")], "clients in other processes are told, too");
        }),
    ];
    for (loss, lose) in losses {
        let mut nodes = running("carvalho-roucairol", 2, 1);
        let slot = open(&mut nodes)[0];
        let (keeper, _) = nodes.act(0, |s, out| s.acquire(slot, keep(Exclusive), out));
        nodes.deliver_all();
        assert_eq!(nodes.shards[0].reserved(keeper), NUMBERS);
        let mut out = ShardEffects::default();
        lose(&mut nodes, &mut out);
        assert_eq!(out.revoked, [keeper], "{loss}");
        assert_eq!(nodes.shards[0].reserved(keeper), 0, "{loss}");
        nodes.shards[0].release_revoked(NOW, &mut out, |_| true);
        assert!(nodes.shards[0].is_lost(keeper), "{loss}: the client is gone");
    }
}

/// A view that begins with the same rules takes nothing from a client that keeps its lock.
#[test]
fn a_keeper_lives_through_a_change_of_views() {
    let mut nodes = running("carvalho-roucairol", 2, 1);
    let slots = open(&mut nodes);
    let (keeper, _) = nodes.act(0, |s, out| s.acquire(slots[0], keep(Exclusive), out));
    nodes.deliver_all();
    let held: Vec<_> = nodes.shards[0].stop(2).into_iter().map(|it| (NodeId(0), it)).collect();
    nodes.shards[1].stop(2);
    assert_eq!(nodes.start_only(0, 2, held.clone()).revoked, []);
    nodes.start(1, 2, held);
    assert_eq!(nodes.shards[0].reserved(keeper), NUMBERS);
    let (other, _) = nodes.act(1, |s, out| s.acquire(slots[1], ask(Exclusive, 2), out));
    let (from, to) = (NodeId(1), NodeId(0));
    let message = nodes.lines.get_mut(&(from, to)).and_then(VecDeque::pop_front);
    nodes.act(0, |shard, out| {
        shard.receive(from, &message.expect("a request"), NOW, out);
        assert_eq!(out.revoked, [keeper]);
        shard.release_revoked(NOW, out, |_| true);
    });
    nodes.lines.retain(|_, line| !line.is_empty());
    nodes.deliver_all();
    let next = fence(&mut nodes.shards[1], other).expect("the lock was given back");
    assert_eq!(next.view(), 2);
}
