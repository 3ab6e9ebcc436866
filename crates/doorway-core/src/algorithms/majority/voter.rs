//! The voter of a node in `majority`: it lends one vote to one request at a time.

use alloc::collections::BTreeSet;

use crate::settle::each_of_queue;
use crate::{NumberVisitor, Timestamp};

/// A message of a voter, and the request to which it is sent.
pub(super) enum VoterReply {
    /// You have my vote.
    Yes(Timestamp),
    /// An older request wants the vote.
    Inquire(Timestamp),
}

/// A vote, the request that has it, and the requests that wait for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Voter {
    /// The request that has the vote.
    lent: Option<Timestamp>,
    /// Whether the vote was called back.
    inquired: bool,
    /// The requests that wait for the vote; empty while the vote is not lent.
    queue: BTreeSet<Timestamp>,
}

impl Voter {
    /// A voter whose vote is lent to `request`, or not lent.
    pub(super) fn lent_to(request: Option<Timestamp>) -> Self {
        Self { lent: request, ..Self::default() }
    }

    pub(super) fn request(&mut self, request: Timestamp) -> Option<VoterReply> {
        // A node makes one request at a time, so the older one of two is done.
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
            return None; // Its RELEASE has overtaken it.
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

    /// Call `each` with the sequence numbers of all requests known here.
    pub(super) fn numbers(&mut self, each: NumberVisitor<'_>) {
        self.lent.iter_mut().for_each(|request| each(&mut request.clock));
        each_of_queue(&mut self.queue, each);
    }

    /// Whether the vote is not lent. Then no request waits for it either.
    pub(super) fn idle(&self) -> bool {
        self.lent.is_none()
    }

    /// Whether `request` has the vote and no other request waits for it.
    pub(super) fn knows_only(&self, request: Option<Timestamp>) -> bool {
        self.lent == request && self.queue.is_empty()
    }
}
