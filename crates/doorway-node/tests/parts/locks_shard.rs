//! A shard does what its interface says, one story at a time.

use std::sync::Arc;
use std::task::{Poll, Waker};

use doorway_core::Mode::{Exclusive, Shared};
use doorway_core::NodeId;
use doorway_node::Fence;
use doorway_node::locks::{
    ClientEnd, ClientId, Fault, LostGrant, Rule, RuleBook, Seating, Shard, ShardEffects, Slot,
};
use doorway_node::messages::{AlgorithmMessage, ClientStatus, HeldLock};

use crate::nodes::{NOW, Nodes, ask, name};

fn fence(view: u64, clock: u64) -> Fence {
    Fence::new(view, clock)
}

/// A group whose first view runs, with one rule for all names.
fn running(algorithm: &str, size: usize, handovers: u32) -> Nodes {
    let rule = Rule::new(algorithm, size, 1, handovers).expect("a rule");
    let mut nodes = Nodes::new(&[rule], 1000);
    change_view(&mut nodes, 1);
    nodes
}

/// Stop all nodes for a view and start it at once.
fn change_view(nodes: &mut Nodes, view: u64) {
    let shards = (0..).map(NodeId).zip(&mut nodes.shards);
    let held =
        shards.flat_map(|(node, shard)| shard.stop(view).into_iter().map(move |held| (node, held)));
    let held: Vec<_> = held.collect();
    for node in 0..nodes.shards.len() as u32 {
        let held = held.clone();
        nodes.start(node, view, held);
    }
}

fn poll(shard: &mut Shard, client: ClientId) -> Poll<Result<Fence, ClientEnd>> {
    shard.poll(client, Waker::noop(), &mut ShardEffects::default())
}

fn open(nodes: &mut Nodes, text: &str) -> Vec<Slot> {
    nodes.shards.iter_mut().map(|shard| shard.open(&name(text))).collect()
}

/// Whether the clients of a lock are inside or wait.
fn statuses(shard: &Shard, text: &str) -> Vec<ClientStatus> {
    shard.reports(Some(&name(text)), NOW).into_iter().map(|report| report.status).collect()
}

#[test]
fn a_node_alone_enters_at_once_and_fences_grow() {
    let mut nodes = running("carvalho-roucairol", 1, 0);
    let slot = open(&mut nodes, "orders")[0];
    for clock in 1..5 {
        let (client, got) = nodes.act(0, |s, out| s.acquire(slot, ask(Exclusive, 7), out));
        assert_eq!(got, Some(fence(1, clock)));
        let tried = nodes.act(0, |s, out| s.try_acquire(slot, ask(Exclusive, 8), out));
        assert_eq!(tried, Ok(None));
        nodes.act(0, |s, out| s.leave(client, NOW, out));
    }
    assert!(nodes.lines.is_empty());
}

#[test]
fn a_lock_moves_between_nodes_and_the_waiter_is_told() {
    let mut nodes = running("carvalho-roucairol", 2, 0);
    let slots = open(&mut nodes, "orders");
    let (first, none) = nodes.act(0, |s, out| s.acquire(slots[0], ask(Exclusive, 1), out));
    assert_eq!(none, None);
    assert_eq!(statuses(&nodes.shards[0], "orders"), [ClientStatus::Waiting(0)]);
    assert_eq!(nodes.shards[0].unheard(&name("orders")), [NodeId(1)]);
    assert_eq!(nodes.deliver_all(), 2);
    assert_eq!(poll(&mut nodes.shards[0], first), Poll::Ready(Ok(fence(1, 1))));
    let (second, _) = nodes.act(1, |s, out| s.acquire(slots[1], ask(Exclusive, 2), out));
    nodes.deliver_all();
    assert!(poll(&mut nodes.shards[1], second).is_pending());
    let reports = nodes.shards[0].reports(None, NOW);
    assert_eq!(reports.len(), 1, "the holder is reported, for another node waits");
    assert_eq!(reports[0].status, ClientStatus::Inside(fence(1, 1)));
    nodes.act(0, |s, out| s.leave(first, NOW, out));
    assert_eq!(nodes.deliver_all(), 1, "a hand-over is one message");
    assert_eq!(poll(&mut nodes.shards[1], second), Poll::Ready(Ok(fence(1, 2))));
    let counters = nodes.shards[1].counters()[0].1;
    assert_eq!((counters.grants, counters.remote, counters.handovers), (1, 1, 0));
}

#[test]
fn an_answer_that_is_missing_in_one_view_is_not_missing_in_the_next() {
    let mut nodes = running("carvalho-roucairol", 2, 0);
    let slots = open(&mut nodes, "orders");
    let (client, _) = nodes.act(0, |s, out| s.acquire(slots[0], ask(Exclusive, 1), out));
    nodes.act(0, |s, out| s.leave(client, NOW, out));
    assert_eq!(nodes.shards[0].unheard(&name("orders")), [NodeId(1)]);
    // The next view may have fewer members, and the lock need not start in it.
    nodes.shards[0].stop(2);
    assert_eq!(nodes.shards[0].unheard(&name("orders")), []);
}

#[test]
fn a_closed_lock_admits_nobody_and_answers_others() {
    let mut nodes = running("carvalho-roucairol", 2, 0);
    let slots = open(&mut nodes, "orders");
    // A request is under way when the lock is closed. What it gets is given back.
    let (first, _) = nodes.act(0, |s, out| s.acquire(slots[0], ask(Exclusive, 1), out));
    nodes.shards[0].shut_door(&name("orders"));
    nodes.deliver_all();
    assert!(poll(&mut nodes.shards[0], first).is_pending());
    assert!(nodes.shards[0].is_shut(&name("orders")));
    let tried = nodes.act(0, |s, out| s.try_acquire(slots[0], ask(Exclusive, 2), out));
    assert_eq!(tried, Ok(None));
    // The other node has not closed it.
    let (second, _) = nodes.act(1, |s, out| s.acquire(slots[1], ask(Exclusive, 3), out));
    nodes.deliver_all();
    assert!(poll(&mut nodes.shards[1], second).is_ready());
    nodes.act(1, |s, out| s.leave(second, NOW, out));
    // It stays closed across views.
    change_view(&mut nodes, 2);
    nodes.deliver_all();
    assert!(poll(&mut nodes.shards[0], first).is_pending());
    nodes.act(0, |s, out| s.open_door(&name("orders"), NOW, out));
    nodes.deliver_all();
    assert!(poll(&mut nodes.shards[0], first).is_ready(), "a request that waited is granted");
    assert!(!nodes.shards[0].is_shut(&name("orders")));
}

#[test]
fn clients_of_one_node_pass_the_lock_without_a_message() {
    let mut nodes = running("carvalho-roucairol", 2, 1);
    let slot = open(&mut nodes, "orders")[0];
    let ask_three = |s: &mut Shard, out: &mut ShardEffects| {
        [1, 2, 3].map(|session| s.acquire(slot, ask(Exclusive, session), out).0)
    };
    let clients = nodes.act(0, ask_three);
    nodes.deliver_all();
    nodes.act(0, |s, out| s.leave(clients[1], NOW, out));
    let inside = ClientStatus::Inside(fence(1, 1));
    assert_eq!(statuses(&nodes.shards[0], "orders"), [inside, ClientStatus::Waiting(0)]);
    nodes.act(0, |s, out| s.leave(clients[0], NOW, out));
    assert_eq!(poll(&mut nodes.shards[0], clients[2]), Poll::Ready(Ok(fence(1, 2))));
    assert!(nodes.lines.is_empty());
    let counters = nodes.shards[0].counters()[0].1;
    assert_eq!((counters.grants, counters.handovers, counters.waits), (2, 1, 3));
    assert_eq!(counters.longest_queue, 3);
}

#[test]
fn a_lock_left_between_two_views_is_released_as_the_next_begins() {
    let mut nodes = running("ricart-agrawala", 2, 0);
    let slots = open(&mut nodes, "orders");
    let (holder, _) = nodes.act(0, |s, out| s.acquire(slots[0], ask(Exclusive, 1), out));
    nodes.deliver_all();
    let (waiter, _) = nodes.act(1, |s, out| s.acquire(slots[1], ask(Exclusive, 2), out));
    let held = nodes.shards[0].stop(2);
    let expected = HeldLock { lock: name("orders"), mode: Exclusive, permits: 1 };
    assert_eq!(held, [expected]);
    assert_eq!(nodes.shards[1].stop(2), []);
    nodes.act(0, |s, out| s.leave(holder, NOW, out));
    nodes.shards[0].close(slots[0]);
    let held: Vec<_> = held.into_iter().map(|held| (NodeId(0), held)).collect();
    // The waiter asks again in the new view before the other has started it.
    nodes.start(1, 2, held.clone());
    nodes.deliver_all();
    assert!(poll(&mut nodes.shards[1], waiter).is_pending());
    nodes.start(0, 2, held);
    nodes.deliver_all();
    assert_eq!(poll(&mut nodes.shards[1], waiter), Poll::Ready(Ok(fence(2, 1))));
}

#[test]
fn messages_of_an_older_view_are_dropped_and_an_older_view_is_never_run() {
    let mut nodes = running("ricart-agrawala", 2, 0);
    let slot = open(&mut nodes, "orders")[0];
    let (client, _) = nodes.act(0, |s, out| s.acquire(slot, ask(Exclusive, 1), out));
    nodes.shards[1].stop(3);
    nodes.start(1, 2, Vec::new());
    assert_eq!(nodes.deliver_all(), 1, "nobody answers");
    assert_eq!(nodes.shards[0].running(), Some(1));
    assert!(poll(&mut nodes.shards[0], client).is_pending());
}

#[test]
fn a_stopped_node_ends_all_its_clients() {
    let mut nodes = running("carvalho-roucairol", 1, 0);
    let slot = open(&mut nodes, "orders")[0];
    let (inside, _) = nodes.act(0, |s, out| s.acquire(slot, ask(Exclusive, 1), out));
    let (waiting, _) = nodes.act(0, |s, out| s.acquire(slot, ask(Exclusive, 2), out));
    assert!(
        nodes.shards[0].poll_lost(inside, Waker::noop(), &mut ShardEffects::default()).is_pending()
    );
    nodes.act(0, |shard, out| shard.end(NOW, out));
    let lost = nodes.shards[0].poll_lost(inside, Waker::noop(), &mut ShardEffects::default());
    assert_eq!(lost, Poll::Ready(ClientEnd::Lost));
    assert_eq!(poll(&mut nodes.shards[0], waiting), Poll::Ready(Err(ClientEnd::Lost)));
    let (late, none) = nodes.act(0, |s, out| s.acquire(slot, ask(Exclusive, 3), out));
    assert_eq!(none, None);
    assert_eq!(poll(&mut nodes.shards[0], late), Poll::Ready(Err(ClientEnd::Lost)));
    for client in [inside, waiting, late] {
        nodes.act(0, |s, out| s.leave(client, NOW, out));
    }
}

/// A node must know whether somebody may still count on its lease, also if the shard has found out
/// before the node that the lease is over.
#[test]
fn a_shard_tells_whether_a_client_was_inside_when_the_membership_ended() {
    for (inside, lapses) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut nodes = running("carvalho-roucairol", 1, 0);
        let slot = open(&mut nodes, "orders")[0];
        let (client, _) = nodes.act(0, |s, out| s.acquire(slot, ask(Exclusive, 1), out));
        if !inside {
            nodes.act(0, |s, out| s.leave(client, NOW, out));
        }
        if lapses {
            nodes.shards[0].set_lease(NOW);
            nodes.act(0, |s, out| s.acquire(slot, ask(Exclusive, 2), out));
            assert!(nodes.shards[0].is_over(NOW));
        }
        assert_eq!(nodes.act(0, Shard::discard), inside);
        assert!(!nodes.act(0, Shard::discard), "it is told once");
    }
}

#[test]
fn an_invalid_message_is_refused_and_changes_nothing() {
    let mut nodes = running("carvalho-roucairol", 2, 0);
    let nonsense = [(9, vec![99]), (9, vec![]), (1 << 60, vec![0, 1]), (9, vec![1])];
    for (clock, payload) in nonsense {
        let step = AlgorithmMessage { view: 1, clock, lock: name("orders"), payload };
        let mut out = ShardEffects::default();
        nodes.shards[0].receive(NodeId(1), &step, NOW, &mut out);
        assert_eq!((out.refused.len(), out.messages.len()), (1, 0), "{step:?}");
    }
    let slot = open(&mut nodes, "orders")[0];
    let (client, _) = nodes.act(0, |s, out| s.acquire(slot, ask(Exclusive, 1), out));
    nodes.deliver_all();
    assert_eq!(poll(&mut nodes.shards[0], client), Poll::Ready(Ok(fence(1, 1))));
}

#[test]
fn an_impossible_start_breaks_only_its_lock() {
    let mut nodes = running("carvalho-roucairol", 2, 0);
    let orders = open(&mut nodes, "orders")[0];
    let stock = open(&mut nodes, "stock")[0];
    nodes.shards[0].stop(2);
    let (client, _) = nodes.act(0, |s, out| s.acquire(orders, ask(Exclusive, 1), out));
    let held = HeldLock { lock: name("orders"), mode: Exclusive, permits: 1 };
    let both = vec![(NodeId(0), held.clone()), (NodeId(1), held)];
    let out = nodes.start_only(0, 2, both);
    assert_eq!(out.refused.len(), 1);
    let broken = poll(&mut nodes.shards[0], client);
    assert!(matches!(broken, Poll::Ready(Err(ClientEnd::Broken(Fault::Rejected(_))))));
    nodes.act(0, |s, out| s.leave(client, NOW, out));
    let tried = nodes.act(0, |s, out| s.try_acquire(orders, ask(Exclusive, 1), out));
    assert!(matches!(tried, Err(ClientEnd::Broken(_))));
    let (other, _) = nodes.act(0, |s, out| s.acquire(stock, ask(Exclusive, 1), out));
    assert!(poll(&mut nodes.shards[0], other).is_pending());
    // In the next view the lock works again.
    nodes.act(0, |s, out| s.leave(other, NOW, out));
    nodes.lines.clear();
    change_view(&mut nodes, 3);
    let (client, _) = nodes.act(0, |s, out| s.acquire(orders, ask(Exclusive, 1), out));
    nodes.deliver_all();
    assert_eq!(poll(&mut nodes.shards[0], client), Poll::Ready(Ok(fence(3, 1))));
}

#[test]
fn when_a_lock_breaks_the_clients_inside_have_lost_it() {
    let mut nodes = running("carvalho-roucairol", 2, 0);
    let slot = open(&mut nodes, "orders")[0];
    let (inside, _) = nodes.act(0, |s, out| s.acquire(slot, ask(Exclusive, 7), out));
    nodes.deliver_all();
    nodes.act(0, |s, out| s.acquire(slot, ask(Exclusive, 8), out));
    nodes.shards[0].stop(2);
    let held = HeldLock { lock: name("orders"), mode: Exclusive, permits: 1 };
    let both = vec![(NodeId(0), held.clone()), (NodeId(1), held)];
    let out = nodes.start_only(0, 2, both);
    let fence = fence(1, 1);
    assert_eq!(poll(&mut nodes.shards[0], inside).map(|ended| ended.is_err()), Poll::Ready(true));
    assert_eq!(out.lost, [LostGrant { session: 7, lock: name("orders"), fence }]);
    // The loss is reported once.
    let mut out = ShardEffects::default();
    nodes.shards[0].end(NOW, &mut out);
    assert_eq!(out.lost, []);
}

#[test]
fn idle_locks_beyond_the_limit_are_forgotten_and_the_others_stay() {
    let rule = Rule::new("ricart-agrawala", 2, 1, 0).unwrap();
    let mut nodes = Nodes::new(&[rule], 10);
    change_view(&mut nodes, 1);
    for round in 0..100 {
        // The other node learns the name from a message, and opens no handle.
        let slot = nodes.shards[0].open(&name(&format!("lock {round}")));
        let (client, _) = nodes.act(0, |s, out| s.acquire(slot, ask(Exclusive, 1), out));
        nodes.deliver_all();
        nodes.act(0, |s, out| s.leave(client, NOW, out));
        nodes.shards[0].close(slot);
        for shard in &nodes.shards {
            assert!(shard.counters()[0].1.kept <= 11, "{}", shard.counters()[0].1.kept);
        }
    }
    assert_eq!(nodes.shards[0].counters()[0].1.kept, 10);
}

#[test]
fn readers_share_and_writers_are_alone() {
    let mut nodes = running("readers-writers", 1, 0);
    let slot = open(&mut nodes, "orders")[0];
    let (_, first) = nodes.act(0, |s, out| s.acquire(slot, ask(Shared, 1), out));
    let (_, second) = nodes.act(0, |s, out| s.acquire(slot, ask(Shared, 2), out));
    let (_, third) = nodes.act(0, |s, out| s.acquire(slot, ask(Exclusive, 3), out));
    assert!(first.is_some() && second.is_some() && third.is_none());
}

#[test]
fn fences_of_permits_are_unique_in_the_group() {
    let rule = Rule::new("raymond-k", 3, 5, 0).unwrap();
    let mut nodes = Nodes::new(&[rule], 10);
    change_view(&mut nodes, 1);
    let slots = open(&mut nodes, "seats");
    let mut clients = Vec::new();
    for node in [0, 1, 2, 0, 1] {
        let slot = slots[node as usize];
        clients.push((node, nodes.act(node, |s, out| s.acquire(slot, ask(Exclusive, 1), out)).0));
    }
    nodes.deliver_all();
    let fences = clients.iter().map(|(node, client)| {
        let polled = poll(&mut nodes.shards[*node as usize], *client);
        let Poll::Ready(Ok(fence)) = polled else { panic!("five clients can be inside") };
        assert_eq!(fence.clock() % 3, u64::from(*node));
        fence
    });
    let mut fences: Vec<_> = fences.collect();
    fences.sort_unstable();
    fences.dedup();
    assert_eq!(fences.len(), 5);
}

/// A message of node 0 about a lock, with this clock.
fn asked(nodes: &mut Nodes, text: &str, clock: u64) -> AlgorithmMessage {
    let slot = nodes.shards[0].open(&name(text));
    nodes.act(0, |s, out| s.acquire(slot, ask(Exclusive, 1), out));
    let line = nodes.lines.remove(&(NodeId(0), NodeId(1))).expect("it asks the other node");
    let [step] = Vec::from(line).try_into().expect("one message");
    AlgorithmMessage { clock, ..step }
}

/// The clock at which a shard is exhausted in its view.
const FULL: u64 = Fence::CLOCK_LIMIT + Fence::CLOCK_LIMIT / 2;

#[test]
fn a_clock_that_has_run_far_asks_for_the_next_view_and_work_goes_on() {
    for (clock, overdue) in [(Fence::CLOCK_LIMIT - 1, false), (Fence::CLOCK_LIMIT, true)] {
        let mut nodes = running("carvalho-roucairol", 2, 0);
        let step = asked(&mut nodes, "orders", clock);
        let mut out = ShardEffects::default();
        nodes.shards[1].receive(NodeId(0), &step, NOW, &mut out);
        assert_eq!((out.refused.len(), out.messages.len()), (0, 1), "it is answered");
        assert_eq!((out.overdue, nodes.shards[1].running()), (overdue, Some(1)), "{clock}");
    }
}

#[test]
fn a_shard_whose_clock_is_full_is_exhausted_until_the_next_view() {
    let mut nodes = running("carvalho-roucairol", 2, 0);
    let slot = open(&mut nodes, "stock")[1];
    let (holder, _) = nodes.act(1, |s, out| s.acquire(slot, ask(Exclusive, 1), out));
    let (waiter, _) = nodes.act(1, |s, out| s.acquire(slot, ask(Exclusive, 2), out));
    nodes.deliver_all();
    assert_eq!(poll(&mut nodes.shards[1], holder), Poll::Ready(Ok(fence(1, 1))));
    let full = asked(&mut nodes, "too far", FULL);
    let mut out = ShardEffects::default();
    nodes.shards[1].receive(NodeId(0), &full, NOW, &mut out);
    assert_eq!((out.refused.len(), out.overdue), (1, false), "nobody's clock is as far as that");
    let step = asked(&mut nodes, "orders", FULL - 1);
    nodes.act(1, |s, out| s.receive(NodeId(0), &step, NOW, out));
    assert_eq!(nodes.shards[1].running(), Some(1));

    // The grant that fills the clock is the last one.
    let mut out = ShardEffects::default();
    nodes.shards[1].leave(holder, NOW, &mut out);
    assert!(out.overdue);
    assert_eq!(poll(&mut nodes.shards[1], waiter), Poll::Ready(Ok(fence(1, FULL))));
    assert_eq!(nodes.shards[1].running(), None);
    let (next, none) = nodes.act(1, |s, out| s.acquire(slot, ask(Exclusive, 3), out));
    assert_eq!(none, None);
    nodes.act(1, |s, out| s.receive(NodeId(0), &step, NOW, out));
    nodes.act(1, |s, out| s.leave(waiter, NOW, out));
    assert!(poll(&mut nodes.shards[1], next).is_pending(), "nobody enters");

    nodes.lines.clear();
    change_view(&mut nodes, 2);
    nodes.deliver_all();
    assert_eq!(nodes.shards[1].running(), Some(2));
    let Poll::Ready(Ok(fence)) = poll(&mut nodes.shards[1], next) else { panic!("not inside") };
    assert!(fence.view() == 2 && fence.clock() < 10, "{fence:?}");
}

#[test]
fn a_shard_that_cannot_keep_what_comes_early_leaves_its_view_for_the_next() {
    let mut nodes = running("carvalho-roucairol", 2, 0);
    let slot = open(&mut nodes, "orders")[1];
    let (client, _) = nodes.act(1, |s, out| s.acquire(slot, ask(Exclusive, 1), out));
    nodes.lines.clear();
    nodes.shards[1].stop(2);
    let step =
        AlgorithmMessage { view: 2, clock: 0, lock: name("orders"), payload: vec![0; 1 << 20] };
    let mut kept = 0;
    loop {
        let mut out = ShardEffects::default();
        nodes.shards[1].receive(NodeId(0), &step, NOW, &mut out);
        assert_eq!(out.overdue, out.refused.len() == 1);
        if out.overdue {
            break;
        }
        kept += 1;
    }
    assert_eq!(kept, 3, "four megabytes hold three messages of one, with their names");
    // A view of which a message is missing is not run, and the caller that starts it is told so.
    let out = nodes.start_only(1, 2, Vec::new());
    assert_eq!((out.overdue, nodes.shards[1].running()), (true, None));
    // If the next view could not be asked for then, each later request asks for it again.
    let mut out = ShardEffects::default();
    let (other, _) = nodes.shards[1].acquire(slot, ask(Exclusive, 2), &mut out);
    assert!(out.overdue);
    nodes.shards[1].leave(other, NOW, &mut out);
    change_view(&mut nodes, 3);
    nodes.deliver_all();
    assert_eq!(poll(&mut nodes.shards[1], client), Poll::Ready(Ok(fence(3, 1))));
}

/// All nodes stop for a view with another rule, and start it. Returns whether one of them asks for
/// another view.
fn change_rule(nodes: &mut Nodes, view: u64, algorithm: &str, permits: u32) -> bool {
    let size = nodes.shards.len();
    let rule = Rule::new(algorithm, size, permits, 0).expect("a rule");
    let book = RuleBook::of_all(rule).agreed(view);
    let shards = (0..).map(NodeId).zip(&mut nodes.shards);
    let held: Vec<_> = shards
        .flat_map(|(node, shard)| {
            shard.stop_for(view, &book).into_iter().map(move |held| (node, held))
        })
        .collect();
    let mut overdue = false;
    for node in 0..size {
        let before = &nodes.seatings[node];
        let (members, me) = (before.members.clone(), before.me);
        nodes.seatings[node] = Arc::new(Seating { members, me, rules: book.clone() });
        let seating = Arc::clone(&nodes.seatings[node]);
        let held = held.clone();
        nodes.act(node as u32, |shard, out| {
            shard.start(view, &seating, held, NOW, out);
            overdue |= out.overdue;
        });
    }
    overdue
}

#[test]
fn a_lock_with_more_holders_than_its_new_rule_lets_in_waits_until_they_fit() {
    let rule = Rule::new("raymond-k", 2, 3, 0).expect("a rule");
    let mut nodes = Nodes::new(&[rule], 10);
    change_view(&mut nodes, 1);
    let slots = open(&mut nodes, "slots");
    let enter = |nodes: &mut Nodes, node: u32| {
        let (client, _) =
            nodes.act(node, |s, out| s.acquire(slots[node as usize], ask(Exclusive, 7), out));
        nodes.deliver_all();
        client
    };
    let inside = [enter(&mut nodes, 0), enter(&mut nodes, 0), enter(&mut nodes, 1)];
    let late = enter(&mut nodes, 1);
    let is_in = |nodes: &mut Nodes, node: usize, client| {
        matches!(poll(&mut nodes.shards[node], client), Poll::Ready(Ok(_)))
    };
    assert!(!is_in(&mut nodes, 1, late), "all permits are taken");

    assert!(!change_rule(&mut nodes, 2, "raymond-k", 2), "nobody has left");
    assert!(!is_in(&mut nodes, 1, late) && !nodes.shards[0].is_lost(inside[0]));
    let tried = nodes.act(0, |s, out| s.try_acquire(slots[0], ask(Exclusive, 8), out));
    assert_eq!(tried, Ok(None), "nobody enters");
    let leave = |nodes: &mut Nodes, node: u32, client| {
        nodes.act(node, |shard, out| {
            shard.leave(client, NOW, out);
            std::mem::take(&mut out.overdue)
        })
    };
    assert!(leave(&mut nodes, 0, inside[0]), "those who are left may fit");
    assert!(!change_rule(&mut nodes, 3, "raymond-k", 2), "they do");
    nodes.deliver_all();
    assert!(!is_in(&mut nodes, 1, late), "both permits are taken");
    assert!(!leave(&mut nodes, 0, inside[1]));
    nodes.deliver_all();
    assert!(is_in(&mut nodes, 1, late));
    // Two holders of one node have an exclusive lock together; nobody else enters.
    assert!(!change_rule(&mut nodes, 4, "suzuki-kasami", 1));
    let next = nodes.act(0, |s, out| s.acquire(slots[0], ask(Exclusive, 9), out)).0;
    nodes.deliver_all();
    leave(&mut nodes, 1, inside[2]);
    nodes.deliver_all();
    assert!(!is_in(&mut nodes, 0, next));
    leave(&mut nodes, 1, late);
    nodes.deliver_all();
    assert!(is_in(&mut nodes, 0, next));
}

#[test]
fn a_client_that_leaves_between_two_views_makes_room() {
    let rule = Rule::new("raymond-k", 2, 2, 0).expect("a rule");
    let mut nodes = Nodes::new(&[rule], 10);
    change_view(&mut nodes, 1);
    let slots = open(&mut nodes, "slots");
    let clients = [0, 1].map(|node| {
        let slot = slots[node as usize];
        let client = nodes.act(node, |s, out| s.acquire(slot, ask(Exclusive, 7), out)).0;
        nodes.deliver_all();
        client
    });
    let book = RuleBook::of_all(Rule::new("lamport", 2, 1, 0).expect("a rule")).agreed(2);
    let seating = |node| {
        Arc::new(Seating {
            members: vec!["a".to_owned(), "b".to_owned()],
            me: NodeId(node),
            rules: book.clone(),
        })
    };
    let held: Vec<_> = [0, 1]
        .into_iter()
        .flat_map(|node| {
            let held = nodes.shards[node as usize].stop_for(2, &book);
            held.into_iter().map(move |held| (NodeId(node), held))
        })
        .collect();
    nodes.act(1, |shard, out| shard.leave(clients[1], NOW, out));
    for node in [0, 1] {
        let (seating, held) = (seating(node), held.clone());
        let asks = nodes.act(node, |shard, out| {
            shard.start(2, &seating, held, NOW, out);
            out.overdue
        });
        assert_eq!(asks, node == 1, "the node whose client has left asks for another view");
    }
}

#[test]
fn a_shared_request_for_a_lock_that_cannot_be_shared_any_more_is_refused() {
    let mut nodes = running("readers-writers", 2, 0);
    let slots = open(&mut nodes, "files");
    let reader = nodes.act(0, |s, out| s.acquire(slots[0], ask(Shared, 7), out)).0;
    nodes.deliver_all();
    let writer = nodes.act(1, |s, out| s.acquire(slots[1], ask(Exclusive, 8), out)).0;
    let late = nodes.act(1, |s, out| s.acquire(slots[1], ask(Shared, 9), out)).0;
    nodes.deliver_all();
    change_rule(&mut nodes, 2, "lamport", 1);
    let refused = Poll::Ready(Err(ClientEnd::NotShared("lamport")));
    assert_eq!(poll(&mut nodes.shards[1], late), refused);
    let tried = nodes.act(0, |s, out| s.try_acquire(slots[0], ask(Shared, 9), out));
    assert_eq!(tried, Err(ClientEnd::NotShared("lamport")));
    assert!(!nodes.shards[0].is_lost(reader), "the reader stays");
    assert_eq!(poll(&mut nodes.shards[1], writer), Poll::Pending);
    nodes.act(0, |s, out| s.leave(reader, NOW, out));
    nodes.deliver_all();
    assert!(matches!(poll(&mut nodes.shards[1], writer), Poll::Ready(Ok(_))));
    let counters = nodes.shards[0].counters();
    assert_eq!((counters.len(), counters[0].0), (1, "lamport"));
    let former: Vec<_> = nodes.shards[0].former_counters().collect();
    assert_eq!((former[0].0, former[0].1.grants), ("readers-writers", 1), "counters never shrink");
}
