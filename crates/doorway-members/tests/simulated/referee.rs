//! Who is inside, and whether that is right.
//!
//! Each host has a clock of its own, so a guard can be asked only by its own host whether it is
//! lost. The referee knows instead when the lease of each node ends, by the time of the simulation.

use std::collections::BTreeMap;
use std::time::Duration;

use doorway_node::Fence;

/// The number of a client that is inside.
pub(crate) type Entry = u64;

/// Everything that the referee knows.
#[derive(Default)]
pub(crate) struct Referee {
    inside: BTreeMap<Entry, InsideClient>,
    /// The highest fence of each lock.
    fences: BTreeMap<String, Fence>,
    /// When the lease of each node ends.
    leases: BTreeMap<usize, Duration>,
    pub(crate) orphans: Vec<Orphan>,
    pub(crate) faults: Vec<String>,
    pub(crate) entries: Entry,
    pub(crate) losses: u64,
    pub(crate) reclaimed: u64,
}

/// A client of a running node.
#[derive(Debug)]
struct InsideClient {
    node: usize,
    lock: String,
    fence: Fence,
    /// It was told that it has lost the lock.
    told: bool,
}

/// A client whose node was killed. It counts on its lock until the lease of the node ends.
#[derive(Clone, Debug)]
pub(crate) struct Orphan {
    pub(crate) node: usize,
    pub(crate) lock: String,
    pub(crate) fence: Fence,
    until: Duration,
}

impl Referee {
    /// The lease of a node ends at this time.
    pub(crate) fn lease(&mut self, node: usize, end: Duration) {
        self.leases.insert(node, end);
    }

    /// A client has entered.
    pub(crate) fn enter(&mut self, now: Duration, node: usize, lock: &str, fence: Fence) -> Entry {
        for other in self.inside.values() {
            let lease = self.leases.get(&other.node).copied().unwrap_or_default();
            if other.lock == lock && !other.told && now < lease {
                self.faults.push(format!(
                    "{now:?} {lock}: n{node} is inside with {fence}, and n{} with {}",
                    other.node, other.fence
                ));
            }
        }
        let orphans = self.orphans.iter();
        for orphan in orphans.filter(|orphan| orphan.lock == lock && now < orphan.until) {
            let Orphan { node: other, fence: held, until, .. } = orphan;
            self.faults.push(format!(
                "{now:?} {lock}: n{node} is inside with {fence}, and a client of n{other}, which \
                 was killed, with {held} until {until:?}"
            ));
        }
        let last = self.fences.entry(lock.to_owned()).or_insert(fence);
        if fence < *last {
            self.faults.push(format!("{now:?} {lock}: fence {fence} after {last}"));
        }
        *last = fence.max(*last);
        self.add(node, lock, fence)
    }

    fn add(&mut self, node: usize, lock: &str, fence: Fence) -> Entry {
        self.entries += 1;
        let inside = InsideClient { node, lock: lock.to_owned(), fence, told: false };
        self.inside.insert(self.entries, inside);
        self.entries
    }

    /// A client was told that its lock is lost.
    pub(crate) fn tell(&mut self, entry: Entry) {
        if let Some(inside) = self.inside.get_mut(&entry) {
            inside.told = true;
        }
    }

    /// A client leaves, and knows whether it had lost its lock.
    pub(crate) fn leave(&mut self, entry: Entry, lost: bool) {
        self.inside.remove(&entry);
        self.losses += u64::from(lost);
    }

    /// A node was killed. Its clients live on until the lease ends, or have ended with it.
    pub(crate) fn killed(&mut self, node: usize, live_on: bool) {
        let until = self.leases.remove(&node).unwrap_or_default();
        for (_, InsideClient { lock, fence, told, .. }) in
            self.inside.extract_if(.., |_, inside| inside.node == node)
        {
            if live_on && !told {
                self.orphans.push(Orphan { node, lock, fence, until });
            }
        }
    }

    /// The next process of a node holds the lock of an orphan. An orphan that has counted its lock
    /// as lost should not claim it; if it does, that must not disturb the others.
    pub(crate) fn adopt(&mut self, now: Duration, orphan: &Orphan) -> Option<Entry> {
        self.disown(orphan);
        if now >= orphan.until {
            return None;
        }
        self.reclaimed += 1;
        Some(self.add(orphan.node, &orphan.lock, orphan.fence))
    }

    /// An orphan was told that its lock is lost.
    pub(crate) fn disown(&mut self, orphan: &Orphan) {
        self.orphans.retain(|other| (&other.lock, other.fence) != (&orphan.lock, orphan.fence));
    }

    /// Who is still inside.
    pub(crate) fn held(&self) -> Vec<String> {
        self.inside.values().map(|inside| format!("{inside:?}")).collect()
    }
}
