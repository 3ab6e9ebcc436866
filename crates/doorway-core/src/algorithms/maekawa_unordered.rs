//! Maekawa, "A √N Algorithm for Mutual Exclusion in Decentralized Systems", ACM Transactions on
//! Computer Systems 3(2), 1985, made to work where messages overtake each other. INQUIRE with a
//! number is usually credited to Sanders (1987), whose text was not at hand.
//!
//! As in `maekawa-eager`, a node locks its quorum, and gives a lock back whenever an older request
//! wants it. Without FIFO channels, an INQUIRE may arrive before the LOCKED that it is about. If it
//! is ignored, there is deadlock. If it is answered, the LOCKED that comes later counts although
//! the lock has been given back. So the INQUIRE names its request and is answered, and locks are
//! only counted, not remembered: a lock given back before it arrives cancels its LOCKED later.
//!
//! # Rules
//!
//! 1. To ask: take a number above every one seen, set the count of missing locks to K, and send
//!    REQUEST to all of the quorum.
//! 2. On REQUEST: if unlocked, lock for it and answer LOCKED. Else queue it; if it is the first to
//!    be older than the lock, send INQUIRE to the node that has the lock.
//! 3. On INQUIRE about the present request, while waiting: add one to the count of missing locks
//!    and answer RELINQUISH.
//! 4. On RELINQUISH: queue the request that has the lock, and lock for the oldest: LOCKED.
//! 5. On LOCKED: subtract one from the count of missing locks; enter when it is zero.
//! 6. To leave: send RELEASE to all of the quorum.
//! 7. On RELEASE: lock for the oldest queued request, if any: LOCKED.
//!
//! # Why it is right
//!
//! For each member, LOCKED has arrived at most once more often than RELINQUISH has been sent, and
//! once more only if the member is locked for us and neither message is under way. The count is
//! zero only if this is so for every member. So if two nodes were inside, a common member would be
//! locked for both. When a request ends, only an INQUIRE can still be under way, which is known by
//! its number. The oldest request gets every lock that it lacks, since the node that has it gives
//! way or leaves.

use super::maekawa::requester::Requester;
use super::maekawa::{Maekawa, Repaired, Rules};
use super::prelude::*;

/// A requester that counts its locks instead of remembering the members.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ByCount {
    /// The number of our request, from `acquire` to `release`.
    number: Option<u64>,
    /// The number of locks that it lacks: more than K while locks that were given back have not yet
    /// arrived.
    missing: u64,
}

/// The rules of `maekawa-eager` with counted locks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Counted {}

impl Rules for Counted {
    type Requester = ByCount;
    const INFO: Info = Info {
        name: "maekawa-unordered",
        summary: "maekawa-eager that counts locks, so messages may overtake each other",
        channel: Channel::Unordered,
        withdraws: false,
        ..Repaired::INFO
    };
    const EAGER: bool = true;
}

/// Maekawa's algorithm for channels that keep no order.
pub type MaekawaUnordered = Maekawa<Counted>;

impl Requester for ByCount {
    fn inside(number: Option<u64>) -> Self {
        Self { number, missing: 0 }
    }

    fn ask(&mut self, number: u64, members: &[NodeId]) {
        *self = Self { number: Some(number), missing: members.len() as u64 };
    }

    fn locked<R: Rules>(&mut self, _member: NodeId) -> Result<bool, &'static str> {
        self.missing = self.missing.checked_sub(1).ok_or("a lock that we do not wait for")?;
        Ok(self.missing == 0)
    }

    fn failed<R: Rules>(&mut self, _member: NodeId) -> Result<NodeSet, &'static str> {
        Err("a FAILED, which this variant does not have")
    }

    fn inquire<R: Rules>(&mut self, _member: NodeId, number: u64) -> bool {
        let yields = self.number == Some(number) && self.missing > 0;
        self.missing += u64::from(yields);
        yields
    }

    fn leave(&mut self) {
        self.number = None;
    }

    fn abandon(&mut self) -> NodeSet {
        NodeSet::new() // Not offered: the members are not known by name.
    }

    fn heeds(&self, number: u64) -> bool {
        self.number == Some(number) && self.missing > 0
    }

    fn numbers(&mut self, each: NumberVisitor<'_>) {
        self.number.iter_mut().for_each(each);
    }
}
