//! The record of a referee: which holder is inside which lock, and every promise that was broken.

use std::collections::{BTreeMap, BTreeSet};

/// What the referee has seen.
#[derive(Default)]
pub(crate) struct Book {
    locks: BTreeMap<String, LockHistory>,
    pub(crate) entries: u64,
    pub(crate) faults: Vec<String>,
}

/// What the referee has seen of one lock.
#[derive(Default)]
struct LockHistory {
    /// The holders inside, and whether each shares.
    inside: Vec<(u64, bool)>,
    /// The highest fence of an exclusive grant, and of a shared grant.
    alone: u64,
    shared: u64,
    /// The fences of permits; each must be granted only once.
    permits: BTreeSet<u64>,
}

impl Book {
    /// Record an entry into a lock with this many permits.
    pub(crate) fn enter(
        &mut self,
        holder: u64,
        name: &str,
        shares: bool,
        fence: u64,
        permits: usize,
    ) {
        self.entries += 1;
        let seen = self.locks.entry(name.to_owned()).or_default();
        let fault = seen.enter(holder, shares, fence, permits);
        self.faults.extend(fault.map(|fault| format!("{name}: {fault}")));
    }

    /// Record an exit.
    pub(crate) fn leave(&mut self, holder: u64, name: &str) {
        let seen = self.locks.entry(name.to_owned()).or_default();
        match seen.inside.iter().position(|(inside, _)| *inside == holder) {
            Some(at) => drop(seen.inside.remove(at)),
            None => self.faults.push(format!("{name}: left by one who was not inside")),
        }
    }

    /// Record that a holder has ended, and its entries with it.
    pub(crate) fn gone(&mut self, holder: u64) {
        for seen in self.locks.values_mut() {
            seen.inside.retain(|(inside, _)| *inside != holder);
        }
    }

    /// The locks that have holders.
    pub(crate) fn held(&self) -> Vec<&str> {
        let held = self.locks.iter().filter(|(_, seen)| !seen.inside.is_empty());
        held.map(|(name, _)| name.as_str()).collect()
    }
}

impl LockHistory {
    fn enter(&mut self, holder: u64, shares: bool, fence: u64, permits: usize) -> Option<String> {
        let companions = shares && self.inside.iter().all(|(_, shares)| *shares);
        let fits = companions || self.inside.len() < permits;
        self.inside.push((holder, shares));
        if !fits {
            return Some(format!("{} inside at once", self.inside.len()));
        }
        let grows = if permits > 1 {
            self.permits.insert(fence)
        } else if shares {
            self.shared = self.shared.max(fence);
            fence > self.alone
        } else {
            let grows = fence > self.alone && fence > self.shared;
            self.alone = self.alone.max(fence);
            grows
        };
        let Self { alone, shared: together, .. } = self;
        (!grows).then(|| format!("fence {fence} after {alone} alone and {together} shared"))
    }
}
