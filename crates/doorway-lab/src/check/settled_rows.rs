//! The settled rows of the worlds that a thread met last.

use std::hint::black_box;

/// How many slots a cache has at first, and at most.
const FIRST_SLOTS: usize = 1 << 12;
const MOST_SLOTS: usize = 1 << 20;

/// How many words all its rows may have together. Only groups of more than seven nodes have rows
/// that are so wide that this limits the slots.
const MOST_WORDS: usize = 1 << 26;

/// A cache: the settled form of a row, by the fingerprint of the row.
///
/// Several steps lead to the same world, most of them within one layer of the search. To look its
/// settled form up takes a fraction of the time of settling it again. A newer world displaces an
/// older one from its slot. The cache grows as it fills, so that a small search takes
/// little memory.
pub(super) struct SettledRows {
    /// The number of words of a row.
    width: usize,
    /// For each slot the fingerprint of a row, and that of its settled form. The fingerprint 0
    /// marks an empty slot.
    prints: Vec<[u64; 2]>,
    /// For each slot the settled row, if it is not the row itself.
    rows: Vec<u32>,
    /// How many slots are in use.
    used: usize,
}

impl SettledRows {
    /// An empty cache for rows of this width. It takes memory when it is first used.
    pub(super) fn new(width: usize) -> Self {
        Self { width, prints: Vec::new(), rows: Vec::new(), used: 0 }
    }

    /// Read the slots of many rows before the first of them is looked up. That waits for the memory
    /// once, not once for each.
    pub(super) fn glance(&self, prints: impl Iterator<Item = u64>) {
        if !self.prints.is_empty() {
            black_box(prints.fold(0, |seen, print| seen ^ self.prints[self.slot(print)][0]));
        }
    }

    /// Replace the row with this fingerprint by its settled form, if that is remembered. Returns
    /// the fingerprint of the settled form.
    pub(super) fn recall(&self, print: u64, row: &mut [u32]) -> Option<u64> {
        let slot = self.slot(print);
        let &[known, settled] = self.prints.get(slot)?;
        if known != print || print == 0 {
            return None;
        }
        if settled != print {
            row.copy_from_slice(self.row(slot));
        }
        Some(settled)
    }

    /// Remember that `row`, with the fingerprint `settled`, is the settled form of the row with the
    /// fingerprint `print`.
    pub(super) fn remember(&mut self, print: u64, row: &[u32], settled: u64) {
        if self.used >= self.prints.len() / 2 && self.prints.len() < self.most_slots() {
            self.grow();
        }
        let slot = self.slot(print);
        self.used += usize::from(self.prints[slot][0] == 0);
        self.prints[slot] = [print, settled];
        if settled != print {
            self.rows[slot * self.width..][..self.width].copy_from_slice(row);
        }
    }

    /// Make room for four times as many worlds.
    fn grow(&mut self) {
        let slots = (4 * self.prints.len()).clamp(FIRST_SLOTS, self.most_slots());
        let mut larger = Self {
            prints: vec![[0; 2]; slots],
            rows: vec![0; slots * self.width],
            ..Self::new(self.width)
        };
        for (slot, [print, settled]) in self.prints.iter().enumerate() {
            if *print != 0 {
                larger.remember(*print, self.row(slot), *settled);
            }
        }
        *self = larger;
    }

    /// How many slots there may be: a power of two.
    fn most_slots(&self) -> usize {
        let slots = (MOST_WORDS / self.width.max(1)).clamp(FIRST_SLOTS, MOST_SLOTS);
        1 << slots.ilog2()
    }

    fn row(&self, slot: usize) -> &[u32] {
        &self.rows[slot * self.width..][..self.width]
    }

    /// The slot for a fingerprint. The number of slots is a power of two.
    fn slot(&self, print: u64) -> usize {
        print as usize & self.prints.len().wrapping_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_that_has_grown_still_knows_its_rows() {
        let mut cache = SettledRows::new(2);
        assert_eq!(cache.recall(7, &mut [0, 0]), None);
        let prints = 1..=FIRST_SLOTS as u64;
        for print in prints.clone() {
            // Every third row is settled already.
            let settled = if print % 3 == 0 { print } else { print + 1 };
            cache.remember(print, &[print as u32, 1], settled);
        }
        assert!(cache.prints.len() > FIRST_SLOTS);
        for print in prints {
            let mut row = [0, 0];
            let (settled, expected) =
                if print % 3 == 0 { (print, [0, 0]) } else { (print + 1, [print as u32, 1]) };
            assert_eq!((cache.recall(print, &mut row), row), (Some(settled), expected));
        }
    }
}
