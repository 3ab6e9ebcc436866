//! The share of a node follows the number of its waiting clients, and no visit of a lock is longer
//! than its bound.

use std::task::{Poll, Waker};
use std::time::Duration;

use doorway_core::Mode::Exclusive;
use doorway_node::locks::{ClientId, LockRequest, Rule, ShardEffects, Slot};

use crate::nodes::{LATER, NOW, Nodes, ask, name};

/// How long a lock lingers here.
const LINGER: Duration = Duration::from_micros(10);

/// How many times each client may enter in a visit.
const ROUNDS: u32 = 3;

/// The clients of one lock in a group of three nodes. Each asks again after it has left.
struct Crowded {
    nodes: Nodes,
    slots: Vec<Slot>,
    /// The node of each client, its number while it waits or is inside, and its entries so far.
    clients: Vec<(u32, Option<ClientId>, u32)>,
    /// The client that left last, if it has not asked again.
    away: Option<usize>,
}

impl Crowded {
    fn new(algorithm: &str, spread: [usize; 3]) -> Self {
        let mut rule = Rule::new(algorithm, 3, 1, ROUNDS).expect("a rule");
        rule.linger = LINGER;
        let mut nodes = Nodes::new(&[rule], 10);
        for node in 0..3 {
            nodes.shards[node as usize].stop(1);
            nodes.start(node, 1, Vec::new());
        }
        let slots = nodes.shards.iter_mut().map(|shard| shard.open(&name("orders"))).collect();
        let of_node = |(node, count)| (0..count).map(move |_| (node, None, 0));
        let clients = (0..).zip(spread).flat_map(of_node).collect();
        let mut clients = Self { nodes, slots, clients, away: None };
        (0..clients.clients.len()).for_each(|client| clients.ask(client));
        clients.nodes.deliver_all();
        clients
    }

    fn ask(&mut self, client: usize) {
        self.ask_at(client, NOW);
    }

    fn ask_at(&mut self, client: usize, now: Duration) {
        let (node, ..) = self.clients[client];
        let (slot, request) = (self.slots[node as usize], ask(Exclusive, 0));
        let request = LockRequest { now, ..request };
        let (id, _) = self.nodes.act(node, |s, out| s.acquire(slot, request, out));
        self.clients[client].1 = Some(id);
    }

    fn inside(&mut self) -> Option<usize> {
        (0..self.clients.len()).find(|client| {
            let (node, id, _) = self.clients[*client];
            id.is_some_and(|id| {
                let shard = &mut self.nodes.shards[node as usize];
                let polled = shard.poll(id, Waker::noop(), &mut ShardEffects::default());
                matches!(polled, Poll::Ready(Ok(_)))
            })
        })
    }

    /// Let the client inside leave, and return it with its node.
    fn leave(&mut self) -> (usize, u32) {
        let client = self.inside().expect("a client is inside");
        let (node, id, entries) = &mut self.clients[client];
        *entries += 1;
        let (node, id) = (*node, id.take().expect("it is inside"));
        self.nodes.act(node, |s, out| s.leave(id, NOW, out));
        (client, node)
    }

    /// Let clients enter this often. Each asks again one entry after it has left, or at once if
    /// nobody is inside: then the lock lingers for it.
    fn run(&mut self, entries: usize) -> Vec<u32> {
        let mut visits = Vec::new();
        for _ in 0..entries {
            let (client, node) = self.leave();
            visits.push(node);
            if let Some(before) = self.away.replace(client) {
                self.ask(before);
            }
            if self.inside().is_none() {
                self.away.take().into_iter().for_each(|client| self.ask(client));
            }
            self.nodes.deliver_all();
        }
        visits
    }
}

/// Every spread of eight clients over three nodes.
fn spreads() -> impl Iterator<Item = [usize; 3]> {
    (0..=8).flat_map(|a| (0..=8 - a).map(move |b| [a, b, 8 - a - b]))
}

#[test]
fn all_clients_have_the_same_share_in_every_spread() {
    for algorithm in ["carvalho-roucairol", "suzuki-kasami", "naimi-trehel"] {
        for spread in spreads() {
            let mut clients = Crowded::new(algorithm, spread);
            clients.run(200);
            clients.clients.iter_mut().for_each(|client| client.2 = 0);
            clients.run(2400);
            let entries: Vec<_> = clients.clients.iter().map(|client| client.2).collect();
            // A visit is not shared out equally if it begins while a client is away.
            let all_near = entries.iter().all(|entries| entries.abs_diff(300) <= 15);
            assert!(all_near, "{algorithm}, {spread:?}: {entries:?}");
        }
    }
}

/// The bound of a visit: the number of clients times the entries of each.
#[test]
fn no_visit_is_longer_than_its_bound() {
    for spread in spreads().filter(|spread| spread.iter().filter(|many| **many > 0).count() > 1) {
        let mut clients = Crowded::new("carvalho-roucairol", spread);
        // Until the first nodes have asked, nobody else waits.
        clients.run(100);
        for visit in clients.run(1000).chunk_by(|a, b| a == b) {
            let bound = spread[visit[0] as usize] * ROUNDS as usize;
            assert!(visit.len() <= bound, "{spread:?}: {} entries, not {bound}", visit.len());
        }
    }
}

/// A lock that lingers goes to the node that waits when its time is over, and not before.
#[test]
fn a_lock_lingers_only_for_its_time() {
    let mut clients = Crowded::new("carvalho-roucairol", [1, 1, 0]);
    clients.run(20);
    let node = loop {
        let (client, node) = clients.leave();
        clients.nodes.deliver_all();
        if clients.inside().is_none() {
            break node;
        }
        clients.ask(client); // The entries of this visit were used up.
        clients.nodes.deliver_all();
    };
    let early = NOW + LINGER / 2;
    let mut effects = ShardEffects::default();
    clients.nodes.shards[node as usize].end_lingers(early, &mut effects);
    assert!(effects.lingers && effects.messages.is_empty(), "it still lingers");
    assert_eq!(clients.inside(), None);
    clients.nodes.act(node, |s, out| s.end_lingers(NOW + LINGER, out));
    clients.nodes.deliver_all();
    assert!(clients.inside().is_some(), "the other node has the lock");
}

/// Where no client comes back in time, a lock never lingers. Where clients did so and stay away
/// from then on, it lingers a few times in vain.
#[test]
fn a_lock_does_not_linger_where_clients_stay_away() {
    assert_eq!(lingered_in_vain(Crowded::new("carvalho-roucairol", [1, 1, 0])), 0);
    let mut clients = Crowded::new("carvalho-roucairol", [1, 1, 0]);
    clients.run(100);
    let lingered = lingered_in_vain(clients);
    // Each of the two nodes has a credit for four.
    assert!((1..=8).contains(&lingered), "it lingered {lingered} times");
}

/// Let each client ask again long after it has left. Returns how often the lock lingered.
fn lingered_in_vain(mut clients: Crowded) -> usize {
    clients.away.take().into_iter().for_each(|client| clients.ask(client));
    clients.nodes.deliver_all();
    let mut lingered = 0;
    for _ in 0..1000 {
        let (client, node) = clients.leave();
        clients.nodes.deliver_all();
        if clients.inside().is_none() {
            lingered += 1;
            clients.nodes.end_lingers(node);
            clients.nodes.deliver_all();
        }
        clients.ask_at(client, LATER);
        clients.nodes.deliver_all();
    }
    lingered
}
