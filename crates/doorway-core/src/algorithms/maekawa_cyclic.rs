//! Maekawa, "A √N Algorithm for Mutual Exclusion in Decentralized Systems", ACM Transactions on
//! Computer Systems 3(2), 1985, section 10.
//!
//! The members of a quorum are locked one after the other, in one order of all nodes, as in
//! `maekawa-sequential`. But instead of answering each time, a member that is locked for a request
//! passes it on to the next member, and the last one sends it back. That saves half the messages
//! and half the time.
//!
//! # Rules
//!
//! 1. To ask: send REQUEST to the first member of the quorum.
//! 2. On REQUEST by node i: if unlocked, lock for it and pass it on; else queue it.
//! 3. To pass on: send REQUEST to the next member of i's quorum; the last one sends LOCKED to i.
//! 4. On LOCKED, or on having locked itself as the last member: enter.
//! 5. To leave: send RELEASE to all of the quorum.
//! 6. On RELEASE: lock for the first in the queue, if any, and pass it on.
//!
//! # Why it is right
//!
//! If two nodes were inside, a common member would be locked for both. Locks are taken in one
//! order, so no nodes wait in a circle, and queues are served in order. The order of delivery does
//! not matter.
//!
//! # Flaws of the printed text
//!
//! K passes are enough only for a node that is the first or the last of its quorum. The request of
//! any other node passes that node itself on the way, which takes K+1.

use super::maekawa::gate::Gate;
use super::maekawa::{Repaired, Rules as _, cost};
use super::prelude::*;

/// The messages of the paper, with a name of its own for the REQUEST that comes back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    /// Lock yourself for this request and pass it on.
    Request(Visit),
    /// All members are locked for you.
    Locked,
    /// I have left.
    Release,
}

/// A request on its way round a quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Visit {
    /// The node that asked.
    pub node: NodeId,
    /// The turn whose quorum it visits.
    pub turn: u32,
}

/// The state of one node in Maekawa's cyclic algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MaekawaCyclic {
    me: NodeId,
    /// The turn whose quorum the present or next request goes to.
    turn: u32,
    /// Whether our request is on its way.
    waiting: bool,
    /// The part that answers as a member of other nodes' quorums.
    gate: Gate<Visit>,
}

/// The cost of one entry: the passes of the REQUEST, and a RELEASE to each other member.
fn entry(node: NodeId, quorum: &[NodeId]) -> f64 {
    let passes = match (quorum.first(), quorum.last()) {
        (Some(first), Some(last)) if *first == node && *last == node => 0,
        (first, last) if first == Some(&node) || last == Some(&node) => quorum.len(),
        _ => quorum.len() + 1,
    };
    passes as f64 + cost::others(node, quorum)
}

impl Algorithm for MaekawaCyclic {
    type Message = Message;

    const INFO: Info = Info {
        name: "maekawa-cyclic",
        summary: "a request visits its quorum, locks each member, and comes back",
        channel: Channel::Unordered,
        withdraws: false,
        messages: Claim {
            least: Formula { text: "2K-1", of: |group| cost::least(group, entry) },
            most: Formula { text: "2K", of: |group| cost::most(group, entry) },
            per: Per::Entry,
            light: Some(Formula { text: "2K-1 or 2K", of: |group| cost::mean(group, entry) }),
            heavy: None,
        },
        ..Repaired::INFO
    };

    fn new(me: NodeId, group: &Group, start: &Start) -> Self {
        let ours = |node: &NodeId| group.quorum(*node, 0).binary_search(&me).is_ok();
        let holder = start.holders.iter().map(|holder| holder.node).find(ours);
        let gate = Gate::locked_for(holder.map(|node| Visit { node, turn: 0 }));
        Self { me, turn: 0, waiting: false, gate }
    }

    fn acquire(&mut self, group: &Group, _mode: Mode, out: &mut Effects<Message>) {
        self.waiting = true;
        let visit = Visit { node: self.me, turn: self.turn };
        match group.quorum(self.me, self.turn) {
            [first, ..] if *first != self.me => out.send(*first, Message::Request(visit)),
            _ => {
                if self.gate.request(visit) == Ok(true) {
                    self.pass(group, visit, out);
                }
            }
        }
    }

    fn receive(
        &mut self,
        group: &Group,
        from: NodeId,
        message: Message,
        out: &mut Effects<Message>,
    ) {
        let handled = match message {
            Message::Request(visit) if !self.expects(group, visit) => {
                Err("a request that is not expected here")
            }
            Message::Request(visit) => {
                self.gate.request(visit).map(|locked| locked.then_some(visit))
            }
            Message::Release => self.gate.release(|owner| owner.node == from),
            Message::Locked => {
                let last = group.quorum(self.me, self.turn).last() == Some(&from);
                if !(self.waiting && last) {
                    return out.reject("a lock that we do not wait for");
                }
                return self.enter(out);
            }
        };
        match handled {
            Err(reason) => out.reject(reason),
            Ok(next) => next.into_iter().for_each(|visit| self.pass(group, visit, out)),
        }
    }

    fn release(&mut self, group: &Group, out: &mut Effects<Message>) {
        let quorum = group.quorum(self.me, self.turn);
        out.send_all(quorum.iter().copied().filter(|node| *node != self.me), &Message::Release);
        if let Ok(Some(next)) = self.gate.release(|owner| owner.node == self.me) {
            self.pass(group, next, out);
        }
        self.turn = (self.turn + 1) % group.turns();
    }

    fn wanted(&self) -> bool {
        true // Other nodes may wait at members that do not tell us.
    }

    fn floor(&self) -> Option<u64> {
        self.gate.is_free().then_some(0)
    }

    fn serves(message: &Message, _from: NodeId, to: NodeId) -> Option<NodeId> {
        match message {
            Message::Request(visit) => Some(visit.node),
            Message::Locked => Some(to),
            Message::Release => None,
        }
    }
}

impl MaekawaCyclic {
    /// Whether this request may come to us: we are in that quorum, no request of its node waits
    /// here, and our own comes only while we wait.
    fn expects(&self, group: &Group, visit: Visit) -> bool {
        let ours = visit == Visit { node: self.me, turn: self.turn };
        let mut quorums = cost::quorums(group, visit.node);
        group.contains(visit.node)
            && quorums.nth(visit.turn as usize).is_some_and(|q| q.binary_search(&self.me).is_ok())
            && !self.gate.awaits(|waiting| waiting.node == visit.node)
            && (visit.node != self.me || (ours && self.waiting && !self.gate.is_locked_for(visit)))
    }

    /// Pass on the request for which we are locked: to the next member, or back to its node.
    fn pass(&mut self, group: &Group, visit: Visit, out: &mut Effects<Message>) {
        let quorum = group.quorum(visit.node, visit.turn);
        match quorum.iter().find(|member| **member > self.me) {
            Some(next) => out.send(*next, Message::Request(visit)),
            None if visit.node == self.me => self.enter(out),
            None => out.send(visit.node, Message::Locked),
        }
    }

    fn enter(&mut self, out: &mut Effects<Message>) {
        self.waiting = false;
        out.enter();
    }
}
