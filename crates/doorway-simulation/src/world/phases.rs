//! The phases of a run, and what must be true at the end of each.

use super::World;
use crate::client::{Client, ClientEvent, Plan};
use crate::clock::SECOND;
use crate::context::{Event, log};
use crate::network::Traffic;
use crate::node::Node;

/// How long after the end of all faults every client must have entered, and how long after that
/// every request must have its answer.
pub const LIVENESS: u64 = 120 * SECOND;

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
        let now = self.context.now;
        self.burn();
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

    /// One machine of several may never come back. Clients that know no other node are gone too.
    fn burn(&mut self) {
        let burns = self.context.settings.agreed.as_ref().is_some_and(|agreed| agreed.burns);
        if !burns || self.nodes.len() < 2 {
            return;
        }
        let node = self.context.random.below(self.nodes.len() as u64) as usize;
        log!(self.context, "the machine of n{node} never comes back");
        self.crash(node);
        self.burnt = Some(node);
        for client in 0..self.clients.len() {
            if self.is_cut_off(client) {
                self.kill_client(client);
            }
        }
    }

    /// Whether a client knows only a node that never comes back.
    pub(super) fn is_cut_off(&self, client: usize) -> bool {
        let setting = &self.clients[client].setting;
        self.burnt.is_some_and(|burnt| setting.nodes.iter().all(|node| *node == burnt))
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
        if let Some(what) = self.nodes.iter().find_map(Node::remains) {
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
