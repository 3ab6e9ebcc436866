//! The voter in a node of `majority`: one vote, lent to one request at a time.

use alloc::collections::BTreeSet;

use crate::settle::each_of_queue;
use crate::{NumberVisitor, Timestamp};

/// What a voter says, and to which request.
pub(super) enum VoterReply {
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
}

impl Voter {
    /// A voter whose vote is lent to `request`, if there is one.
    pub(super) fn lent_to(request: Option<Timestamp>) -> Self {
        Self { lent: request, ..Self::default() }
    }

    pub(super) fn request(&mut self, request: Timestamp) -> Option<VoterReply> {
        // A node makes one request at a time: of two, the older is done.
        let same = |other: &&Timestamp| other.node == request.node;
        if self.lent.iter().chain(&self.queue).filter(same).any(|other| *other >= request) {
            return None;
        }
        self.queue.retain(|other| other.node != request.node);
        self.queue.insert(request);
        match self.lent {
            None => self.lend_to_oldest(),
            Some(lent) if request < lent && !self.inquired => {
                self.inquired = true;
                Some(VoterReply::Inquire(lent))
            }
            Some(_) => None,
        }
    }

    pub(super) fn relinquish(&mut self, request: Timestamp) -> Option<VoterReply> {
        if !self.inquired || self.lent != Some(request) {
            return None; // Overtaken by its RELEASE.
        }
        self.queue.insert(request);
        self.lend_to_oldest()
    }

    pub(super) fn release(&mut self, request: Timestamp) -> Option<VoterReply> {
        if self.lent == Some(request) {
            return self.lend_to_oldest();
        }
        self.queue.remove(&request);
        None
    }

    fn lend_to_oldest(&mut self) -> Option<VoterReply> {
        (self.lent, self.inquired) = (self.queue.pop_first(), false);
        self.lent.map(VoterReply::Yes)
    }

    /// The numbers of all requests known here.
    pub(super) fn numbers(&mut self, each: NumberVisitor<'_>) {
        self.lent.iter_mut().for_each(|request| each(&mut request.clock));
        each_of_queue(&mut self.queue, each);
    }

    /// Has nobody the vote, so that nobody waits for it either?
    pub(super) fn idle(&self) -> bool {
        self.lent.is_none()
    }

    /// Has `request` the vote, and nobody else asked for it?
    pub(super) fn knows_only(&self, request: Option<Timestamp>) -> bool {
        self.lent == request && self.queue.is_empty()
    }
}
