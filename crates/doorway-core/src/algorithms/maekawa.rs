//! Maekawa, "A √N Algorithm for Mutual Exclusion in Decentralized Systems", ACM Transactions on
//! Computer Systems 3(2), 1985.
//!
//! Each node has a set S of K nodes, its quorum, and any two sets meet. A node enters when every
//! member of S is locked for it; a member is locked for one request at a time, the oldest first.
//! When an older request finds a member locked, the member inquires whether the lock can be had
//! back, and who knows that it must wait elsewhere relinquishes. With K near √N, this costs 3√N.
//!
//! # Rules
//!
//! 1. To ask: take a number above every one seen and send REQUEST to all of S.
//! 2. On REQUEST: if unlocked, lock for it and answer LOCKED. Else queue it. If the lock or a
//!    queued request is older, answer FAILED. Else send INQUIRE to the node that has the lock; if
//!    that is done already, send FAILED instead to the request that was the oldest in the queue.
//! 3. On INQUIRE about the present request, waiting: answer RELINQUISH if some member has said
//!    FAILED or been relinquished, and has not been LOCKED since; else wait until one says FAILED.
//!    Inside, or about a past request: no answer, RELEASE is it.
//! 4. On RELINQUISH: queue the request that has the lock, and lock for the oldest: LOCKED.
//! 5. On the last LOCKED: enter.
//! 6. To leave: send RELEASE to all of S.
//! 7. On RELEASE: lock for the oldest queued request, if any: LOCKED.
//!
//! LOCKED carries the member's highest number, so that a node which is no member of busy sets does
//! not come again and again with a low one: it overtakes a request known to a common member once.
//!
//! # Why it is right
//!
//! Two nodes inside would have a common member locked for both. For progress, start at the oldest
//! request and go on from each to one that has a lock it lacks. As long as nobody has been told
//! FAILED, each is the oldest at that member, so it goes on to a younger one, which is inquired.
//! The way ends at a node that enters and leaves, or at one told FAILED, which relinquishes.
//! Channels must be FIFO: an INQUIRE that overtakes its LOCKED would be taken for a stale one.
//!
//! # Flaws of the printed text
//!
//! - Who came as the oldest and is then displaced by a still older request is not told FAILED:
//!   deadlock, with three nodes in 8 steps, on the paper's own 7-node sets in 18.
//! - A late INQUIRE is taken for one about the next request: two nodes inside. Here it is numbered.
//! - It is left open whether LOCKED takes FAILED back. If so, a relinquished lock must count as
//!   refused, or there is deadlock again.
//! - The common textbook rule, FAILED only if the lock is older, deadlocks as well.
//!
//! # Variant maekawa-printed
//!
//! - Rule 2: if INQUIRE is done already, the request that was the oldest is told nothing.
//! - Rule 3: INQUIRE names no request, so one that arrives late, about a past request, is taken for
//!   one about the present request.
//! - Rule 4: RELINQUISH is accepted from any node, even from one that does not have the lock.
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
mod message;
pub mod requester;
pub mod rules;
mod settle;

use arbiter::Arbiter;
pub use message::Message;
use requester::Requester;
pub use rules::{Printed, Repaired, Rules, Textbook};

/// The state of one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Maekawa<R: Rules = Repaired> {
    me: NodeId,
    /// The highest number in any request sent, received or heard of.
    clock: u64,
    /// Which of our quorums the present or next request goes to.
    turn: u32,
    /// What we do to get in.
    requester: R::Requester,
    /// What we do as a member of others' quorums.
    arbiter: Arbiter,
    rules: PhantomData<R>,
}

/// The paper as printed.
pub type MaekawaPrinted = Maekawa<Printed>;

/// The algorithm as most textbooks tell it.
pub type MaekawaTextbook = Maekawa<Textbook>;

impl<R: Rules> Algorithm for Maekawa<R> {
    type Message = Message;

    const INFO: Info = R::INFO;

    fn new(me: NodeId, group: &Group, start: &Start) -> Self {
        let requester = R::Requester::inside(start.holder(me).map(|_| start.floor));
        let arbiter = Arbiter::start(me, group, start);
        Self { me, clock: start.floor, turn: 0, requester, arbiter, rules: PhantomData }
    }

    fn acquire(&mut self, group: &Group, _mode: Mode, out: &mut Effects<Message>) {
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
            return out.reject("a message of a node that neither asks us nor is asked");
        }
        self.take(from, &message, out);
    }

    fn release(&mut self, group: &Group, out: &mut Effects<Message>) {
        self.requester.leave();
        let quorum = group.quorum(self.me, self.turn);
        for &member in quorum {
            self.send(member, Message::Release, out);
        }
        self.turn = (self.turn + 1) % group.turns();
    }

    fn wanted(&self) -> bool {
        true // A younger request waits at some member without our knowing.
    }

    fn floor(&self) -> Option<u64> {
        self.arbiter.is_free().then_some(self.clock)
    }

    fn serves(message: &Message, _from: NodeId, to: NodeId) -> Option<NodeId> {
        matches!(message, Message::Locked(_)).then_some(to)
    }

    fn settle(group: &Group, moment: &mut Moment<Self>) {
        settle::settle(group, moment);
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
            let reply = self.arbiter.hear::<R>(from, message)?;
            self.clock = self.clock.max(message.clock());
            if let Some((request, answer)) = reply {
                self.send(request.node, Message::answer(request, answer, self.clock), out);
            }
            return Ok(());
        }
        let deed = self.requester.hear::<R>(from, message)?;
        self.clock = self.clock.max(message.clock());
        if deed.enter {
            out.enter();
        }
        for member in deed.relinquish.iter() {
            self.send(member, Message::Relinquish, out);
        }
        Ok(())
    }

    /// What a node tells itself happens at once and costs nothing.
    fn send(&mut self, to: NodeId, message: Message, out: &mut Effects<Message>) {
        if to == self.me {
            self.take(to, &message, out);
        } else {
            out.send(to, message);
        }
    }
}
