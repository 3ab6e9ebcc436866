//! The locks that a shard has in memory, and which of them it may forget.
//!
//! A lock stays in memory as long as a client, a pin or its algorithm needs it. Other locks are
//! idle. The shard keeps some idle locks, because what their algorithms have learnt saves messages,
//! and forgets the least recently used first.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use doorway_protocol::Name;
use hashbrown::HashTable;
use rustc_hash::FxHasher;
use slab::Slab;

use super::book::RuleBook;
use super::lock::Lock;
use super::machine::{AlgorithmMachine, Fault};
use super::returns::Returns;

/// A pinned lock of a shard. It stays valid until it is closed, also across views.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot(pub(super) u32);

/// A lock in the table.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each of them is read on its own")]
pub(super) struct Entry {
    pub(super) name: Name,
    pub(super) lock: Lock<dyn AlgorithmMachine>,
    /// The rule of the lock, by its index in the list of rules.
    pub(super) rule: u32,
    /// How often it is pinned.
    pins: u32,
    /// Is it in the idle queue?
    in_idle_queue: bool,
    /// Was it used since it was last considered for forgetting?
    used: bool,
    /// Has this node declared to the others, for the view that is about to begin, that it holds the
    /// lock?
    pub(super) declared_held: bool,
    /// Why it cannot be used in this view, if it cannot.
    pub(super) broken: Option<Box<Fault>>,
    /// More clients are inside than its rule lets in: the rules have changed. Nobody enters in this
    /// view.
    pub(super) crowded: bool,
    /// How quickly its clients come back, if another node has ever wanted the lock.
    pub(super) returns: Option<Box<Returns>>,
}

impl Hash for Entry {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { name, lock, rule, pins, in_idle_queue, used, declared_held, .. } = self;
        // Whether a lock was used matters only while it is in the queue.
        let (used, broken) = (*in_idle_queue && *used, self.broken.is_some());
        (name, lock, rule, pins, in_idle_queue, used, declared_held).hash(state);
        (broken, self.crowded, &self.returns).hash(state);
    }
}

impl Hash for Table {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for place in &self.entries {
            place.hash(state);
        }
        self.idle_queue.hash(state);
    }
}

impl Entry {
    fn is_idle(&self) -> bool {
        let needed = self.pins > 0 || self.declared_held || self.broken.is_some();
        !needed && self.lock.is_idle() && !self.lock.lingers()
    }
}

/// All locks of a shard.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    entries: Slab<Entry>,
    /// The index of each name, by its hash. The names themselves are in the entries.
    index: HashTable<u32>,
    /// Idle locks, and some that were idle, the least recently used first.
    idle_queue: VecDeque<u32>,
    /// How many calls of [`Table::shrink`] to skip before trying again to compact the table. Locks
    /// in use cannot be moved, so an attempt may fail, and it costs as much as there are places.
    compact_delay: usize,
}

/// The memory of this many locks is kept in any case.
const SPARE: usize = 64;

impl Table {
    /// The index of the lock of this name. The lock is inserted if it is not in the table, with its
    /// rule by these rules.
    pub(super) fn get_or_insert(&mut self, name: &Name, rules: &RuleBook) -> u32 {
        if let Some(at) = self.place(name) {
            return at;
        }
        let entry = Entry {
            name: name.clone(),
            lock: Lock::default(),
            rule: index(rules, name),
            pins: 0,
            in_idle_queue: false,
            used: false,
            declared_held: false,
            broken: None,
            crowded: false,
            returns: None,
        };
        let at = u32::try_from(self.entries.insert(entry));
        let at = at.expect("fewer than 2^32 locks fit into memory");
        let entries = &self.entries;
        self.index.insert_unique(hash(name), at, |at| hash(&entries[*at as usize].name));
        at
    }

    fn place(&self, name: &Name) -> Option<u32> {
        self.index.find(hash(name), |at| self.entries[*at as usize].name == *name).copied()
    }

    pub(super) fn find(&self, name: &Name) -> Option<&Entry> {
        self.place(name).map(|at| self.get(at))
    }

    pub(super) fn get(&self, at: u32) -> &Entry {
        &self.entries[at as usize]
    }

    pub(super) fn get_mut(&mut self, at: u32) -> &mut Entry {
        &mut self.entries[at as usize]
    }

    /// Use other rules from now on.
    pub(super) fn change_rules(&mut self, rules: &RuleBook) {
        for (_, entry) in &mut self.entries {
            entry.rule = index(rules, &entry.name);
        }
    }

    pub(super) fn pin(&mut self, at: u32) {
        self.entries[at as usize].pins += 1;
    }

    pub(super) fn unpin(&mut self, at: u32) {
        self.entries[at as usize].pins -= 1;
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().map(|(_, entry)| entry)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.iter_mut().map(|(_, entry)| entry)
    }

    /// The indices of all locks that have clients, or that this node has declared as held.
    pub(super) fn busy(&self) -> Vec<u32> {
        let busy =
            self.entries.iter().filter(|(_, entry)| entry.declared_held || !entry.lock.is_idle());
        busy.map(|(at, _)| at as u32).collect()
    }

    fn remove(&mut self, at: u32) -> Entry {
        let entry = self.entries.remove(at as usize);
        forget(&mut self.index, &entry.name, at);
        entry
    }

    /// Forget all idle locks: the view has ended, and what they had learnt is void.
    pub(super) fn drop_idle(&mut self) {
        let index = &mut self.index;
        self.entries.retain(|at, entry| {
            entry.in_idle_queue = false;
            let idle = entry.is_idle();
            if idle {
                forget(index, &entry.name, at as u32);
            }
            !idle
        });
        self.idle_queue.clear();
    }

    /// Note that a lock was used. If it is idle now, it joins the idle queue.
    pub(super) fn mark_used(&mut self, at: u32) {
        let entry = &mut self.entries[at as usize];
        entry.used = true;
        if !entry.in_idle_queue && entry.is_idle() {
            entry.in_idle_queue = true;
            entry.used = false;
            self.idle_queue.push_back(at);
        }
    }

    /// If more than `keep` locks are idle, consider the first of the queue. It is removed and
    /// returned, with the number from which its name must start again, unless it was used since or
    /// is still needed. This is a second-chance queue: a lock that was used goes to the end.
    pub(super) fn forget(&mut self, keep: usize) -> Option<(Entry, u64)> {
        if self.idle_queue.len() <= keep {
            return None;
        }
        let oldest = self.idle_queue.pop_front()?;
        let entry = &mut self.entries[oldest as usize];
        if !entry.is_idle() {
            entry.in_idle_queue = false;
            return None;
        }
        let floor = entry.lock.floor().filter(|_| !entry.used);
        if let Some(floor) = floor {
            return Some((self.remove(oldest), floor));
        }
        entry.used = false;
        self.idle_queue.push_back(oldest);
        None
    }

    /// Give memory back when few locks are left of many. Only idle locks can be moved.
    pub(super) fn shrink(&mut self) {
        let Self { entries, index, idle_queue, compact_delay } = self;
        let many = entries.capacity();
        if many <= SPARE || entries.len() > many / 4 {
            return;
        }
        if idle_queue.len() < entries.len() && *compact_delay > 0 {
            *compact_delay -= 1;
            return;
        }
        let mut moved = Vec::new();
        entries.compact(|entry, from, to| {
            let place = index.find_mut(hash(&entry.name), |at| *at as usize == from);
            match place.filter(|_| entry.is_idle()) {
                Some(place) => {
                    *place = to as u32;
                    moved.push((from as u32, to as u32));
                    true
                }
                None => false,
            }
        });
        moved.sort_unstable();
        for at in idle_queue.iter_mut() {
            if let Ok(found) = moved.binary_search_by_key(at, |(from, _)| *from) {
                *at = moved[found].1;
            }
        }
        idle_queue.shrink_to_fit();
        index.shrink_to_fit(|at| hash(&entries[*at as usize].name));
        // A lock in use may prevent the table from shrinking, and each attempt visits all places.
        // So the next attempt waits for that many calls.
        *compact_delay = entries.capacity();
    }
}

/// The index of the rule of a name.
fn index(rules: &RuleBook, name: &Name) -> u32 {
    u32::try_from(rules.index_of(name)).expect("fewer than 2^32 rules")
}

fn hash(name: &Name) -> u64 {
    let mut hasher = FxHasher::default();
    name.hash(&mut hasher);
    hasher.finish()
}

/// Remove a name from the index.
fn forget(index: &mut HashTable<u32>, name: &Name, place: u32) {
    if let Ok(found) = index.find_entry(hash(name), |at| *at == place) {
        found.remove();
    }
}
