//! Random clients at the shards of a group, and a check of what the locks promise.

mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Wake, Waker};

use doorway_core::{Mode, NodeId};
use doorway_node::locks::{ClientId, Rule, ShardEffects, Slot};
use doorway_node::messages::HeldLock;
use doorway_node::{Fence, Name};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use crate::nodes::{NOW, Nodes, ask, name};
use watch::Watch;

/// The waker of a client, which remembers that it was woken.
#[derive(Default)]
struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A client of some node that waits or is inside.
struct Client {
    node: u32,
    id: ClientId,
    slot: Slot,
    lock: usize,
    mode: Mode,
    fence: Option<Fence>,
    bell: Arc<Bell>,
}

/// How far a node has got with the views.
#[derive(Default)]
struct Progress {
    stopped_for: u64,
    running: u64,
    /// The flushes that have arrived for each view, by sender.
    heard: BTreeMap<u64, Vec<(NodeId, Vec<HeldLock>)>>,
}

/// A group under a random schedule.
pub(crate) struct Crowd {
    nodes: Nodes,
    rules: Vec<Rule>,
    names: Vec<Name>,
    clients: Vec<Client>,
    watch: Watch,
    dice: ChaCha8Rng,
    newest: u64,
    progress: Vec<Progress>,
    /// Flushes under way: the view, sender, receiver, and what is held.
    flushes: Vec<(u64, NodeId, usize, Vec<HeldLock>)>,
    /// How many steps in a hundred begin a view.
    views_percent: u64,
    started: u64,
}

impl Crowd {
    /// A group whose schedule is drawn from `seed`. Lock names are numbers, distributed among the
    /// rules.
    pub(crate) fn new(seed: u64, rules: &[Rule], views_percent: u64) -> Self {
        let size = rules[0].group.size() as usize;
        let mut dice = ChaCha8Rng::seed_from_u64(seed);
        let keep_idle = dice.next_u64() as usize % 4;
        // A few rules at a time, with two names each, so that clients contend for the same locks.
        let names = (0..3).flat_map(|_| {
            let rule = dice.next_u64() as usize % rules.len();
            [name(&format!("{rule} a")), name(&format!("{rule} b"))]
        });
        let mut names: Vec<Name> = names.collect();
        names.sort_unstable();
        names.dedup();
        let mut crowd = Self {
            nodes: Nodes::new(rules, keep_idle),
            rules: rules.to_vec(),
            watch: Watch::new(names.len()),
            names,
            clients: Vec::new(),
            dice,
            newest: 1,
            progress: (0..size).map(|_| Progress::default()).collect(),
            flushes: Vec::new(),
            views_percent,
            started: 0,
        };
        if views_percent == 0 {
            crowd.finish_views();
        }
        crowd
    }

    fn roll(&mut self, sides: usize) -> usize {
        self.dice.next_u64() as usize % sides
    }

    /// Take this many steps.
    pub(crate) fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            if (self.roll(100) as u64) < self.views_percent {
                self.newest += 1;
            }
            match self.roll(10) {
                0 | 1 if self.clients.len() < 12 => self.arrive(),
                2 | 3 if !self.clients.is_empty() => {
                    let at = self.roll(self.clients.len());
                    self.depart(at);
                }
                4 | 5 => self.step_views(),
                6 if self.roll(2) == 0 => {
                    let node = self.roll(self.progress.len()) as u32;
                    self.nodes.end_lingers(node);
                }
                _ => self.deliver(),
            }
            self.look();
        }
    }

    /// Let all clients enter and leave. Afterwards every lock must be free at every node. Returns
    /// how many views were started.
    pub(crate) fn settle(&mut self) -> u64 {
        for _ in 0..100 {
            self.finish_views();
            self.pass_all();
            while let Some(at) = self.clients.iter().position(|client| client.fence.is_some()) {
                self.depart(at);
                self.look();
            }
        }
        assert!(self.clients.is_empty(), "{} clients wait for ever", self.clients.len());
        for node in 0..self.progress.len() as u32 {
            for lock in 0..self.names.len() {
                self.ask(node, lock, Mode::Exclusive);
                self.pass_all();
                assert!(self.clients[0].fence.is_some(), "{} is not free", self.names[lock]);
                self.depart(0);
                self.nodes.deliver_all();
            }
        }
        self.started
    }

    /// Deliver all messages, and let no lock linger.
    fn pass_all(&mut self) {
        for node in 0..self.progress.len() as u32 {
            self.nodes.deliver_all();
            self.nodes.end_lingers(node);
        }
        self.nodes.deliver_all();
        self.look();
    }

    fn deliver(&mut self) {
        let lines: Vec<_> = self.nodes.lines.keys().copied().collect();
        if !lines.is_empty() {
            let (from, to) = lines[self.roll(lines.len())];
            self.nodes.deliver(from, to);
        }
    }

    fn arrive(&mut self) {
        let node = self.roll(self.progress.len()) as u32;
        let lock = self.roll(self.names.len());
        let shared = self.rules[self.rule_number(lock)].info.shared && self.roll(2) == 0;
        let mode = if shared { Mode::Shared } else { Mode::Exclusive };
        if self.roll(4) > 0 {
            return self.ask(node, lock, mode);
        }
        let slot = self.open(node, lock);
        let sent: usize = self.nodes.lines.values().map(std::collections::VecDeque::len).sum();
        let got = self.nodes.act(node, |s, out| s.try_acquire(slot, ask(mode, 0), out));
        let now: usize = self.nodes.lines.values().map(std::collections::VecDeque::len).sum();
        assert_eq!(sent, now, "to try costs no message");
        match got.expect("nothing ends here") {
            Some((id, fence)) => self.enter(node, id, slot, lock, mode, Some(fence)),
            None => self.nodes.shards[node as usize].close(slot),
        }
    }

    fn ask(&mut self, node: u32, lock: usize, mode: Mode) {
        let slot = self.open(node, lock);
        let (id, fence) = self.nodes.act(node, |s, out| s.acquire(slot, ask(mode, 0), out));
        self.enter(node, id, slot, lock, mode, fence);
    }

    fn open(&mut self, node: u32, lock: usize) -> Slot {
        self.nodes.shards[node as usize].open(&self.names[lock])
    }

    fn enter(
        &mut self,
        node: u32,
        id: ClientId,
        slot: Slot,
        lock: usize,
        mode: Mode,
        fence: Option<Fence>,
    ) {
        let bell = Arc::default();
        let client = Client { node, id, slot, lock, mode, fence, bell };
        if let Some(fence) = fence {
            let rule = &self.rules[self.rule_number(lock)];
            self.watch.enters(lock, rule, mode, fence);
        }
        self.clients.push(client);
    }

    /// Let a client leave, or give up if it waits.
    fn depart(&mut self, at: usize) {
        let client = self.clients.swap_remove(at);
        if client.fence.is_some() {
            self.watch.leaves(client.lock, client.mode);
        }
        self.nodes.act(client.node, |s, out| s.leave(client.id, NOW, out));
        self.nodes.shards[client.node as usize].close(client.slot);
    }

    /// Find out which clients are inside now, and check that their wakers were called.
    fn look(&mut self) {
        let mut entered = Vec::new();
        for client in self.clients.iter_mut().filter(|client| client.fence.is_none()) {
            let waker = Waker::from(Arc::clone(&client.bell));
            let asked = Arc::strong_count(&client.bell) > 2;
            match self.nodes.shards[client.node as usize].poll(
                client.id,
                &waker,
                &mut ShardEffects::default(),
            ) {
                Poll::Pending => {}
                Poll::Ready(Ok(fence)) => {
                    let told = client.bell.0.load(Ordering::Relaxed);
                    assert!(told || !asked, "a client is inside and was not woken");
                    client.fence = Some(fence);
                    entered.push((fence, client.lock, client.mode));
                }
                Poll::Ready(Err(ended)) => panic!("no client may lose its lock here: {ended}"),
            }
        }
        // If several clients entered in one step, their fences give the order.
        entered.sort_unstable();
        for (fence, lock, mode) in entered {
            let rule = &self.rules[self.rule_number(lock)];
            self.watch.enters(lock, rule, mode, fence);
        }
    }

    fn rule_number(&self, lock: usize) -> usize {
        let rule = self.names[lock].as_str().split(' ').next().expect("a word");
        rule.parse().expect("a rule")
    }
}

impl Crowd {
    /// Let some node learn of the newest view, receive a flush, or start a view.
    fn step_views(&mut self) {
        let node = self.roll(self.progress.len());
        if self.progress[node].stopped_for < self.newest && self.roll(2) == 0 {
            return self.stop(node);
        }
        if !self.flushes.is_empty() {
            let at = self.roll(self.flushes.len());
            self.hear(at);
        }
        self.start_if_ready(node);
    }

    fn stop(&mut self, node: usize) {
        let view = self.newest;
        self.progress[node].stopped_for = view;
        let held = self.nodes.shards[node].stop(view);
        for to in 0..self.progress.len() {
            self.flushes.push((view, NodeId(node as u32), to, held.clone()));
        }
    }

    fn hear(&mut self, at: usize) {
        let (view, from, to, held) = self.flushes.swap_remove(at);
        self.progress[to].heard.entry(view).or_default().push((from, held));
    }

    fn start_if_ready(&mut self, node: usize) {
        let size = self.progress.len();
        let Progress { stopped_for, running, heard } = &mut self.progress[node];
        let all = heard.get(stopped_for).filter(|heard| heard.len() == size);
        if let Some(all) = all.filter(|_| *running < *stopped_for) {
            let each = |(node, held): &(NodeId, Vec<HeldLock>)| {
                held.iter().map(|held| (*node, held.clone())).collect::<Vec<_>>()
            };
            let held: Vec<_> = all.iter().flat_map(each).collect();
            *running = *stopped_for;
            let view = *running;
            self.started += 1;
            self.nodes.start(node as u32, view, held);
        }
    }

    /// Bring all nodes into the newest view.
    fn finish_views(&mut self) {
        for node in 0..self.progress.len() {
            if self.progress[node].stopped_for < self.newest {
                self.stop(node);
            }
        }
        while !self.flushes.is_empty() {
            self.hear(0);
        }
        for node in 0..self.progress.len() {
            self.start_if_ready(node);
        }
    }
}
