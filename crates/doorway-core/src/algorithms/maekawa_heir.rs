//! Maekawa, "A √N Algorithm for Mutual Exclusion in Decentralized Systems", ACM Transactions on
//! Computer Systems 3(2), 1985, section 9.
//!
//! The algorithm of `maekawa`, and what happens when a node crashes: its heir runs the lost arbiter
//! beside its own. Only the nodes that have the crashed node in their quorum know anything about
//! that arbiter, so they tell the heir what it knew: O(√N) messages, where a central lock needs
//! O(N). Quorums stay as they are: an arbiter keeps its name, and messages say which arbiter they
//! are for.
//!
//! # Rules
//!
//! 1. As in `maekawa`, with every message sent to the node that runs the arbiter now.
//! 2. On learning that f has crashed and t is its heir: ignore f from now on and drop its request
//!    as if released. If f is in our quorum, send t RECOVER: our request, and whether it has f's
//!    lock.
//! 3. On RECOVER from the last live node with f in its quorum: lock for the request that has the
//!    lock; then take the others from the oldest to the youngest as if they had just come.
//!
//! # Why it is right
//!
//! At most one node has f's lock, since f gave it again only when it had it back. The node that has
//! it says so before the heir gives it to any other, since the heir waits for all. What arrives
//! from f after that is ignored, so no second lock is counted. The failure detector makes no
//! mistakes.

use core::fmt;

use super::maekawa::arbiter::{Answer, Arbiter};
use super::maekawa::requester::{ByName, Requester};
use super::maekawa::{Message as Plain, Repaired, Rules, cost};
use super::prelude::*;

pub mod hosted;
mod settle;

use hosted::HostedArbiters;

/// The messages of `maekawa`, and the one of section 9.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    /// To or from this node's arbiter, wherever it runs.
    About(NodeId, Plain),
    /// What the sender knows about this node's lost arbiter: the number of the sender's open
    /// request, and whether it has the lock.
    Recover(NodeId, Option<(u64, bool)>),
}

/// The state of one node in Maekawa's algorithm with heirs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MaekawaHeir {
    me: NodeId,
    /// The highest number in any message sent or received.
    clock: u64,
    /// The turn whose quorum the present or next request goes to.
    turn: u32,
    /// The part that asks for this node. Its members are arbiters, not the nodes that run them.
    requester: ByName,
    /// The arbiters that run here, and where the arbiters of crashed nodes run.
    arbiters: HostedArbiters,
}

impl Algorithm for MaekawaHeir {
    type Message = Message;

    const INFO: Info = Info {
        name: "maekawa-heir",
        summary: "maekawa where another node takes over the arbiter of a crashed one",
        survives: &[Fault::CrashOutside, Fault::CrashInside],
        withdraws: false,
        served: false, // In a service, the change of views deals with crashes for every algorithm.
        ..Repaired::INFO
    };

    fn new(me: NodeId, group: &Group, start: &Start) -> Self {
        let requester = ByName::inside(start.holder(me).map(|_| start.floor));
        let arbiters = HostedArbiters::new(me, Arbiter::start(me, group, start));
        Self { me, clock: start.floor, turn: 0, requester, arbiters }
    }

    fn acquire(&mut self, group: &Group, _mode: Mode, out: &mut Effects<Message>) {
        self.clock += 1;
        let quorum = group.quorum(self.me, self.turn);
        self.requester.ask(self.clock, quorum);
        for &arbiter in quorum {
            self.tell(arbiter, Plain::Request(self.clock), out);
        }
    }

    fn receive(&mut self, group: &Group, from: NodeId, msg: Message, out: &mut Effects<Message>) {
        if self.arbiters.crashed(from) {
            return; // The sender has crashed, and another node runs its arbiter.
        }
        let handled = match msg {
            msg if msg.clock() >= CLOCK_LIMIT => Err(BEYOND_LIMIT),
            msg if !msg.is_of_quorum(group, from, self.me) => {
                Err("a message about an arbiter that is not asked")
            }
            Message::About(arbiter, message) => self.handle(from, arbiter, &message, out),
            Message::Recover(arbiter, request) => self.recover(group, from, arbiter, request, out),
        };
        if let Err(reason) = handled {
            out.reject(reason);
        }
    }

    fn release(&mut self, group: &Group, out: &mut Effects<Message>) {
        self.requester.leave();
        let quorum = group.quorum(self.me, self.turn);
        for &arbiter in quorum {
            self.tell(arbiter, Plain::Release, out);
        }
        self.turn = (self.turn + 1) % group.turns();
    }

    fn failed(&mut self, group: &Group, node: NodeId, heir: NodeId, out: &mut Effects<Message>) {
        let lost = self.arbiters.lost(group, self.me, node);
        for (arbiter, replies) in self.arbiters.succeed(node, heir) {
            self.reply(arbiter, replies, out);
        }
        for arbiter in lost {
            let request = self.requester.recover(arbiter);
            // The heir, or the heir's own heir if it is lost too.
            let host = self.arbiters.host(arbiter);
            if host != self.me {
                out.send(host, Message::Recover(arbiter, request));
            } else if let Err(reason) = self.recover(group, host, arbiter, request, out) {
                out.reject(reason);
            }
        }
    }

    fn wanted(&self) -> bool {
        true // A younger request may wait at an arbiter that does not tell us.
    }

    fn floor(&self) -> Option<u64> {
        self.arbiters.are_fresh().then_some(self.clock)
    }

    fn serves(message: &Message, _from: NodeId, to: NodeId) -> Option<NodeId> {
        matches!(message, Message::About(_, Plain::Locked(_))).then_some(to)
    }

    fn settle(group: &Group, snapshot: &mut Snapshot<Self>) {
        settle::settle(group, snapshot);
    }
}

impl MaekawaHeir {
    fn handle(
        &mut self,
        from: NodeId,
        arbiter: NodeId,
        message: &Plain,
        out: &mut Effects<Message>,
    ) -> Result<(), &'static str> {
        if message.is_for_arbiter() {
            let reply = self.arbiters.handle(from, arbiter, message)?;
            self.clock = self.clock.max(message.clock());
            self.reply(arbiter, reply, out);
            return Ok(());
        }
        if self.arbiters.host(arbiter) != from {
            return Err("the answer of an arbiter that another node runs");
        }
        let reaction = self.requester.handle::<Repaired>(arbiter, message)?;
        self.clock = self.clock.max(message.clock());
        if reaction.enter {
            out.enter();
        }
        for arbiter in reaction.relinquish.iter() {
            self.tell(arbiter, Plain::Relinquish, out);
        }
        Ok(())
    }

    fn recover(
        &mut self,
        group: &Group,
        from: NodeId,
        arbiter: NodeId,
        request: Option<(u64, bool)>,
        out: &mut Effects<Message>,
    ) -> Result<(), &'static str> {
        let replies = self.arbiters.recover(group, from, arbiter, request)?;
        self.clock = self.clock.max(request.map_or(0, |(clock, _)| clock));
        self.reply(arbiter, replies, out);
        Ok(())
    }

    /// Send the answers of an arbiter that runs here.
    fn reply(
        &mut self,
        arbiter: NodeId,
        replies: impl IntoIterator<Item = (Timestamp, Answer)>,
        out: &mut Effects<Message>,
    ) {
        for (request, answer) in replies {
            let message = Plain::answer(request, answer, self.clock);
            self.send(request.node, arbiter, message, out);
        }
    }

    /// Send a message to an arbiter, wherever it runs.
    fn tell(&mut self, arbiter: NodeId, message: Plain, out: &mut Effects<Message>) {
        self.send(self.arbiters.host(arbiter), arbiter, message, out);
    }

    /// Send a message. What a node sends to itself takes effect at once and costs no message.
    fn send(&mut self, to: NodeId, arbiter: NodeId, message: Plain, out: &mut Effects<Message>) {
        if to != self.me {
            out.send(to, Message::About(arbiter, message));
        } else if let Err(reason) = self.handle(to, arbiter, &message, out) {
            out.reject(reason);
        }
    }
}

impl Message {
    /// The number that the receiver learns from it.
    pub fn clock(&self) -> u64 {
        match self {
            Self::About(_, message) => message.clock(),
            Self::Recover(_, request) => request.map_or(0, |(clock, _)| clock),
        }
    }

    /// Call `each` with the sequence numbers in it.
    pub fn numbers(&mut self, each: NumberVisitor<'_>) {
        match self {
            Self::About(_, message) => message.numbers(each),
            Self::Recover(_, request) => request.iter_mut().for_each(|(clock, _)| each(clock)),
        }
    }

    /// Whether its arbiter is in a quorum of the node that asks it, which is the sender or the
    /// receiver.
    pub fn is_of_quorum(&self, group: &Group, from: NodeId, to: NodeId) -> bool {
        match self {
            Self::About(arbiter, message) if !message.is_for_arbiter() => {
                cost::asks(group, to, *arbiter)
            }
            Self::About(arbiter, _) | Self::Recover(arbiter, _) => {
                cost::asks(group, from, *arbiter)
            }
        }
    }
}

/// Shows the paper's name of the message first.
impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::About(arbiter, message) => write!(f, "{message:?} arbiter {arbiter}"),
            Self::Recover(arbiter, request) => write!(f, "Recover({request:?}) arbiter {arbiter}"),
        }
    }
}
