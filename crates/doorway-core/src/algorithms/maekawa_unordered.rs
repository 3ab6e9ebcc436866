//! Maekawa, "A √N Algorithm for Mutual Exclusion in Decentralized Systems", ACM Transactions on
//! Computer Systems 3(2), 1985, made to work where messages overtake each other. INQUIRE with a
//! number is usually credited to Sanders (1987), whose text was not at hand.
//!
//! As in `maekawa-eager` a node locks its quorum, and gives a lock back whenever an older request
//! wants it. Without FIFO channels an INQUIRE may arrive before the LOCKED that it speaks of.
//! Ignoring it leads to deadlock, and answering it lets a LOCKED count that has been given back. So
//! the INQUIRE names its request and is answered, and locks are only counted, not remembered: a
//! lock given back before it came makes up for its LOCKED later.
//!
//! # Rules
//!
//! 1. To ask: take a number above every one seen, miss K locks, send REQUEST to all of the quorum.
//! 2. On REQUEST: if unlocked, lock for it and answer LOCKED. Else queue it; if it is the first to
//!    be older than the lock, send INQUIRE to the one that has the lock.
//! 3. On INQUIRE about the present request, waiting: miss one more and answer RELINQUISH.
//! 4. On RELINQUISH: queue the request that has the lock, and lock for the oldest: LOCKED.
//! 5. On LOCKED: miss one less; enter when none is missing.
//! 6. To leave: send RELEASE to all of the quorum.
//! 7. On RELEASE: lock for the oldest queued request, if any: LOCKED.
//!
//! # Why it is right
//!
//! For one member, LOCKED has arrived at most once more often than RELINQUISH has been sent, and
//! once more only if the member is locked for us and neither of them is under way. None is
//! missing only if this is so for every member; so two nodes inside would have a common member
//! locked for both, and nothing late is left when a request ends but an INQUIRE, known by its
//! number. The oldest request gets every lock that it lacks, as its owner gives way or leaves.

use super::maekawa::requester::Requester;
use super::maekawa::{Maekawa, Repaired, Rules};
use super::prelude::*;

/// Counts locks instead of remembering whose they are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ByCount {
    /// The number of our request, from `acquire` to `release`.
    number: Option<u64>,
    /// How many locks it lacks: more than K while locks given back are still to come.
    missing: u64,
}

/// `maekawa-eager` with this count.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Counted {}

impl Rules for Counted {
    type Requester = ByCount;
    const INFO: Info = Info {
        name: "maekawa-unordered",
        summary: "maekawa-eager that counts locks, so that messages may overtake each other",
        channel: Channel::Unordered,
        ..Repaired::INFO
    };
    const EAGER: bool = true;
}

/// See the head of this file.
pub type MaekawaUnordered = Maekawa<Counted>;

impl Requester for ByCount {
    fn inside(number: Option<u64>) -> Self {
        Self { number, missing: 0 }
    }

    fn ask(&mut self, number: u64, members: &[NodeId]) {
        *self = Self { number: Some(number), missing: members.len() as u64 };
    }

    fn locked<R: Rules>(&mut self, _member: NodeId) -> Result<bool, &'static str> {
        self.missing = self.missing.checked_sub(1).ok_or("a lock that we did not wait for")?;
        Ok(self.missing == 0)
    }

    fn failed<R: Rules>(&mut self, _member: NodeId) -> Result<NodeSet, &'static str> {
        Err("nobody says FAILED where everyone gives way at once")
    }

    fn inquire<R: Rules>(&mut self, _member: NodeId, number: u64) -> bool {
        let yields = self.number == Some(number) && self.missing > 0;
        self.missing += u64::from(yields);
        yields
    }

    fn leave(&mut self) {
        self.number = None;
    }

    fn heeds(&self, number: u64) -> bool {
        self.number == Some(number) && self.missing > 0
    }

    fn numbers(&mut self, each: NumberVisitor<'_>) {
        self.number.iter_mut().for_each(each);
    }
}
