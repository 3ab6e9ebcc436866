//! The world of a run: machines, nodes, clients and the network, and what happens to them.

mod faults;

use std::rc::Rc;

use crate::book::Book;
use crate::client::{Client, ClientEvent, Plan, Report};
use crate::clock::{Clock, SECOND};
use crate::context::{Context, Counts, Event, log};
use crate::log::Log;
use crate::network::{End, Network, Traffic, Wire};
use crate::node::{Node, NodeEvent};
use crate::queue::Queue;
use crate::random::Random;
use crate::settings::Settings;

/// How long after the end of all faults every client must have entered.
pub const LIVENESS: u64 = 120 * SECOND;

/// How long after the last client has left nothing may be left of any.
const CLEAN: u64 = 40 * SECOND;

/// More events than this at the same time mean that time stands still.
const BUSY: u64 = 100_000;

/// The world of a run.
pub(crate) struct World {
    pub(crate) context: Context,
    pub(crate) nodes: Vec<Node>,
    pub(crate) clients: Vec<Client>,
    books: Vec<Book>,
    pub(crate) plan: Plan,
    over: bool,
    /// How many events have happened at the same time.
    at_once: u64,
}

impl World {
    pub(crate) fn new(seed: u64, logs: bool) -> Self {
        let mut random = Random::new(seed);
        let settings = Rc::new(Settings::draw(&mut random));
        let mut context = Context {
            now: 0,
            random,
            queue: Queue::new(),
            network: Network::new(settings.delay),
            log: Log { text: logs.then(String::new) },
            settings: Rc::clone(&settings),
            counts: Counts::default(),
            violation: None,
        };
        log!(context, "seed {seed}: {settings:?}");
        let node = |id| Node::new(id, settings.drifts[id]);
        let client = |(id, setting): (usize, &crate::settings::ClientSetting)| {
            let own = settings.nodes + id;
            let machine = if setting.local { setting.node } else { own };
            Client::new(id, setting.clone(), machine, settings.drifts[machine])
        };
        let mut world = Self {
            nodes: (0..settings.nodes).map(node).collect(),
            clients: settings.clients.iter().enumerate().map(client).collect(),
            books: settings.locks.iter().map(|lock| Book::new(lock.kind)).collect(),
            plan: Plan::Compete,
            over: false,
            at_once: 0,
            context,
        };
        let context = &mut world.context;
        (0..world.nodes.len()).for_each(|node| context.queue.push(0, Event::StartNode(node)));
        (0..world.clients.len()).for_each(|it| context.queue.push(SECOND, Event::StartClient(it)));
        for (fault, mean) in &settings.faults {
            let at = SECOND + context.random.exponential(*mean);
            context.queue.push(at, Event::Fault(*fault));
        }
        context.queue.push(settings.heals, Event::Heal);
        world
    }

    /// Let the next thing happen. False if the run is over.
    pub(crate) fn step(&mut self) -> bool {
        for (at, traffic) in std::mem::take(&mut self.context.network.plans) {
            self.context.queue.push(at, Event::Traffic(traffic));
        }
        let Some((now, event)) = self.context.queue.pop() else { return false };
        self.at_once = if now > self.context.now { 0 } else { self.at_once + 1 };
        if self.at_once > BUSY {
            self.context.violate(format!("time stands still: {event:?} again and again"));
            return false;
        }
        self.context.now = self.context.now.max(now);
        if let Some(until) = self.held_up(&event) {
            self.context.queue.push(until, event);
            return true;
        }
        self.context.counts.events += 1;
        self.happen(event);
        if self.context.violation.is_some() {
            self.over = true;
        }
        self.context.counts.time = self.context.now;
        !self.over
    }

    /// Until when an event has to wait: its process is suspended, or the network is cut.
    fn held_up(&self, event: &Event) -> Option<u64> {
        let now = self.context.now;
        let until = match event {
            Event::Node { node, start, .. } => {
                let node = &self.nodes[*node];
                if node.starts == *start { node.paused } else { 0 }
            }
            Event::Client { client, start, .. } => {
                let client = &self.clients[*client];
                if client.starts == *start { client.paused } else { 0 }
            }
            Event::Traffic(Traffic::Arrive(wire, side) | Traffic::Ended(wire, side)) => {
                let pipe = self.context.network.pipes.get(wire)?;
                let (from, to) = (pipe.machines[1 - side], pipe.machines[*side]);
                let blocked = self.context.network.blocked(now, from, to).unwrap_or(0);
                let paused = match pipe.ends[*side] {
                    End::Node { node, start } => {
                        let node = &self.nodes[node];
                        if node.starts == start { node.paused } else { 0 }
                    }
                    End::Client { client, start } => {
                        let client = &self.clients[client];
                        if client.starts == start { client.paused } else { 0 }
                    }
                };
                blocked.max(paused)
            }
            _ => 0,
        };
        (until > now).then_some(until)
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Traffic(Traffic::Arrive(wire, side)) => self.arrive(wire, side),
            Event::Traffic(Traffic::Ended(wire, side)) => self.ended(wire, side),
            Event::Node { node, start, what } => {
                if self.nodes[node].starts != start || self.nodes[node].process.is_none() {
                    return;
                }
                if let NodeEvent::Dialled(peer) = what {
                    return self.link(node, peer);
                }
                self.nodes[node].happen(&mut self.context, what);
                self.after_node(node);
            }
            Event::Client { client, start, what } => {
                if self.clients[client].starts != start || self.clients[client].process.is_none() {
                    return;
                }
                if matches!(what, ClientEvent::Dialled) {
                    return self.dial(client);
                }
                let plan = self.plan;
                self.with_client(client, |it, context, reports| {
                    it.happen(context, what, plan, reports);
                });
            }
            Event::Fault(fault) => self.fault(fault),
            Event::StartNode(node) => self.start_node(node),
            Event::StartClient(client) => self.start_client(client),
            Event::Retire(client) => self.kill_client(client),
            Event::MendDisk(node) => {
                let mut disk = self.nodes[node].disk.borrow_mut();
                (disk.full, disk.stall) = (false, 0);
            }
            Event::Heal => self.heal(),
            Event::Deadline => self.deadline(),
            Event::End => self.end(),
        }
    }

    /// Let a client do something, and check the locks that it may concern.
    pub(crate) fn with_client(
        &mut self,
        client: usize,
        act: impl FnOnce(&mut Client, &mut Context, &mut Vec<Report>),
    ) {
        let mut reports = Vec::new();
        act(&mut self.clients[client], &mut self.context, &mut reports);
        for report in reports {
            match report {
                Report::Entered(held) => {
                    self.books[held.lock].enter(&mut self.context, client, held);
                }
                Report::Left { lock, fence } => self.books[lock].leave(client, fence),
            }
        }
        let held = self.clients[client].process.iter().flat_map(|process| process.held.clone());
        for held in held.collect::<Vec<_>>() {
            self.books[held.lock].check(&mut self.context, &self.clients, held.lock);
        }
    }

    fn arrive(&mut self, wire: Wire, side: usize) {
        let Some(pipe) = self.context.network.pipes.get_mut(&wire) else { return };
        let Some(bytes) = pipe.under_way[side].pop_front() else { return };
        let (end, other) = (pipe.ends[side], pipe.ends[1 - side]);
        if !pipe.open[side] {
            // The machine answers, if it runs, that it knows nothing of this connection.
            let machine = pipe.machines[side];
            if self.nodes.get(machine).is_none_or(|node| node.off <= self.context.now) {
                let at = self.context.now + 1000;
                self.context.queue.push(at, Event::Traffic(Traffic::Ended(wire, 1 - side)));
            }
            return;
        }
        if bytes.is_empty() {
            return;
        }
        match (end, other) {
            (End::Node { node, .. }, End::Node { node: peer, .. }) => {
                self.nodes[node].link_bytes(&mut self.context, wire, peer, &bytes);
                self.after_node(node);
            }
            (End::Node { node, .. }, End::Client { client, start }) => {
                let it = &self.clients[client];
                let pid = (client as u32 + 1) * 100_000 + start as u32;
                let pid = it.setting.local.then_some(pid);
                self.nodes[node].door_bytes(&mut self.context, wire, client, pid, &bytes);
                self.after_node(node);
            }
            (End::Client { client, .. }, _) => {
                self.with_client(client, |it, context, reports| {
                    it.receive(context, wire, &bytes, reports);
                });
            }
        }
    }

    fn ended(&mut self, wire: Wire, side: usize) {
        let Some(pipe) = self.context.network.pipes.get(&wire) else { return };
        if !pipe.open[side] {
            return;
        }
        match (pipe.ends[side], pipe.ends[1 - side]) {
            (End::Node { node, .. }, End::Node { node: peer, .. }) => {
                self.nodes[node].link_ended(&mut self.context, wire, peer);
                self.context.close(wire, side);
                self.after_node(node);
            }
            (End::Node { node, .. }, End::Client { .. }) => {
                self.nodes[node].hang_up(&mut self.context, wire);
                self.after_node(node);
            }
            (End::Client { client, .. }, _) => {
                self.with_client(client, |it, context, reports| {
                    it.hang_up(context, wire, reports);
                });
                self.context.close(wire, side);
            }
        }
    }

    /// An attempt of a node to connect to a peer has come to its end.
    fn link(&mut self, node: usize, peer: usize) {
        let now = self.context.now;
        let network = &self.context.network;
        let blocked = network.blocked(now, node, peer).or(network.blocked(now, peer, node));
        if blocked.is_some() || self.nodes[peer].process.is_none() {
            return self.nodes[node].not_reached(&mut self.context, peer);
        }
        let end = self.nodes[peer].end();
        self.nodes[node].reached(&mut self.context, peer, end);
    }

    /// A client tries to connect to its node.
    fn dial(&mut self, client: usize) {
        let now = self.context.now;
        let it = &self.clients[client];
        let (node, machine) = (it.setting.node, it.machine);
        let network = &self.context.network;
        let blocked = network.blocked(now, machine, node).or(network.blocked(now, node, machine));
        let up = self.nodes[node].process.is_some() && blocked.is_none();
        let wire = up.then(|| {
            let ends = [it.end(), self.nodes[node].end()];
            self.context.network.connect(ends, [machine, node])
        });
        self.with_client(client, |it, context, reports| it.dialled(context, wire, reports));
    }

    /// Something has happened at a node.
    fn after_node(&mut self, node: usize) {
        if self.nodes[node].has_ended() {
            // The process ends with its node, and is started again.
            log!(self.context, "n{node} has ended");
            self.nodes[node].kill(&mut self.context);
            self.context.queue.push(self.context.now + SECOND, Event::StartNode(node));
        } else if self.nodes[node].process.is_none() {
            self.context.queue.push(self.context.now + SECOND, Event::StartNode(node));
        }
    }

    pub(crate) fn start_node(&mut self, node: usize) {
        let now = self.context.now;
        let off = self.nodes[node].off;
        if self.nodes[node].process.is_some() {
            return;
        }
        if off > now {
            return self.context.queue.push(off, Event::StartNode(node));
        }
        let alive: Vec<u32> = self
            .clients
            .iter()
            .filter(|client| client.machine == node)
            .filter_map(|client| client.process.as_ref().map(|process| process.pid))
            .collect();
        let started = self.nodes[node].start(&mut self.context, &|pid| alive.contains(&pid));
        if !started {
            if self.nodes[node].disk.borrow().crash_in_sync {
                self.crash(node);
            }
            self.context.queue.push(now + SECOND, Event::StartNode(node));
        }
    }

    fn start_client(&mut self, client: usize) {
        let machine = self.clients[client].machine;
        if self.clients[client].process.is_some() || self.plan == Plan::Leave {
            return;
        }
        let off = self.nodes.get(machine).map_or(0, |node| node.off);
        if off > self.context.now {
            return self.context.queue.push(off, Event::StartClient(client));
        }
        let clock = self.clock(machine, client);
        self.clients[client].start(&mut self.context, clock);
    }

    fn clock(&self, machine: usize, client: usize) -> Clock {
        self.nodes.get(machine).map_or(self.clients[client].clock, |node| node.clock)
    }

    /// The process of a client ends.
    pub(crate) fn kill_client(&mut self, client: usize) {
        let Some(pid) = self.clients[client].process.as_ref().map(|process| process.pid) else {
            return;
        };
        log!(self.context, "c{client} is killed");
        for held in self.clients[client].kill(&mut self.context) {
            self.books[held.lock].leave(client, held.fence);
        }
        // Nodes that watch the process see its end.
        let node = self.clients[client].setting.node;
        let Some(process) = &self.nodes[node].process else { return };
        let start = process.start;
        let watching = process.watched.iter().filter(|(_, evidence)| evidence.is_process(pid));
        for session in watching.map(|(session, _)| *session).collect::<Vec<_>>() {
            let after = self.context.random.between(0, 100_000);
            self.context.node(after, node, start, NodeEvent::ProcessEnded(session));
        }
    }

    /// The machine of a node crashes, and is off for a while.
    pub(crate) fn crash(&mut self, node: usize) {
        log!(self.context, "the machine of n{node} crashes");
        for client in 0..self.clients.len() {
            if self.clients[client].machine == node && self.clients[client].process.is_some() {
                for held in self.clients[client].kill(&mut self.context) {
                    self.books[held.lock].leave(client, held.fence);
                }
                self.context.queue.push(self.context.now + 2 * SECOND, Event::StartClient(client));
            }
        }
        self.check_ledger(node);
        let off = self.context.now + self.context.random.magnitude(SECOND, 20 * SECOND);
        self.nodes[node].crash(&mut self.context, off);
        self.context.queue.push(off, Event::StartNode(node));
    }

    /// Check that the ledger has every promise of the sessions.
    pub(crate) fn check_ledger(&mut self, node: usize) {
        let it = &self.nodes[node];
        let Some(process) = &it.process else { return };
        let contents = it.ledger();
        let written: std::collections::BTreeSet<_> = contents.grants().collect();
        let missing = process.sessions.grants().find(|grant| !written.contains(grant));
        if let Some((session, lock, fence)) = missing {
            let what = format!("the ledger of n{node} lacks {lock} {fence:?} of session {session}");
            self.context.violate(what);
        }
    }

    /// All faults end.
    fn heal(&mut self) {
        log!(self.context, "all faults end");
        self.plan = Plan::Healed;
        self.context.network.heal();
        let now = self.context.now;
        for node in 0..self.nodes.len() {
            self.check_ledger(node);
            let mut disk = self.nodes[node].disk.borrow_mut();
            (disk.full, disk.stall, disk.crash_in_sync) = (false, 0, false);
            drop(disk);
            self.context.queue.push(now, Event::StartNode(node));
        }
        for client in 0..self.clients.len() {
            self.context.queue.push(now, Event::StartClient(client));
        }
        // Connections that were cut without a word are noticed in the end.
        let wires: Vec<_> = self.context.network.pipes.keys().copied().collect();
        for wire in wires {
            if self.context.network.pipes.get(&wire).is_some_and(|pipe| pipe.broken) {
                for side in 0..2 {
                    let event = Event::Traffic(Traffic::Ended(wire, side));
                    self.context.queue.push(now + SECOND, event);
                }
            }
        }
        self.context.queue.push(now + 10 * SECOND, Event::Deadline);
    }

    /// Check whether every client has entered.
    fn deadline(&mut self) {
        let now = self.context.now;
        if self.plan == Plan::Leave {
            return;
        }
        let late: Vec<_> = self.clients.iter().filter(|client| !client.entered).collect();
        if late.is_empty() {
            log!(self.context, "every client has entered, and leaves");
            self.plan = Plan::Leave;
            for client in 0..self.clients.len() {
                let start = self.clients[client].starts;
                self.context.client(now, client, start, ClientEvent::Work);
                self.context.queue.push(now + 5 * SECOND, Event::Retire(client));
            }
            return self.context.queue.push(now + CLEAN, Event::End);
        }
        if now < self.context.settings.heals + LIVENESS {
            return self.context.queue.push(now + 2 * SECOND, Event::Deadline);
        }
        let late: Vec<_> = late
            .iter()
            .map(|client| format!("c{} (requests {:?})", client.id, client.unanswered()))
            .collect();
        let what = format!(
            "{} s after the last fault these have not entered: {}",
            LIVENESS / SECOND,
            late.join(", ")
        );
        self.context.violate(what);
    }

    /// Check that nothing is left of any client.
    fn end(&mut self) {
        self.over = true;
        if let Some(what) = self.nodes.iter().find_map(Node::remains) {
            self.context.violate(format!("all clients have left, but not all is gone: {what}"));
        }
    }
}
