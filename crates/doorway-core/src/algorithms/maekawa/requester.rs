//! The requester's half of Maekawa's algorithm: what a node does to get in.

use core::fmt::Debug;
use core::hash::Hash;

use super::{Message, Rules};
use crate::algorithms::prelude::*;

/// What a requester does about a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reaction {
    /// Are all members locked for it now? Then enter.
    pub enter: bool,
    /// Whom to send RELINQUISH.
    pub relinquish: NodeSet,
}

/// One request: how it takes what the members of its quorum say.
pub trait Requester: Clone + Debug + Eq + Hash + Send + Sync {
    /// A requester that is inside, if there is a `number`.
    fn inside(number: Option<u64>) -> Self;

    /// Ask `members` for their locks.
    fn ask(&mut self, number: u64, members: &[NodeId]);

    /// A message for the requester has come.
    fn hear<R: Rules>(&mut self, member: NodeId, message: &Message) -> Result<Reaction, &'static str> {
        let mut reaction = Reaction::default();
        match message {
            Message::Locked(_) => reaction.enter = self.locked::<R>(member)?,
            Message::Failed => reaction.relinquish = self.failed::<R>(member)?,
            Message::Inquire(number) if self.inquire::<R>(member, *number) => {
                reaction.relinquish.insert(member);
            }
            Message::Inquire(_) => {}
            _ => return Err("not for a requester"),
        }
        Ok(reaction)
    }

    /// LOCKED has come; true if it was the last one needed.
    fn locked<R: Rules>(&mut self, member: NodeId) -> Result<bool, &'static str>;

    /// FAILED has come; returns whom to send RELINQUISH.
    fn failed<R: Rules>(&mut self, member: NodeId) -> Result<NodeSet, &'static str>;

    /// INQUIRE about our request of this `number` has come; true if RELINQUISH is the answer.
    fn inquire<R: Rules>(&mut self, member: NodeId, number: u64) -> bool;

    /// Leave.
    fn leave(&mut self);

    /// Can an INQUIRE about our request of this `number` still be answered?
    fn heeds(&self, number: u64) -> bool;

    /// The number of the request.
    fn numbers(&mut self, each: NumberVisitor<'_>);
}

/// Knows the members by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ByName {
    /// The number of our request, from `acquire` to `release`.
    number: Option<u64>,
    /// The members not locked for it: nobody is missing while inside, and outside.
    missing: NodeSet,
    /// Those of them that said FAILED or got their lock back. While there are any, we wait for
    /// others and must not make others wait.
    refused: NodeSet,
    /// The members whose INQUIRE we have not answered yet, since nobody refused.
    inquiries: NodeSet,
}

impl Requester for ByName {
    fn inside(number: Option<u64>) -> Self {
        Self { number, ..Self::default() }
    }

    fn ask(&mut self, number: u64, members: &[NodeId]) {
        self.number = Some(number);
        self.missing = members.iter().copied().collect();
    }

    fn locked<R: Rules>(&mut self, member: NodeId) -> Result<bool, &'static str> {
        if !self.missing.remove(member) {
            let surplus = "a lock that we did not wait for";
            return if R::GUARDED { Err(surplus) } else { Ok(false) };
        }
        self.refused.remove(member);
        if self.missing.is_empty() {
            self.inquiries.clear(); // RELEASE will answer them.
        }
        Ok(self.missing.is_empty())
    }

    fn failed<R: Rules>(&mut self, member: NodeId) -> Result<NodeSet, &'static str> {
        if !self.missing.contains(member) {
            return Err("a refusal of what we did not ask for");
        }
        self.refused.insert(member);
        let inquiries = core::mem::take(&mut self.inquiries);
        inquiries.iter().for_each(|member| self.give_back::<R>(member));
        Ok(inquiries)
    }

    fn inquire<R: Rules>(&mut self, member: NodeId, number: u64) -> bool {
        let stale = self.number != Some(number) || self.missing.contains(member);
        if self.missing.is_empty() || (stale && R::IGNORE_STALE) {
            return false; // RELEASE is the answer, or was.
        }
        let yields = R::EAGER || !self.refused.is_empty();
        if yields {
            self.give_back::<R>(member);
        } else {
            self.inquiries.insert(member);
        }
        yields
    }

    fn leave(&mut self) {
        self.number = None;
    }

    fn heeds(&self, number: u64) -> bool {
        self.number == Some(number) && !self.missing.is_empty()
    }

    fn numbers(&mut self, each: NumberVisitor<'_>) {
        self.number.iter_mut().for_each(each);
    }
}

impl ByName {
    fn give_back<R: Rules>(&mut self, member: NodeId) {
        self.missing.insert(member);
        if R::COUNT_RELINQUISHED && !R::EAGER {
            self.refused.insert(member);
        }
    }

    /// The arbiter of `member` is lost and another one takes over: returns our open request's
    /// number, and whether it has that lock. What the old one said besides means nothing any more.
    pub fn recover(&mut self, member: NodeId) -> Option<(u64, bool)> {
        self.refused.remove(member);
        self.inquiries.remove(member);
        self.number.map(|number| (number, !self.missing.contains(member)))
    }
}
