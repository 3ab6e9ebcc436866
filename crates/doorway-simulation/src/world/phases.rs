//! The phases of a run, and what must be true at the end of each.

use super::World;
use crate::client::{Client, ClientEvent, Plan};
use crate::clock::SECOND;
use crate::context::{Event, log};
use crate::network::Traffic;
use crate::node::Node;
use crate::settings::Outage;
use crate::story::Lane;

/// How long after the end of all faults every client must have entered, and how long after that
/// every request must have its answer.
pub const LIVENESS: u64 = 120 * SECOND;

/// How long a node that stays away is suspended or isolated: for the rest of the run.
const FOREVER: u64 = 3600 * SECOND;

/// How long the clients of a node that is drained may take to leave it, which is longer than every
/// time to live.
const DRAIN: u64 = 20 * SECOND;

/// How long after clients began to leave nothing may be left of them.
const CLEAN: u64 = 40 * SECOND;

impl World {
    /// Check that the ledger of a node has every grant of its sessions.
    pub(super) fn check_ledger(&mut self, node: usize) {
        self.nodes[node].check_ledger(&mut self.context, |_| true);
    }

    /// All faults end.
    pub(super) fn heal(&mut self) {
        log!(self.context, "all faults end");
        self.plan = Plan::Healed;
        self.context.network.heal();
        self.late_hellos.clear();
        let now = self.context.now;
        if self.context.register.is_some() {
            self.leave_one_away();
        }
        self.heal_register();
        for node in 0..self.nodes.len() {
            self.check_ledger(node);
            let mut disk = self.nodes[node].disk.borrow_mut();
            disk.mend();
            disk.crash_in_sync = false;
            drop(disk);
            self.context.queue.push(now, Event::StartNode(node));
        }
        for client in 0..self.clients.len() {
            self.context.queue.push(now, Event::StartClient(client));
        }
        // Both ends notice now that a connection is broken, even if nobody told them before.
        let wires: Vec<_> = self.context.network.pipes.keys().copied().collect();
        for wire in wires {
            if self.context.network.pipes.get(&wire).is_some_and(|pipe| pipe.broken) {
                for side in 0..2 {
                    let event = Event::Traffic(Traffic::Ended(wire, side));
                    self.context.queue.push(now + SECOND, event);
                }
            }
        }
        self.context.queue.push(now + 10 * SECOND, Event::Deadline(now + LIVENESS));
        if self.context.settings.endless {
            self.context.queue.push(now + SECOND, Event::Sweep);
        }
    }

    /// In some groups with agreed members, one node stays away.
    fn leave_one_away(&mut self) {
        let Some(outage) = self.context.settings.outage else { return };
        let node = self.context.random.below(self.nodes.len() as u64) as usize;
        log!(self.context, "n{node} stays away: {outage:?}");
        let forever = self.context.now + FOREVER;
        match outage {
            Outage::Burnt => self.crash(node),
            Outage::Isolated => self.isolate(node, forever),
            Outage::Suspended => self.pause(Lane::Node(node), forever),
        }
        self.cut_off(node);
    }

    /// A node stays away from now on. The clients that know no other node are gone too.
    fn cut_off(&mut self, node: usize) {
        self.away = Some(node);
        for client in 0..self.clients.len() {
            if self.is_cut_off(client) {
                self.kill_client(client);
            }
        }
    }

    /// Whether a client knows only a node that stays away.
    pub(super) fn is_cut_off(&self, client: usize) -> bool {
        let setting = &self.clients[client].setting;
        self.away.is_some_and(|away| setting.nodes.iter().all(|node| *node == away))
    }

    /// In some groups with a fixed list of members, a node is drained, and never comes back. The
    /// others can go on without it, because it has nothing of theirs.
    fn drain_one(&mut self) {
        let node = self.context.random.below(self.nodes.len() as u64) as usize;
        log!(self.context, "n{node} is drained, and its machine never comes back");
        self.cut_off(node);
        self.nodes[node].drain_for_good(&mut self.context, DRAIN);
        self.context.queue.push(self.context.now + DRAIN + SECOND, Event::Burnt(node));
    }

    /// The machine of a node that was drained is gone. All other clients must enter once more.
    pub(super) fn burnt(&mut self, node: usize) {
        self.crash(node);
        self.clients.iter_mut().for_each(|client| client.entered = false);
        let now = self.context.now;
        self.context.queue.push(now + SECOND, Event::Deadline(now + LIVENESS));
    }

    /// Check whether the phase has reached its goal. It must have reached it at this time.
    pub(super) fn deadline(&mut self, until: u64) {
        let done = match self.plan {
            Plan::Healed => |client: &Client| client.entered,
            Plan::Finish => Client::is_idle,
            Plan::Compete | Plan::Leave => return,
        };
        let now = self.context.now;
        let served = self.clients.iter().filter(|client| !self.is_cut_off(client.id));
        let late: Vec<_> = served.filter(|client| !done(client)).collect();
        if late.is_empty() {
            return self.next_phase();
        }
        if now < until {
            return self.context.queue.push(now + 2 * SECOND, Event::Deadline(until));
        }
        let late = late.iter().map(|client| format!("c{} ({})", client.id, client.unanswered()));
        let late = late.collect::<Vec<_>>().join(", ");
        let seconds = LIVENESS / SECOND;
        self.context.violate(match self.plan {
            Plan::Finish => {
                format!("{seconds} s after the last request these have no answer: {late}")
            }
            _ => format!("{seconds} s after the last fault these have not entered: {late}"),
        });
    }

    fn next_phase(&mut self) {
        let fixed = self.context.register.is_none();
        if fixed && self.context.settings.outage.is_some() && self.away.is_none() {
            return self.drain_one();
        }
        let now = self.context.now;
        self.plan = if self.plan == Plan::Healed { Plan::Finish } else { Plan::Leave };
        for client in 0..self.clients.len() {
            let start = self.clients[client].starts;
            self.context.client(now, client, start, ClientEvent::Work);
        }
        if self.plan == Plan::Finish {
            log!(self.context, "every client has entered, and makes no new requests");
            return self.context.queue.push(now + 2 * SECOND, Event::Deadline(now + LIVENESS));
        }
        log!(self.context, "every request has its answer, and all clients leave");
        for client in 0..self.clients.len() {
            self.context.queue.push(now + 5 * SECOND, Event::Retire(client));
        }
        self.context.queue.push(now + CLEAN, Event::End);
    }

    /// Check that nothing is left of any client.
    pub(super) fn end(&mut self) {
        self.over = true;
        let mut there = self.nodes.iter().filter(|node| self.away != Some(node.id));
        if let Some(what) = there.find_map(Node::remains) {
            self.context.violate(format!("all clients have left, but not all is gone: {what}"));
        }
        let kept = self.context.register.as_ref().and_then(|register| {
            let mut holds = register.state.holds.iter();
            holds.find(|(_, hold)| hold.length_ms.is_none()).map(|(id, _)| id.clone())
        });
        if let Some(id) = kept {
            self.context.violate(format!("all clients have left, but the group keeps {id:?}"));
        }
    }
}
