//! Maekawa, "A √N Algorithm for Mutual Exclusion in Decentralized Systems", ACM Transactions on
//! Computer Systems 3(2), 1985.
//!
//! Each node has a set S of K nodes, its quorum, and any two sets have a member in common. A node
//! enters when every member of S is locked for it. A member is locked for one request at a time,
//! the oldest first. When an older request finds a member locked, the member inquires whether it
//! can have the lock back, and a node that knows that it must wait elsewhere relinquishes the lock.
//! With K near √N, an entry costs about 3√N messages.
//!
//! # Rules
//!
//! 1. To ask: take a number above every one seen and send REQUEST to all of S.
//! 2. On REQUEST: if unlocked, lock for it and answer LOCKED. Else queue it. If the request that
//!    has the lock or a queued one is older, answer FAILED. Else send INQUIRE to the node that has
//!    the lock; if that was done already, send FAILED instead to the request that was the oldest in
//!    the queue.
//! 3. On INQUIRE about the present request, while waiting: answer RELINQUISH if some member has
//!    said FAILED or been relinquished, and has not been LOCKED since; else wait until one says
//!    FAILED. While inside, or about a past request: give no answer, since RELEASE answers it.
//! 4. On RELINQUISH: queue the request that has the lock, and lock for the oldest: LOCKED.
//! 5. On the last LOCKED: enter.
//! 6. To leave: send RELEASE to all of S.
//! 7. On RELEASE: lock for the oldest queued request, if any: LOCKED.
//!
//! LOCKED carries the member's highest number. Without it, a node that is not a member of busy
//! nodes' sets would not learn their numbers, and would ask again and again with a low one. With
//! it, a node overtakes a request that a common member knows at most once.
//!
//! # Why it is right
//!
//! If two nodes were inside, a common member would be locked for both. For progress, start at the
//! oldest request and go on from each request to one that has a lock it lacks. As long as none of
//! them has been told FAILED, each is the oldest waiting at that member, so the next is younger and
//! is inquired. The path ends at a node that enters and leaves, or at one that was told FAILED,
//! which relinquishes. Channels must be FIFO: an INQUIRE that overtakes its LOCKED would be taken
//! for a stale one.
//!
//! # Withdrawal
//!
//! The paper has no way to give a request up. Here a client may, and its locks then keep no other
//! node waiting:
//!
//! 8. To give up: send RELEASE to the members that are locked for the request. When another member
//!    says LOCKED, send RELEASE to it at once. Ignore FAILED and INQUIRE.
//! 9. A client that asks again waits until every member has said LOCKED. Then rule 1 holds.
//!
//! LOCKED does not say to which request it belongs. It need not: every request is answered by one
//! LOCKED that is not relinquished, and the next one is made only after that.
//!
//! # Flaws of the printed text
//!
//! - A request that was the oldest when it came, and is then displaced by a still older one, is not
//!   told FAILED: deadlock, with three nodes in 8 steps, on the paper's own 7-node sets in 18.
//! - A late INQUIRE is taken for one about the next request: two nodes inside. Here it is numbered.
//! - The text leaves open whether LOCKED takes back an earlier FAILED. If it does, a relinquished
//!   lock must count as refused, or there is deadlock again.
//! - The common textbook rule, FAILED only if the request that has the lock is older, also leads to
//!   deadlock.
//! - Section 6.3 says that at most K-1 requests are served at a member while another one waits
//!   there, because later requests have larger numbers. They need not: a node learns numbers only
//!   from requests that it receives. With K = 3, three are served after 24 steps (`doorway story
//!   maekawa-waiting-bound`). With the printed messages there is no bound at all.
//!
//! # Variant maekawa-printed
//!
//! - Rule 2: if INQUIRE is done already, the request that was the oldest is told nothing.
//! - Rule 3: INQUIRE names no request, so one that arrives late, about a past request, is taken for
//!   one about the present request.
//! - Rule 4: RELINQUISH is accepted from any node, even from one that does not have the lock.
//!
//! Unlike in print, its LOCKED carries a number here too, and its INQUIRE has one that no node
//! reads. Neither changes which of these flaws are found.
//!
//! # Variant maekawa-textbook
//!
//! - Rule 2: FAILED is answered only if the lock is older. A request that is behind an older one in
//!   the queue is told nothing, and neither is one that is displaced by a still older one.

use core::marker::PhantomData;

use super::prelude::*;

pub mod arbiter;
pub mod cost;
pub mod gate;
pub mod requester;
pub mod rules;
mod settle;

use arbiter::{Answer, Arbiter};
use requester::Requester;
pub use rules::{Printed, Repaired, Rules, Textbook};

/// The messages of Maekawa's algorithm.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    /// Lock yourself for my request of this number.
    Request(u64),
    /// I am locked for you. With the highest number seen here.
    Locked(u64),
    /// An older request is before yours.
    Failed,
    /// An older request waits: will yours, of this number, succeed?
    Inquire(u64),
    /// The request of the receiver will not succeed now: take your lock back.
    Relinquish,
    /// I have left.
    Release,
}

/// The state of one node in Maekawa's algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Maekawa<R: Rules = Repaired> {
    me: NodeId,
    /// The highest number in any message sent or received.
    clock: u64,
    /// The turn whose quorum the present or next request goes to.
    turn: u32,
    /// The part that asks for this node.
    requester: R::Requester,
    /// The part that answers as a member of other nodes' quorums.
    arbiter: Arbiter,
    /// The members that have not yet been locked for the request that our client gave up.
    owing: NodeSet,
    /// Whether our client has asked again since it gave up.
    again: bool,
    rules: PhantomData<R>,
}

/// The paper as printed.
pub type MaekawaPrinted = Maekawa<Printed>;

/// The algorithm as most textbooks describe it.
pub type MaekawaTextbook = Maekawa<Textbook>;

impl<R: Rules> Algorithm for Maekawa<R> {
    type Message = Message;

    const INFO: Info = R::INFO;

    fn new(me: NodeId, group: &Group, start: &Start) -> Self {
        let requester = R::Requester::inside(start.holder(me).map(|_| start.floor));
        let arbiter = Arbiter::start(me, group, start);
        let (clock, owing) = (start.floor, NodeSet::new());
        Self { me, clock, turn: 0, requester, arbiter, owing, again: false, rules: PhantomData }
    }

    fn acquire(&mut self, group: &Group, _mode: Mode, out: &mut Effects<Message>) {
        if !self.owing.is_empty() {
            self.again = true;
            return;
        }
        self.clock += 1;
        let quorum = group.quorum(self.me, self.turn);
        self.requester.ask(self.clock, quorum);
        for &member in quorum {
            self.send(member, Message::Request(self.clock), out);
        }
    }

    fn receive(
        &mut self,
        group: &Group,
        from: NodeId,
        message: Message,
        out: &mut Effects<Message>,
    ) {
        if message.clock() >= CLOCK_LIMIT {
            return out.reject(BEYOND_LIMIT);
        }
        let to_arbiter = message.is_for_arbiter();
        let (node, member) = if to_arbiter { (from, self.me) } else { (self.me, from) };
        if !cost::asks(group, node, member) {
            return out
                .reject("a message between two nodes of which neither is in the other's quorum");
        }
        self.take(from, &message, out);
        if self.again && self.owing.is_empty() {
            self.again = false;
            self.acquire(group, Mode::Exclusive, out);
        }
    }

    fn release(&mut self, group: &Group, out: &mut Effects<Message>) {
        self.requester.leave();
        let quorum = group.quorum(self.me, self.turn);
        for &member in quorum {
            self.send(member, Message::Release, out);
        }
        self.turn = (self.turn + 1) % group.turns();
    }

    fn withdraw(&mut self, group: &Group, out: &mut Effects<Message>) {
        if core::mem::take(&mut self.again) {
            return; // The new request has not been made yet.
        }
        self.owing = self.requester.abandon();
        let quorum = group.quorum(self.me, self.turn).iter();
        let (_, locked) = quorum.copied().collect::<NodeSet>().split(&self.owing);
        for member in locked.iter() {
            self.send(member, Message::Release, out);
        }
    }

    fn wanted(&self) -> bool {
        true // A younger request may wait at a member that does not tell us.
    }

    fn floor(&self) -> Option<u64> {
        (self.arbiter.is_free() && self.owing.is_empty()).then_some(self.clock)
    }

    fn serves(message: &Message, _from: NodeId, to: NodeId) -> Option<NodeId> {
        matches!(message, Message::Locked(_)).then_some(to)
    }

    fn settle(group: &Group, snapshot: &mut Snapshot<Self>) {
        settle::settle(group, snapshot);
    }
}

impl<R: Rules> Maekawa<R> {
    fn take(&mut self, from: NodeId, message: &Message, out: &mut Effects<Message>) {
        if let Err(reason) = self.handle(from, message, out) {
            out.reject(reason);
        }
    }

    fn handle(
        &mut self,
        from: NodeId,
        message: &Message,
        out: &mut Effects<Message>,
    ) -> Result<(), &'static str> {
        if message.is_for_arbiter() {
            let reply = self.arbiter.handle::<R>(from, message)?;
            self.clock = self.clock.max(message.clock());
            if let Some((request, answer)) = reply {
                self.send(request.node, Message::answer(request, answer, self.clock), out);
            }
            return Ok(());
        }
        if !self.owing.is_empty() {
            return self.decline(from, message, out);
        }
        let reaction = self.requester.handle::<R>(from, message)?;
        self.clock = self.clock.max(message.clock());
        if reaction.enter {
            out.enter();
        }
        for member in reaction.relinquish.iter() {
            self.send(member, Message::Relinquish, out);
        }
        Ok(())
    }

    /// Handle a message about the request that our client gave up.
    fn decline(
        &mut self,
        from: NodeId,
        message: &Message,
        out: &mut Effects<Message>,
    ) -> Result<(), &'static str> {
        match message {
            Message::Locked(_) | Message::Failed if !self.owing.contains(from) => {
                return Err("an answer to no request of ours");
            }
            Message::Locked(clock) => {
                self.clock = self.clock.max(*clock);
                self.owing.remove(from);
                self.send(from, Message::Release, out);
            }
            _ => {} // The answer to INQUIRE is RELEASE, which was sent or will be.
        }
        Ok(())
    }

    /// Send a message. What a node sends to itself takes effect at once and costs no message.
    fn send(&mut self, to: NodeId, message: Message, out: &mut Effects<Message>) {
        if to == self.me {
            self.take(to, &message, out);
        } else {
            out.send(to, message);
        }
    }
}

impl Message {
    /// The message for an arbiter's answer about `request`, from a node with this clock.
    pub fn answer(request: Timestamp, answer: Answer, clock: u64) -> Self {
        match answer {
            Answer::Locked => Self::Locked(clock),
            Answer::Failed => Self::Failed,
            Answer::Inquire => Self::Inquire(request.clock),
        }
    }

    /// The number that the receiver learns from it, so that its next request is younger.
    pub fn clock(&self) -> u64 {
        if let Self::Request(clock) | Self::Locked(clock) = self { *clock } else { 0 }
    }

    /// Call `each` with the sequence numbers in it.
    pub fn numbers(&mut self, each: NumberVisitor<'_>) {
        if let Self::Request(clock) | Self::Locked(clock) | Self::Inquire(clock) = self {
            each(clock);
        }
    }

    /// Whether it is for the receiver's arbiter, and not for its requester.
    pub fn is_for_arbiter(&self) -> bool {
        matches!(self, Self::Request(_) | Self::Relinquish | Self::Release)
    }
}
