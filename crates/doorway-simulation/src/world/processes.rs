//! Processes that start and end: nodes, clients, and the children of clients.

use doorway_sessions::Evidence;

use super::World;
use crate::book::Book;
use crate::client::{HeldGrant, Plan};
use crate::clock::{Clock, MS, SECOND};
use crate::context::{Event, log};
use crate::disk::DiskTrouble;
use crate::network::End;
use crate::node::NodeEvent;
use crate::settings::{Fault, LifeSetting, Outage};
use crate::story::{Lane, State};

/// The child processes of a client whose own process has ended. They have its connection and its
/// socket, and go on with what it held.
#[derive(Debug)]
pub(super) struct Children {
    client: usize,
    start: u64,
    held: Vec<HeldGrant>,
    /// Whether the session has no time to live.
    bound: bool,
}

impl World {
    /// Something has happened at a node: note broken locks, and plan a new start if it has ended.
    pub(super) fn after_node(&mut self, node: usize) {
        let now = self.context.now;
        self.check_started();
        for (lock, fence, client) in std::mem::take(&mut self.context.broken) {
            log!(self.context, "n{node} breaks {lock} {fence:?} of c{client}");
            let at = self.context.settings.locks.iter().position(|known| known.name == lock);
            if let Some(at) = at {
                self.books[at].break_grant(now, client, fence);
            }
        }
        if self.check_endless() && self.plan == Plan::Compete && self.context.random.percent(15) {
            self.crash(node); // What it has told must be durable.
        }
        let sync_failed = std::mem::take(&mut self.nodes[node].disk.borrow_mut().sync_failed);
        if sync_failed && self.context.settings.ends_in_sync && self.plan == Plan::Compete {
            log!(self.context, "n{node} is killed, and what it could not sync is left");
            self.nodes[node].kill(&mut self.context);
            self.nodes[node].disk.borrow_mut().mend();
            // The next process may tell its clients what is not on disk.
            for _ in 0..3 {
                let at = now + self.context.random.between(SECOND, 9 * SECOND);
                self.context.queue.push(at, Event::Fault(Fault::CrashMachine));
            }
        }
        if self.nodes[node].has_ended() {
            // The process ends with its node, and is started again.
            log!(self.context, "n{node} has ended");
            self.nodes[node].kill(&mut self.context);
            self.context.queue.push(now + SECOND, Event::StartNode(node));
        } else if self.nodes[node].process.is_none() {
            self.context.queue.push(now + SECOND, Event::StartNode(node));
        }
    }

    pub(super) fn start_node(&mut self, node: usize) {
        let now = self.context.now;
        let off = self.nodes[node].off.max(self.nodes[node].down);
        let outage = self.context.settings.outage;
        let burnt = self.away == Some(node) && outage == Some(Outage::Burnt);
        if self.nodes[node].process.is_some() || burnt {
            return;
        }
        if off > now {
            return self.context.queue.push(off, Event::StartNode(node));
        }
        let started = self.nodes[node].start(&mut self.context);
        if started {
            self.runs(Lane::Node(node));
            self.fill_disk(node);
        } else {
            if self.nodes[node].disk.borrow().crash_in_sync {
                self.crash(node);
            }
            self.context.queue.push(now + SECOND, Event::StartNode(node));
        }
    }

    /// In some runs a disk is full while its node believes the claims of clients.
    fn fill_disk(&mut self, node: usize) {
        let it = &self.nodes[node];
        let believes = it.process.as_ref().is_some_and(|it| it.sessions.reclaiming().is_some());
        if self.context.settings.fills && believes {
            log!(self.context, "the disk of n{node} is full");
            it.disk.borrow_mut().trouble = Some(DiskTrouble::Full);
            let mended = self.context.now + self.context.settings.deadline();
            self.context.queue.push(mended, Event::MendDisk(node));
        }
    }

    pub(super) fn start_client(&mut self, client: usize) {
        let machine = self.clients[client].machine;
        let running = self.clients[client].process.is_some();
        if running || self.plan == Plan::Leave || self.is_cut_off(client) {
            return;
        }
        let off = self.nodes.get(machine).map_or(0, |node| node.off);
        if off > self.context.now {
            return self.context.queue.push(off, Event::StartClient(client));
        }
        let clock = self.clock(machine, client);
        self.clients[client].start(&mut self.context, clock);
        self.runs(Lane::Client(client));
    }

    /// Note for the picture that a process runs.
    fn runs(&mut self, lane: Lane) {
        if let Some(story) = &mut self.context.story {
            story.end(self.context.now, lane, &State::Off);
        }
    }

    fn clock(&self, machine: usize, client: usize) -> Clock {
        let clock = self.clients[client].clock;
        self.nodes.get(machine).map_or(clock, |node| clock.started_with(node.clock))
    }

    /// The process of a client is killed. Its children may go on.
    pub(super) fn kill_client(&mut self, client: usize) {
        let now = self.context.now;
        let it = &self.clients[client];
        if it.process.is_none() {
            return;
        }
        log!(self.context, "c{client} is killed");
        let (start, machine) = (it.starts, it.machine);
        let inherits = it.setting.life == LifeSetting::Inherited
            && self.plan == Plan::Compete
            // Children that nobody tells that the membership of their node is over do not know it.
            && self.context.register.is_none()
            && self.context.random.percent(60);
        if !inherits {
            self.end_client(client);
            return self.look_around(machine);
        }
        let bound = it.setting.ttl.as_secs() > 100_000;
        let settings = std::rc::Rc::clone(&self.context.settings);
        // With a time to live, children keep the session only by the connection that they inherit.
        let keeps = bound || it.is_connected();
        let believed =
            |held: &HeldGrant| keeps && it.believes(now, &settings.locks[held.lock].name, *held);
        let held = it.process.iter().flat_map(|process| &process.held);
        let (held, over): (Vec<HeldGrant>, Vec<HeldGrant>) = held.partition(|held| believed(held));
        log!(self.context, "c{client} leaves children, which hold {held:?}");
        for held in over {
            self.leave(client, held.lock, held.fence);
        }
        self.clients[client].kill();
        self.children.push(Children { client, start, held, bound });
        let time = self.context.random.magnitude(10 * MS, 30 * SECOND);
        let end = (now + time).min(self.context.settings.heals);
        self.context.queue.push(end, Event::ChildrenEnd(client, start));
        self.look_around(machine);
    }

    /// End the present process of a client, with its connections and its socket.
    fn end_client(&mut self, client: usize) {
        let end = self.clients[client].end();
        for held in self.clients[client].kill() {
            self.leave(client, held.lock, held.fence);
        }
        if let Some(story) = &mut self.context.story {
            story.stop(self.context.now, Lane::Client(client));
        }
        self.end_sockets(end);
    }

    fn end_sockets(&mut self, end: End) {
        self.context.close_all(end);
        if let End::Client { client, start } = end {
            self.context.holders.retain(|_, owner| *owner != (client, start));
        }
    }

    /// The children of this start of a client end.
    pub(super) fn children_end(&mut self, client: usize, start: u64) {
        let of = |it: &Children| (it.client, it.start) == (client, start);
        let Some(at) = self.children.iter().position(of) else { return };
        log!(self.context, "the children of c{client} end");
        for held in self.children.remove(at).held {
            self.leave(client, held.lock, held.fence);
        }
        self.end_sockets(End::Client { client, start });
        self.look_around(self.clients[client].machine);
    }

    /// The connection that children inherited has ended. With a time to live, nobody can keep their
    /// session any more.
    pub(super) fn children_cut_off(&mut self, client: usize, start: u64) {
        let of = |it: &&mut Children| (it.client, it.start) == (client, start) && !it.bound;
        if let Some(children) = self.children.iter_mut().find(of) {
            for held in std::mem::take(&mut children.held) {
                self.leave(client, held.lock, held.fence);
            }
        }
    }

    /// Whether a process exists for this evidence.
    pub(super) fn exists(&self, evidence: &Evidence) -> bool {
        match evidence {
            Evidence::Process(process) => self
                .clients
                .iter()
                .any(|client| client.process.as_ref().is_some_and(|it| it.pid == process.pid)),
            Evidence::Holder(secret, _) => self.context.holders.contains_key(&secret.holder()),
        }
    }

    /// A process of this machine has ended: tell the node of the machine, if it watches it.
    fn look_around(&mut self, machine: usize) {
        let Some(process) = self.nodes.get(machine).and_then(|node| node.process.as_ref()) else {
            return;
        };
        let start = process.start;
        let gone = process.watched.iter().filter(|(_, evidence)| !self.exists(evidence));
        for session in gone.map(|(session, _)| *session).collect::<Vec<_>>() {
            let after = self.context.random.between(0, 100_000);
            self.context.node(after, machine, start, NodeEvent::ProcessEnded(session));
        }
    }

    /// The machine of a node crashes, and is off for a while.
    pub(super) fn crash(&mut self, node: usize) {
        log!(self.context, "the machine of n{node} crashes");
        for client in 0..self.clients.len() {
            if self.clients[client].machine == node {
                for start in 0..=self.clients[client].starts {
                    self.children_end(client, start);
                }
                if self.clients[client].process.is_some() {
                    self.end_client(client);
                    let at = self.context.now + 2 * SECOND;
                    self.context.queue.push(at, Event::StartClient(client));
                }
            }
        }
        self.check_ledger(node);
        self.books.iter_mut().for_each(Book::forget_breaks);
        let off = self.context.now + self.context.random.magnitude(100 * MS, 20 * SECOND);
        self.nodes[node].crash(&mut self.context, off);
        self.check_kept();
        self.context.queue.push(off, Event::StartNode(node));
    }
}
