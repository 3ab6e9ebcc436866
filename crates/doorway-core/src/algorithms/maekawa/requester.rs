//! The requester of Maekawa's algorithm: what a node does to enter.

use core::fmt::Debug;
use core::hash::Hash;

use super::{Message, Rules};
use crate::algorithms::prelude::*;

/// The reaction of a requester to a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reaction {
    /// Whether to enter: all members are locked for it now.
    pub enter: bool,
    /// The members to which to send RELINQUISH.
    pub relinquish: NodeSet,
}

/// A node's own request, and how it handles the answers of the members of its quorum.
pub trait Requester: Clone + Debug + Eq + Hash + Send + Sync {
    /// A requester that is inside with the request of this `number`, or outside without one.
    fn inside(number: Option<u64>) -> Self;

    /// Ask `members` for their locks.
    fn ask(&mut self, number: u64, members: &[NodeId]);

    /// Handle a message for the requester.
    fn handle<R: Rules>(
        &mut self,
        member: NodeId,
        message: &Message,
    ) -> Result<Reaction, &'static str> {
        let mut reaction = Reaction::default();
        match message {
            Message::Locked(_) => reaction.enter = self.locked::<R>(member)?,
            Message::Failed => reaction.relinquish = self.failed::<R>(member)?,
            Message::Inquire(number) if self.inquire::<R>(member, *number) => {
                reaction.relinquish.insert(member);
            }
            Message::Inquire(_) => {}
            _ => return Err("a message that is not for a requester"),
        }
        Ok(reaction)
    }

    /// Handle LOCKED. Returns whether it was the last one needed.
    fn locked<R: Rules>(&mut self, member: NodeId) -> Result<bool, &'static str>;

    /// Handle FAILED. Returns the members to which to send RELINQUISH.
    fn failed<R: Rules>(&mut self, member: NodeId) -> Result<NodeSet, &'static str>;

    /// Handle INQUIRE about our request of this `number`. Returns whether to answer RELINQUISH.
    fn inquire<R: Rules>(&mut self, member: NodeId, number: u64) -> bool;

    /// End the request.
    fn leave(&mut self);

    /// End the request before it was granted. Returns the members that are not locked for it.
    fn abandon(&mut self) -> NodeSet;

    /// Whether an INQUIRE about our request of this `number` can still have an effect.
    fn heeds(&self, number: u64) -> bool;

    /// Call `each` with the number of the request.
    fn numbers(&mut self, each: NumberVisitor<'_>);
}

/// A requester that remembers which members are locked for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ByName {
    /// The number of our request, from `acquire` to `release`.
    number: Option<u64>,
    /// The members that are not locked for it; empty while inside and while outside.
    missing: NodeSet,
    /// The missing members that said FAILED or got their lock back. While there are any, an older
    /// request goes before ours, so we give locks back when asked.
    refused: NodeSet,
    /// The members whose INQUIRE we have not answered yet, because no member has refused.
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
            let surplus = "a lock that we do not wait for";
            return if R::GUARDED { Err(surplus) } else { Ok(false) };
        }
        self.refused.remove(member);
        if self.missing.is_empty() {
            self.inquiries.clear(); // Our RELEASE will answer them.
        }
        Ok(self.missing.is_empty())
    }

    fn failed<R: Rules>(&mut self, member: NodeId) -> Result<NodeSet, &'static str> {
        if !self.missing.contains(member) {
            return Err("a refusal by a member that we do not wait for");
        }
        self.refused.insert(member);
        let inquiries = core::mem::take(&mut self.inquiries);
        inquiries.iter().for_each(|member| self.give_back::<R>(member));
        Ok(inquiries)
    }

    fn inquire<R: Rules>(&mut self, member: NodeId, number: u64) -> bool {
        let stale = self.number != Some(number) || self.missing.contains(member);
        if self.missing.is_empty() || (stale && R::IGNORE_STALE) {
            return false; // Our RELEASE answers it, or has done so.
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

    fn abandon(&mut self) -> NodeSet {
        core::mem::take(self).missing
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

    /// Prepare for a new arbiter of `member`, whose old one is lost: forget its refusals and
    /// inquiries. Returns the number of our open request, and whether it has that lock.
    pub fn recover(&mut self, member: NodeId) -> Option<(u64, bool)> {
        self.refused.remove(member);
        self.inquiries.remove(member);
        self.number.map(|number| (number, !self.missing.contains(member)))
    }
}
