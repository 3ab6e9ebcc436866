//! The world of a run: machines, nodes, clients and the network, and what happens to them.

mod endless;
mod faults;
mod members;
mod phases;
mod processes;
mod traffic;

use std::collections::BTreeMap;
use std::rc::Rc;

use doorway_protocol::Fence;

use crate::book::Book;
use crate::client::{Client, ClientEvent, HeldGrant, Plan, Report};
use crate::clock::SECOND;
use crate::context::{Context, Counts, Event, log};
use crate::log::Log;
use crate::network::{End, Network, Traffic};
use crate::node::{Node, NodeEvent};
use crate::queue::Queue;
use crate::random::Random;
use crate::register::{Register, RegisterTraffic};
use crate::settings::Settings;
use crate::story::{Lane, State};
use processes::Children;

pub use phases::LIVENESS;

/// If more events than this happen at the same time, time stands still, which is a violation.
const BUSY: u64 = 100_000;

/// The world of a run.
pub(crate) struct World {
    pub(crate) context: Context,
    nodes: Vec<Node>,
    clients: Vec<Client>,
    /// Child processes of clients that were killed.
    children: Vec<Children>,
    books: Vec<Book>,
    plan: Plan,
    /// The clients over whose next connections everything takes long to arrive, and how long.
    late_hellos: BTreeMap<usize, u64>,
    /// The node that stays away from the end of the faults on.
    away: Option<usize>,
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
            network: Network::new(settings.delay, settings.lossy),
            register: settings.agreed.as_ref().map(|agreed| Register::new(&settings, agreed)),
            started: Vec::new(),
            log: Log { text: logs.then(String::new) },
            settings: Rc::clone(&settings),
            counts: Counts::default(),
            posts: BTreeMap::new(),
            answers: BTreeMap::new(),
            holders: BTreeMap::new(),
            broken: Vec::new(),
            granted: Vec::new(),
            expired: Vec::new(),
            ended: Vec::new(),
            story: None,
            violation: None,
        };
        log!(context, "seed {seed}: {settings:?}");
        let node = |id| Node::new(id, settings.drifts[id]);
        let client = |(id, setting): (usize, &crate::settings::ClientSetting)| {
            let own = settings.nodes + id;
            let machine = if setting.local { setting.nodes[0] } else { own };
            Client::new(id, setting.clone(), machine, settings.drifts[machine].client())
        };
        let mut world = Self {
            nodes: (0..settings.nodes).map(node).collect(),
            clients: settings.clients.iter().enumerate().map(client).collect(),
            children: Vec::new(),
            books: settings.locks.iter().map(|lock| Book::new(lock.kind)).collect(),
            plan: Plan::Compete,
            late_hellos: BTreeMap::new(),
            away: None,
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
        if settings.agreed.is_some() {
            context.queue.push(SECOND, Event::Elect);
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
            Event::Register(traffic) => {
                let node = traffic.node();
                let machine = self.context.register.as_ref().map_or(0, |it| it.machine);
                let (from, to, paused) = match traffic {
                    RegisterTraffic::Ask { .. } => (node, machine, 0),
                    _ => (machine, node, self.nodes[node].paused),
                };
                self.context.network.blocked(now, from, to).unwrap_or(0).max(paused)
            }
            _ => 0,
        };
        (until > now).then_some(until)
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Traffic(Traffic::Arrive(wire, side)) => self.arrive(wire, side),
            Event::Traffic(Traffic::Ended(wire, side)) => self.ended(wire, side),
            Event::Register(traffic) => self.register(traffic),
            Event::Elect => self.elect(),
            Event::Node { node, start, what } => {
                if self.nodes[node].starts != start || self.nodes[node].process.is_none() {
                    return;
                }
                if let NodeEvent::Dialled(peer) = what {
                    return self.link(node, peer);
                }
                let what = match what {
                    NodeEvent::Look(session) => {
                        let process = self.nodes[node].process.as_ref();
                        let evidence = process.and_then(|process| process.watched.get(&session));
                        if evidence.is_none_or(|evidence| self.exists(evidence)) {
                            return;
                        }
                        NodeEvent::ProcessEnded(session)
                    }
                    what => what,
                };
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
            Event::ChildrenEnd(client, start) => self.children_end(client, start),
            Event::MendDisk(node) => self.nodes[node].disk.borrow_mut().mend(),
            Event::MoveAddress { of, to, until } => self.move_address(of, to, until),
            Event::Cut { from, to, until } => {
                if self.context.now < self.context.settings.heals {
                    self.context.network.block(from, to, until.min(self.context.settings.heals));
                }
            }
            Event::Heal => self.heal(),
            Event::Sweep => self.sweep(),
            Event::Deadline(until) => self.deadline(until),
            Event::Burnt(node) => self.burnt(node),
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
                    let state = self.holds(held.lock, held.fence);
                    if let Some(story) = &mut self.context.story {
                        story.begin(self.context.now, Lane::Client(client), state);
                    }
                    self.books[held.lock].enter(&mut self.context, client, held);
                }
                Report::Left { lock, fence, .. } if self.is_lost_without_cause(client, &report) => {
                    let name = self.context.settings.locks[lock].name.clone();
                    let what = format!("c{client} has lost its {name} {fence:?} without end");
                    self.context.violate_lock(&name, what);
                }
                Report::Left { lock, fence, .. } => {
                    self.leave(client, lock, fence);
                    self.books[lock].give_up(client, fence);
                }
                Report::Wrote { held, believes } => self.write(client, held, believes),
                Report::Welcomed { connected } => self.check_told(client, connected),
            }
        }
        self.check_endless();
        let held = self.clients[client].process.iter().flat_map(|process| process.held.clone());
        for held in held.collect::<Vec<_>>() {
            self.books[held.lock].check(&mut self.context, &self.clients, held.lock);
        }
    }

    /// A client writes to the store that its lock protects. The store refuses a write whose fence
    /// is too old, which must not happen to a client that holds the lock.
    fn write(&mut self, client: usize, held: HeldGrant, believes: bool) {
        let book = &mut self.books[held.lock];
        if book.write(held) {
            return;
        }
        self.context.counts.fenced += 1;
        log!(self.context, "the store refuses a write of c{client} with {:?}", held.fence);
        if believes && book.broken(client, held.first).is_none() {
            let name = self.context.settings.locks[held.lock].name.clone();
            let what = format!("c{client} holds {name} {:?}, and its write is refused", held.fence);
            self.context.violate_lock(&name, what);
        }
    }

    /// A node has welcomed a client: it must have told which of its grants were broken before.
    fn check_told(&mut self, client: usize, connected: u64) {
        let held = self.clients[client].process.iter().flat_map(|process| &process.held);
        let broken = |held: &&HeldGrant| {
            let book = &self.books[held.lock];
            book.broken(client, held.first).is_some_and(|broken| broken < connected)
        };
        if let Some(held) = held.clone().find(broken) {
            let name = self.context.settings.locks[held.lock].name.clone();
            let fence = held.fence;
            let what = format!("c{client} was not told that its {name} {fence:?} was broken");
            self.context.violate_lock(&name, what);
        }
    }

    fn holds(&self, lock: usize, fence: Fence) -> State {
        State::Holds(self.context.settings.locks[lock].name.clone(), fence)
    }

    /// A client does not hold a lock any more, and knows it, or does not exist any more.
    fn leave(&mut self, client: usize, lock: usize, fence: Fence) {
        let state = self.holds(lock, fence);
        if let Some(story) = &mut self.context.story {
            story.end(self.context.now, Lane::Client(client), &state);
        }
        self.books[lock].leave(client, fence);
    }
}
