//! Maekawa, "A √N Algorithm for Mutual Exclusion in Decentralized Systems", ACM Transactions on
//! Computer Systems 3(2), 1985, section 10.
//!
//! A node locks the members of its quorum one after the other, each only after the one before has
//! answered, and all nodes keep to one order. So no nodes ever wait in a circle, and numbers,
//! FAILED, INQUIRE and RELINQUISH are not needed. The price is time: K−1 round trips.
//!
//! # Rules
//!
//! 1. To ask: send REQUEST to the first member of the quorum.
//! 2. On REQUEST: if unlocked, lock for it and answer LOCKED; else queue it.
//! 3. On LOCKED: send REQUEST to the next member; after the last, enter.
//! 4. To leave: send RELEASE to all of the quorum.
//! 5. On RELEASE: lock for the first in the queue, if any, and send it LOCKED.
//!
//! # Why it is right
//!
//! If two nodes were inside, a common member would be locked for both. The node that has the
//! highest lock of all waits for no other, since every later member is free; so there is always
//! progress. Queues are served in order, so every node gets its turn. The order of delivery does
//! not matter.
//!
//! # Flaws of the printed text
//!
//! The text does not say that a node must lock itself at its own place in the order. If nodes lock
//! themselves first, because that costs nothing, they may wait in a circle: two nodes do so after 4
//! steps.
//!
//! # Variant maekawa-sequential-self-first
//!
//! - Rules 1 and 3: a node locks itself first, if it is a member of its quorum, and then the other
//!   members in the order of their numbers. So the order is not the same for all nodes.

use core::marker::PhantomData;

use super::maekawa::gate::Gate;
use super::maekawa::{Repaired, Rules as _, cost};
use super::prelude::*;

/// The messages of Maekawa's sequential algorithm.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    /// Lock yourself for me.
    Request,
    /// I am locked for you.
    Locked,
    /// I have left.
    Release,
}

/// In which order the members are locked.
pub trait Order: Clone + core::fmt::Debug + Eq + core::hash::Hash + Send + Sync + 'static {
    /// What the variant says of itself.
    const INFO: Info;
    /// Whether a node locks itself first.
    const SELF_FIRST: bool;
}

/// The order of the nodes' numbers, which is the same for all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ascending {}

impl Order for Ascending {
    const INFO: Info = Info {
        name: "maekawa-sequential",
        summary: "lock a quorum member by member, all nodes in the same order",
        channel: Channel::Unordered,
        withdraws: false,
        messages: Claim {
            least: cost::LEAST,
            most: Formula { text: "3(K-1)", of: |group| 3.0 * cost::most(group, cost::others) },
            per: Per::Entry,
            light: Some(cost::LIGHT),
            heavy: None,
        },
        ..Repaired::INFO
    };
    const SELF_FIRST: bool = false;
}

/// The node itself, then the others in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SelfFirst {}

impl Order for SelfFirst {
    const INFO: Info = Info {
        name: "maekawa-sequential-self-first",
        summary: "maekawa-sequential where each node locks itself first",
        refuted: Some("deadlock, with two nodes in 4 steps"),
        served: false,
        ..Ascending::INFO
    };
    const SELF_FIRST: bool = true;
}

/// The state of one node in Maekawa's sequential algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MaekawaSequential<O: Order = Ascending> {
    me: NodeId,
    /// The turn whose quorum the present or next request goes to.
    turn: u32,
    /// The number of members locked for our request, from `acquire` to `release`.
    locked: Option<u32>,
    /// The part that answers as a member of other nodes' quorums.
    gate: Gate<NodeId>,
    order: PhantomData<O>,
}

/// The refuted variant in which each node locks itself first.
pub type MaekawaSequentialSelfFirst = MaekawaSequential<SelfFirst>;

impl<O: Order> Algorithm for MaekawaSequential<O> {
    type Message = Message;

    const INFO: Info = O::INFO;

    fn new(me: NodeId, group: &Group, start: &Start) -> Self {
        let locked = start.holder(me).map(|_| group.quorum(me, 0).len() as u32);
        let ours = |node: &NodeId| group.quorum(*node, 0).binary_search(&me).is_ok();
        let gate = Gate::locked_for(start.holders.iter().map(|holder| holder.node).find(ours));
        Self { me, turn: 0, locked, gate, order: PhantomData }
    }

    fn acquire(&mut self, group: &Group, _mode: Mode, out: &mut Effects<Message>) {
        self.locked = Some(0);
        self.ask(group, out);
    }

    fn receive(
        &mut self,
        group: &Group,
        from: NodeId,
        message: Message,
        out: &mut Effects<Message>,
    ) {
        let handled = match message {
            Message::Request => self.gate.request(from).map(|locked| locked.then_some(from)),
            Message::Release => self.gate.release(|owner| owner == from),
            Message::Locked if self.awaited(group) == Some(from) => Ok(Some(self.me)),
            Message::Locked => Err("a lock that we do not wait for"),
        };
        match handled {
            Err(reason) => out.reject(reason),
            Ok(None) => {}
            Ok(Some(node)) if node == self.me => self.advance(group, out),
            Ok(Some(node)) => out.send(node, Message::Locked),
        }
    }

    fn release(&mut self, group: &Group, out: &mut Effects<Message>) {
        self.locked = None;
        let quorum = group.quorum(self.me, self.turn);
        out.send_all(quorum.iter().copied().filter(|node| *node != self.me), &Message::Release);
        if let Ok(Some(next)) = self.gate.release(|owner| owner == self.me) {
            out.send(next, Message::Locked);
        }
        self.turn = (self.turn + 1) % group.turns();
    }

    fn wanted(&self) -> bool {
        true // Other nodes may wait at members that do not tell us.
    }

    fn floor(&self) -> Option<u64> {
        self.gate.is_free().then_some(0)
    }

    fn serves(message: &Message, from: NodeId, to: NodeId) -> Option<NodeId> {
        match message {
            Message::Request => Some(from),
            Message::Locked => Some(to),
            Message::Release => None,
        }
    }
}

impl<O: Order> MaekawaSequential<O> {
    /// The member whose lock comes next.
    fn awaited(&self, group: &Group) -> Option<NodeId> {
        let quorum = group.quorum(self.me, self.turn);
        let place = self.locked? as usize;
        match quorum.binary_search(&self.me) {
            Ok(_) if O::SELF_FIRST && place == 0 => Some(self.me),
            Ok(own) if O::SELF_FIRST && place <= own => quorum.get(place - 1).copied(),
            _ => quorum.get(place).copied(),
        }
    }

    /// Count one more member that is locked for us, and go on.
    fn advance(&mut self, group: &Group, out: &mut Effects<Message>) {
        self.locked = self.locked.map(|locked| locked + 1);
        self.ask(group, out);
    }

    /// Ask the next member, or enter after the last. A node asks itself without a message.
    fn ask(&mut self, group: &Group, out: &mut Effects<Message>) {
        match self.awaited(group) {
            None => out.enter(),
            Some(member) if member != self.me => out.send(member, Message::Request),
            Some(me) => {
                if self.gate.request(me) == Ok(true) {
                    self.advance(group, out);
                }
            }
        }
    }
}
