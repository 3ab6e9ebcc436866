//! The voter in a node of `majority`: one vote, lent to one request at a time.

use alloc::collections::BTreeSet;

use crate::{Group, NodeId, Timestamp};

/// Those whose vote weighs something.
pub(super) fn voters(group: &Group) -> impl Iterator<Item = NodeId> + '_ {
    group.nodes().filter(|node| group.weight(*node) > 0)
}

/// How many they are.
pub(super) fn count(group: &Group) -> f64 {
    voters(group).count() as f64
}

/// What a voter says, and to which request.
pub(super) enum Say {
    /// You have my vote.
    Yes(Timestamp),
    /// An older request would like the vote.
    Inquire(Timestamp),
}

/// The vote, and who wants it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Voter {
    /// The request that has the vote.
    lent: Option<Timestamp>,
    /// Was the vote called back?
    inquired: bool,
    /// Requests that wait for the vote; none while it is here.
    queue: BTreeSet<Timestamp>,
    /// Requests that were released before they arrived.
    gone: BTreeSet<Timestamp>,
}

impl Voter {
    /// A voter whose vote is lent to `request`, if there is one.
    pub(super) fn lent_to(request: Option<Timestamp>) -> Self {
        Self { lent: request, ..Self::default() }
    }

    pub(super) fn request(&mut self, request: Timestamp) -> Option<Say> {
        if self.gone.remove(&request) {
            return None;
        }
        self.queue.insert(request);
        match self.lent {
            None => self.lend_to_oldest(),
            Some(lent) if request < lent && !self.inquired => {
                self.inquired = true;
                Some(Say::Inquire(lent))
            }
            Some(_) => None,
        }
    }

    pub(super) fn relinquish(&mut self, request: Timestamp) -> Option<Say> {
        if !self.inquired || self.lent != Some(request) {
            return None; // Overtaken by its RELEASE.
        }
        self.queue.insert(request);
        self.lend_to_oldest()
    }

    pub(super) fn release(&mut self, request: Timestamp) -> Option<Say> {
        if self.lent == Some(request) {
            return self.lend_to_oldest();
        }
        if !self.queue.remove(&request) {
            self.gone.insert(request);
        }
        None
    }

    fn lend_to_oldest(&mut self) -> Option<Say> {
        (self.lent, self.inquired) = (self.queue.pop_first(), false);
        self.lent.map(Say::Yes)
    }

    /// Has nobody the vote, and is no request known to be on its way?
    pub(super) fn idle(&self) -> bool {
        self.lent.is_none() && self.gone.is_empty()
    }

    /// Has `request` the vote, and nobody else asked for it?
    pub(super) fn knows_only(&self, request: Option<Timestamp>) -> bool {
        self.lent == request && self.queue.is_empty()
    }
}
