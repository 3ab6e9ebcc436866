//! Interning: each value is stored once and known by a number.

use std::hash::{DefaultHasher, Hash, Hasher};

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

/// The values of one type that were met so far.
///
/// Each has a number, which depends on the order in which values are met, and a hash, which depends
/// on the value only. A value that has numbers of other values in it needs a hash of those values
/// ([`Self::intern_hashed`]).
#[derive(Debug)]
pub(super) struct Interner<T> {
    values: IndexSet<T, FxBuildHasher>,
    hashes: Vec<u64>,
}

impl<T: Hash + Eq> Interner<T> {
    pub(super) fn new() -> Self {
        Self { values: IndexSet::default(), hashes: Vec::new() }
    }

    /// The number of a value, which is stored if it is new.
    pub(super) fn intern(&mut self, value: T) -> u32 {
        self.intern_hashed(value, hash)
    }

    /// The number of a value, which is stored with this hash if it is new.
    pub(super) fn intern_hashed(&mut self, value: T, hash: impl FnOnce(&T) -> u64) -> u32 {
        let (number, new) = self.values.insert_full(value);
        if new {
            self.hashes.push(hash(&self.values[number]));
        }
        number as u32
    }

    pub(super) fn find(&self, value: &T) -> Option<u32> {
        self.values.get_index_of(value).map(|number| number as u32)
    }

    pub(super) fn get(&self, number: u32) -> &T {
        &self.values[number as usize]
    }

    pub(super) fn hash(&self, number: u32) -> u64 {
        self.hashes[number as usize]
    }

    pub(super) fn len(&self) -> u32 {
        self.hashes.len() as u32
    }
}

impl<T: Hash + Eq + Clone> Interner<T> {
    /// Take over the values that `other` has stored since both were equal.
    pub(super) fn follow(&mut self, other: &Self) {
        let known = self.values.len();
        self.values.extend(other.values[known..].iter().cloned());
        self.hashes.extend_from_slice(&other.hashes[known..]);
    }
}

/// A hash of a value that is the same in every process.
pub(super) fn hash<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
