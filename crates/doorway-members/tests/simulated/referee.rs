//! Who is inside, and whether that is right.
//!
//! A client believes in its lock until it is told that the lock is lost, but not for ever:
//!
//! - A client without a hold believes until the lease of its node ends.
//! - A client with a hold believes for the length of the hold after the last answer of its node.
//!   Its node may have answered until its lease ended, until it lost its membership, or until it
//!   was killed.
//! - A client whose hold has no end believes for ever, until an operator breaks the lock.
//!
//! Each machine has a clock of its own. The referee knows the time of the simulation.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use doorway_node::Fence;
use doorway_node::members::Record;

use super::answers::Answers;

/// The number of a client that is inside.
pub(crate) type Entry = u64;

/// For how long the group has agreed to keep a lock for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// As long as the lease of the node.
    Lease,
    /// This long after the last answer of the node.
    Hold(Duration),
    /// Without end.
    Endless,
}

impl Promise {
    /// Until when a client believes in its lock if its node has answered until then.
    fn after(self, answered: Duration) -> Duration {
        match self {
            Self::Lease => answered,
            // The client counts with the faster of two clocks, one of which is within 0.1 %.
            Self::Hold(length) => answered + length + length / 1000,
            Self::Endless => Duration::MAX,
        }
    }
}

/// Everything that the referee knows.
#[derive(Default)]
pub(crate) struct Referee {
    inside: BTreeMap<Entry, InsideClient>,
    /// The highest fence of each lock.
    fences: BTreeMap<String, Fence>,
    /// When the lease of each node ends.
    leases: BTreeMap<usize, Duration>,
    pub(crate) orphans: Vec<Orphan>,
    /// The record of each revision.
    records: BTreeMap<u64, Arc<Record>>,
    /// What the group has answered to its nodes.
    pub(crate) answers: Answers,
    pub(crate) faults: Vec<String>,
    pub(crate) entries: Entry,
    pub(crate) losses: u64,
    pub(crate) reclaimed: u64,
    pub(crate) holds: u64,
    /// Clients that went on to believe in a hold after their node was gone.
    pub(crate) believers: u64,
    pub(crate) breaks: u64,
}

/// A client of a running node.
#[derive(Debug)]
struct InsideClient {
    node: usize,
    lock: String,
    fence: Fence,
    promise: Promise,
    /// What the process before this one has promised, if this one has reclaimed the lock.
    at_least: Duration,
}

/// A client that believes in its lock although its node is gone, or has lost the lock.
#[derive(Clone, Debug)]
pub(crate) struct Orphan {
    pub(crate) node: usize,
    pub(crate) lock: String,
    pub(crate) fence: Fence,
    pub(crate) promise: Promise,
    /// Its node was killed, so the next process of the node knows of it.
    pub(crate) claims: bool,
    until: Duration,
}

impl Referee {
    /// This much of the lease of a node is left.
    pub(crate) fn lease(&mut self, now: Duration, node: usize, left: Duration) {
        let end = self.leases.entry(node).or_default();
        // A node may notice late that its lease has ended.
        *end = if left.is_zero() { now.min(*end) } else { now + left };
    }

    fn lease_of(&self, node: usize) -> Duration {
        self.leases.get(&node).copied().unwrap_or_default()
    }

    /// A node has learnt of a record. Two nodes may not know different records of one revision.
    pub(crate) fn record(&mut self, node: usize, record: &Arc<Record>) {
        let known = self.records.entry(record.revision).or_insert_with(|| Arc::clone(record));
        if known != record {
            let wrong = format!("n{node} has the record {record:?}, and another node {known:?}");
            self.faults.push(wrong);
        }
    }

    /// The newest record that any node knows.
    pub(crate) fn newest_record(&self) -> Option<&Arc<Record>> {
        self.records.last_key_value().map(|(_, record)| record)
    }

    /// A client has entered.
    pub(crate) fn enter(
        &mut self,
        now: Duration,
        node: usize,
        lock: &str,
        fence: Fence,
        promise: Promise,
    ) -> Entry {
        let mut wrong = Vec::new();
        for other in self.inside.values().filter(|other| other.lock == lock) {
            let until = other.promise.after(self.lease_of(other.node)).max(other.at_least);
            if now < until {
                wrong.push(format!("{other:?}"));
            }
        }
        let orphans = self.orphans.iter();
        wrong.extend(
            orphans
                .filter(|orphan| orphan.lock == lock && now < orphan.until)
                .map(|orphan| format!("{orphan:?}")),
        );
        for other in wrong {
            self.faults
                .push(format!("{now:?} {lock}: n{node} is inside with {fence}, and {other}"));
        }
        match self.fences.get(lock) {
            Some(last) if fence <= *last => {
                self.faults.push(format!("{now:?} {lock}: fence {fence} after {last}"));
            }
            _ => {
                self.fences.insert(lock.to_owned(), fence);
            }
        }
        self.holds += u64::from(promise != Promise::Lease);
        self.add(node, lock, fence, promise, Duration::ZERO)
    }

    fn add(
        &mut self,
        node: usize,
        lock: &str,
        fence: Fence,
        promise: Promise,
        at_least: Duration,
    ) -> Entry {
        self.entries += 1;
        let lock = lock.to_owned();
        let inside = InsideClient { node, lock, fence, promise, at_least };
        self.inside.insert(self.entries, inside);
        self.entries
    }

    /// The node has lost the lock of a client, and does not tell it. If the client has a hold, it
    /// goes on to believe in its lock.
    pub(crate) fn believe(&mut self, now: Duration, entry: Entry) {
        let Some(inside) = self.inside.remove(&entry) else { return };
        self.losses += 1;
        let answered = self.lease_of(inside.node).min(now);
        self.orphan(inside, answered, false);
    }

    fn orphan(&mut self, inside: InsideClient, answered: Duration, claims: bool) {
        let InsideClient { node, lock, fence, promise, at_least, .. } = inside;
        self.believers += u64::from(promise != Promise::Lease);
        let until = promise.after(answered).max(at_least);
        self.orphans.push(Orphan { node, lock, fence, promise, claims, until });
    }

    /// A client leaves, and knows whether it had lost its lock.
    pub(crate) fn leave(&mut self, entry: Entry, lost: bool) {
        self.inside.remove(&entry);
        self.losses += u64::from(lost);
    }

    /// A node was killed. Its clients live on, or have ended with it.
    pub(crate) fn killed(&mut self, now: Duration, node: usize, live_on: bool) {
        let lease = self.leases.remove(&node).unwrap_or_default();
        let clients: Vec<_> = self.inside.extract_if(.., |_, inside| inside.node == node).collect();
        for (_, inside) in clients.into_iter().filter(|_| live_on) {
            let answered = if inside.promise == Promise::Lease { lease } else { lease.min(now) };
            self.orphan(inside, answered, true);
        }
    }

    /// The next process of a node holds the lock of an orphan. An orphan that has counted its lock
    /// as lost should not claim it; if it does, that must not disturb the others.
    pub(crate) fn adopt(&mut self, now: Duration, orphan: &Orphan) -> Option<Entry> {
        self.disown(&orphan.lock, orphan.fence);
        if now >= orphan.until {
            return None;
        }
        self.reclaimed += 1;
        let Orphan { node, lock, fence, promise, until, .. } = orphan;
        Some(self.add(*node, lock, *fence, *promise, *until))
    }

    /// An operator breaks the lock of a client, which does not use it any more.
    pub(crate) fn break_lock(&mut self, lock: &str, fence: Fence) {
        self.breaks += 1;
        self.disown(lock, fence);
        // The next process of its node may have claimed it, in vain.
        self.inside.retain(|_, inside| (inside.lock.as_str(), inside.fence) != (lock, fence));
    }

    /// The client of a grant was told that the lock is lost.
    pub(crate) fn disown(&mut self, lock: &str, fence: Fence) {
        self.orphans.retain(|other| (other.lock.as_str(), other.fence) != (lock, fence));
    }

    /// Who is still inside.
    pub(crate) fn held(&self) -> Vec<String> {
        self.inside.values().map(|inside| format!("{inside:?}")).collect()
    }
}
