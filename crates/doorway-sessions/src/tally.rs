//! Counts by key, for limits.

use std::collections::BTreeMap;

/// How many there are of each key. A key of which there is none is not kept.
#[derive(Clone, Debug, Hash)]
pub(super) struct Tally<K>(BTreeMap<K, usize>);

impl<K> Default for Tally<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord> Tally<K> {
    pub(super) fn of(&self, key: &K) -> usize {
        self.0.get(key).copied().unwrap_or(0)
    }

    pub(super) fn add(&mut self, key: K) {
        *self.0.entry(key).or_default() += 1;
    }

    pub(super) fn remove(&mut self, key: &K) {
        let Some(count) = self.0.get_mut(key) else {
            debug_assert!(false, "only what was added is removed");
            return;
        };
        *count -= 1;
        if *count == 0 {
            self.0.remove(key);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
