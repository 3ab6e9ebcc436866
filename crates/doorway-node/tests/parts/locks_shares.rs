//! How the clients of three nodes share one lock by the shipped rule, in a time that the test makes
//! go on.

use std::task::{Poll, Waker};
use std::time::Duration;

use doorway_core::Mode::Exclusive;
use doorway_node::locks::{ClientId, LockRequest, Rule, Shard, ShardEffects, Slot};
use doorway_node::{Config, RuleConfig};

use crate::nodes::{Nodes, ask, name};

/// What the clients of a test do.
#[derive(Clone, Copy, Debug)]
struct Habit {
    /// The time inside, and the least time between two entries.
    hold: Duration,
    /// The time from leaving to the next request.
    pause: Duration,
}

const fn micros(hold: u64, pause: u64) -> Habit {
    Habit { hold: Duration::from_micros(hold), pause: Duration::from_micros(pause) }
}

/// The time that a lock needs from node to node.
const HOP: Duration = Duration::from_micros(100);

/// The time after which a shard is told to end what lingers: the timer of a node is coarse.
const TIMER: Duration = Duration::from_millis(1);

/// A client: its node, its number while it waits or is inside, when it asks next, and its entries.
struct Client {
    node: u32,
    id: Option<ClientId>,
    asks: Duration,
    entries: u32,
}

/// The clients of one lock in a group of three nodes.
struct Crowd {
    nodes: Nodes,
    slots: Vec<Slot>,
    clients: Vec<Client>,
    habit: Habit,
    /// When the shards are told that time has passed for locks that linger.
    timer: Option<Duration>,
    /// How often the lock lingered and nobody came back.
    in_vain: u32,
}

impl Crowd {
    fn new(algorithm: &str, spread: [usize; 3], habit: Habit) -> Self {
        let members: Vec<String> = (0..3).map(|node| format!("n{node}")).collect();
        let config = RuleConfig::new("*", algorithm, 1);
        let rule = Rule::arranged(&config, &members, Config::default().handovers);
        let mut nodes = Nodes::new(&[rule.expect("a rule")], 10);
        for node in 0..3 {
            nodes.shards[node as usize].stop(1);
            nodes.start(node, 1, Vec::new());
        }
        let slots = nodes.shards.iter_mut().map(|shard| shard.open(&name("orders"))).collect();
        let client = |node| Client { node, id: None, asks: nodes.now, entries: 0 };
        let at_nodes = (0..).zip(spread).flat_map(|(node, count)| (0..count).map(move |_| node));
        let clients = at_nodes.map(client).collect();
        Self { nodes, slots, clients, habit, timer: None, in_vain: 0 }
    }

    /// Call the shard of a node.
    fn act<T>(
        &mut self,
        node: u32,
        act: impl FnOnce(&mut Shard, Duration, &mut ShardEffects) -> T,
    ) -> T {
        let now = self.nodes.now;
        let (result, lingers) = self.nodes.act(node, |shard, out| {
            let result = act(shard, now, out);
            (result, out.lingers)
        });
        if lingers {
            self.timer.get_or_insert(now + TIMER);
        }
        result
    }

    fn inside(&mut self) -> Option<usize> {
        (0..self.clients.len()).find(|client| {
            let Client { node, id, .. } = self.clients[*client];
            id.is_some_and(|id| {
                let shard = &mut self.nodes.shards[node as usize];
                let polled = shard.poll(id, Waker::noop(), &mut ShardEffects::default());
                matches!(polled, Poll::Ready(Ok(_)))
            })
        })
    }

    /// The client that asks next.
    fn next_to_ask(&self) -> Option<usize> {
        let outside = (0..self.clients.len()).filter(|at| self.clients[*at].id.is_none());
        outside.min_by_key(|at| self.clients[*at].asks)
    }

    /// Does the lock linger?
    fn lingers(&self) -> bool {
        let shards = self.nodes.shards.iter().zip(&self.slots);
        shards.into_iter().any(|(shard, slot)| shard.lock(*slot).lingers())
    }

    /// Let all clients ask that would have asked by now, and the timer of the nodes ring.
    fn catch_up(&mut self) {
        let now = self.nodes.now;
        while let Some(at) = self.next_to_ask().filter(|at| self.clients[*at].asks <= now) {
            let Client { node, asks, .. } = self.clients[at];
            let (slot, session) = (self.slots[node as usize], at as u64 + 1);
            let request = LockRequest { now: asks, ..ask(Exclusive, session) };
            self.clients[at].id = Some(self.act(node, |s, _, out| s.acquire(slot, request, out)).0);
        }
        if self.timer.take_if(|timer| *timer <= now).is_some() {
            let lingered = self.lingers();
            (0..3).for_each(|node| self.act(node, Shard::end_lingers));
            self.in_vain += u32::from(lingered && !self.lingers());
        }
    }

    /// Let messages pass until a client is inside. Each round of them takes the time of a hop.
    fn deliver(&mut self) {
        while self.inside().is_none() && !self.nodes.lines.is_empty() {
            self.nodes.now += HOP;
            self.nodes.deliver_all();
            self.catch_up();
        }
        self.nodes.deliver_all();
    }

    /// Let time pass until a client is inside.
    fn wait(&mut self) -> usize {
        loop {
            self.catch_up();
            self.deliver();
            if let Some(client) = self.inside() {
                return client;
            }
            // The lock lingers, or all clients pause.
            let asks = self.next_to_ask().map(|at| self.clients[at].asks);
            let next = asks.into_iter().chain(self.timer).min().expect("something happens");
            self.nodes.now = self.nodes.now.max(next);
        }
    }

    /// The client inside leaves. Returns its node.
    fn leave(&mut self, client: usize) -> u32 {
        let Client { node, id, entries, .. } = self.clients[client];
        let id = id.expect("it is inside");
        self.act(node, |shard, now, out| shard.leave(id, now, out));
        let asks = self.nodes.now + self.habit.pause;
        self.clients[client] = Client { node, id: None, asks, entries: entries + 1 };
        node
    }

    /// Let clients enter this often. Returns the node of each entry, and when it was over.
    fn run(&mut self, entries: usize) -> Vec<(u32, Duration)> {
        let enter = |_| {
            let client = self.wait();
            self.nodes.now += self.habit.hold;
            self.catch_up();
            (self.leave(client), self.nodes.now)
        };
        (0..entries).map(enter).collect()
    }

    /// Jain's index of the entries of all clients: 1 if all have the same number.
    fn jain(&self) -> f64 {
        let entries = || self.clients.iter().map(|client| f64::from(client.entries));
        let (sum, squares): (f64, f64) = (entries().sum(), entries().map(|it| it * it).sum());
        sum * sum / (squares * self.clients.len() as f64)
    }
}

/// Every spread of eight clients over three nodes. Which node has how many does not matter.
fn spreads() -> impl Iterator<Item = [usize; 3]> {
    let all = (0..=8).flat_map(|a| (0..=8 - a).map(move |b| [a, b, 8 - a - b]));
    all.filter(|[a, b, c]| a <= b && b <= c)
}

/// The least of Jain's indices in all spreads.
fn least_fair(algorithms: &[&str], holds: &[u64], pauses: &[u64]) -> (f64, String) {
    let mut least = (1.0, String::new());
    for algorithm in algorithms {
        for (hold, pause) in holds.iter().flat_map(|hold| pauses.iter().map(move |it| (*hold, *it)))
        {
            for spread in spreads() {
                let mut clients = Crowd::new(algorithm, spread, micros(hold, pause));
                clients.run(300);
                clients.clients.iter_mut().for_each(|client| client.entries = 0);
                clients.run(1200);
                let (jain, what) =
                    (clients.jain(), || format!("{algorithm} {spread:?} {hold} {pause}"));
                if jain < least.0 {
                    least = (jain, what());
                }
            }
        }
    }
    least
}

/// Clients that ask again at once, however long they are inside.
#[test]
fn clients_that_come_back_at_once_have_the_same_share() {
    let algorithms = ["carvalho-roucairol", "suzuki-kasami", "naimi-trehel"];
    let least = least_fair(&algorithms, &[10, 40, 150, 400, 700, 1000, 10_000], &[20, 60]);
    assert!(least.0 >= 0.98, "{least:?}");
}

/// Clients that pause, for less or more time than a lock lingers.
#[test]
fn clients_that_pause_have_the_same_share() {
    let holds = [40, 150, 400, 700, 1000, 10_000];
    let least = least_fair(&["carvalho-roucairol"], &holds, &[150, 250, 400, 1000, 5000, 50_000]);
    assert!(least.0 >= 0.97, "{least:?}");
}

/// Where clients come back at once, nearly every visit has all its rounds.
#[test]
fn a_visit_has_several_rounds_and_a_bound() {
    let rounds = Config::default().handovers as usize;
    let mut clients = Crowd::new("carvalho-roucairol", [1, 1, 6], micros(40, 30));
    clients.run(300);
    let entries = clients.run(1200);
    let visits: Vec<usize> = entries.chunk_by(|a, b| a.0 == b.0).map(<[_]>::len).collect();
    let whole = &visits[1..visits.len() - 1];
    assert_eq!(whole.iter().max(), Some(&(6 * rounds)), "{visits:?}");
    assert!(visits.len() <= 1200 / 40 * 3 + 3, "{visits:?}");
}

/// If clients are inside for longer, a visit serves each of them once or twice.
#[test]
fn a_visit_has_a_bound_in_time() {
    for (hold, rounds) in [(700, 2), (2000, 1), (10_000, 1)] {
        let mut clients = Crowd::new("carvalho-roucairol", [1, 1, 6], micros(hold, 30));
        clients.run(300);
        for visit in clients.run(600).chunk_by(|a, b| a.0 == b.0) {
            let most = rounds * if visit[0].0 == 2 { 6 } else { 1 };
            assert!(visit.len() <= most, "{hold}: {} entries", visit.len());
        }
    }
}

/// Where no client comes back in time, a lock never lingers. Where clients did so and stay away
/// from then on, it lingers a few times in vain, and the other node gets it.
#[test]
fn a_lock_does_not_linger_where_clients_stay_away() {
    let mut clients = Crowd::new("carvalho-roucairol", [1, 1, 0], micros(40, 1000));
    clients.run(300);
    assert_eq!(clients.in_vain, 0);
    clients.habit = micros(40, 30);
    clients.run(300);
    assert_eq!(clients.in_vain, 0);
    clients.habit = micros(40, 1000);
    clients.run(300);
    // Each of the two nodes has trust for two.
    assert!((1..=4).contains(&clients.in_vain), "it lingered {} times in vain", clients.in_vain);
}

/// One client that came back in time by chance is not enough for a lock to linger.
#[test]
fn a_lock_does_not_linger_after_one_lucky_return() {
    let mut clients = Crowd::new("carvalho-roucairol", [1, 1, 0], micros(40, 1000));
    for _ in 0..100 {
        clients.run(8);
        clients.habit = micros(40, 30);
        clients.run(1);
        clients.habit = micros(40, 1000);
    }
    assert_eq!(clients.in_vain, 0);
}

/// Clients that ask again as soon as another one has entered come back quickly, but not before the
/// lock is at the other node. A lock that waits for them there waits in vain, and soon it does not.
#[test]
fn a_lock_seldom_lingers_where_clients_wait_for_each_other() {
    let never = Duration::from_secs(1 << 20);
    let mut clients = Crowd::new("carvalho-roucairol", [1, 1, 1], micros(40, 30));
    for _ in 0..3000 {
        let inside = clients.wait();
        let asks = clients.nodes.now;
        clients.clients.iter_mut().for_each(|client| client.asks = client.asks.min(asks));
        clients.nodes.now += clients.habit.hold;
        clients.catch_up();
        clients.leave(inside);
        clients.clients[inside].asks = never;
    }
    assert!((1..=24).contains(&clients.in_vain), "it lingered {} times in vain", clients.in_vain);
}

/// Let clients enter until one has just left, and the lock lingers for it. Returns its node.
fn lingering() -> (Crowd, u32) {
    let mut clients = Crowd::new("carvalho-roucairol", [1, 1, 0], micros(40, 30));
    clients.run(300);
    loop {
        let client = clients.wait();
        let node = clients.leave(client);
        if clients.lingers() {
            return (clients, node);
        }
    }
}

/// A node that stops passes on what lingers there.
#[test]
fn a_node_that_stops_passes_the_lock_on() {
    let (mut clients, node) = lingering();
    assert!(clients.nodes.lines.is_empty() && clients.inside().is_none());
    clients.act(node, Shard::end);
    clients.nodes.deliver_all();
    assert!(clients.inside().is_some(), "the other node has the lock");
}

/// A new view begins with a free lock if the lock lingered before it.
#[test]
fn a_view_that_begins_while_a_lock_lingers() {
    let (mut clients, node) = lingering();
    clients.nodes.lines.clear();
    let held = (0..3).map(|node| clients.nodes.shards[node].stop(2)).collect::<Vec<_>>();
    assert!(!clients.lingers() && held.concat().is_empty(), "{held:?}");
    (0..3).for_each(|node| clients.nodes.start(node, 2, Vec::new()));
    clients.nodes.deliver_all();
    let inside = clients.inside().expect("the client that waits");
    assert_ne!(clients.clients[inside].node, node);
}

/// A client that kept the lock has left it long ago when its node takes the lock back.
#[test]
fn a_lock_that_was_kept_does_not_linger() {
    let (mut clients, node) = lingering();
    clients.nodes.now += TIMER;
    clients.act(node, Shard::end_lingers);
    clients.nodes.deliver_all();
    let other = clients.inside().expect("the client of the other node");
    clients.leave(other);
    // Nobody wants the lock, so a client may keep it.
    let (slot, now) = (clients.slots[node as usize], clients.nodes.now);
    let request = LockRequest { now, reserve: 5, ..ask(Exclusive, 77) };
    let (id, _) = clients.act(node, |shard, _, out| shard.acquire(slot, request, out));
    clients.nodes.deliver_all();
    assert_eq!(clients.nodes.shards[node as usize].reserved(id), 5);
    let other_node = clients.clients[other].node as usize;
    let (slot, request) = (clients.slots[other_node], LockRequest { now, ..ask(Exclusive, 78) });
    clients.act(other_node as u32, |shard, _, out| shard.acquire(slot, request, out));
    clients.nodes.deliver_all();
    assert_eq!(clients.nodes.shards[node as usize].reserved(id), 0, "another node wants it");
    clients.act(node, |shard, now, out| shard.leave(id, now, out));
    assert!(!clients.lingers());
}
