//! The settled rows of the worlds that a thread met last.

use std::hint::black_box;

/// How many worlds are remembered.
const SLOTS: usize = 1 << 20;

/// A cache: the settled form of a row, by the fingerprint of the row.
///
/// Several steps lead to the same world, most of them within one layer of the search. To look its
/// settled form up takes a fraction of the time of settling it again. A newer world displaces an
/// older one from its slot.
pub(super) struct SettledRows {
    /// The number of words of a row.
    width: usize,
    /// For each slot the fingerprint of a row, and that of its settled form. The fingerprint 0
    /// marks an empty slot.
    prints: Vec<[u64; 2]>,
    /// For each slot the settled row, if it is not the row itself.
    rows: Vec<u32>,
}

impl SettledRows {
    /// An empty cache for rows of this width. It takes memory when it is first used.
    pub(super) fn new(width: usize) -> Self {
        Self { width, prints: Vec::new(), rows: Vec::new() }
    }

    /// Read the slots of many rows before the first of them is looked up. That waits for the memory
    /// once, not once for each.
    pub(super) fn glance(&self, prints: impl Iterator<Item = u64>) {
        if !self.prints.is_empty() {
            black_box(prints.fold(0, |seen, print| seen ^ self.prints[slot(print)][0]));
        }
    }

    /// Replace the row with this fingerprint by its settled form, if that is remembered. Returns
    /// the fingerprint of the settled form.
    pub(super) fn recall(&self, print: u64, row: &mut [u32]) -> Option<u64> {
        let slot = slot(print);
        let &[known, settled] = self.prints.get(slot)?;
        if known != print || print == 0 {
            return None;
        }
        if settled != print {
            row.copy_from_slice(&self.rows[slot * self.width..][..self.width]);
        }
        Some(settled)
    }

    /// Remember that `row`, with the fingerprint `settled`, is the settled form of the row with the
    /// fingerprint `print`.
    pub(super) fn remember(&mut self, print: u64, row: &[u32], settled: u64) {
        if self.prints.is_empty() {
            self.prints = vec![[0; 2]; SLOTS];
            self.rows = vec![0; SLOTS * self.width];
        }
        let slot = slot(print);
        self.prints[slot] = [print, settled];
        if settled != print {
            self.rows[slot * self.width..][..self.width].copy_from_slice(row);
        }
    }
}

fn slot(print: u64) -> usize {
    print as usize % SLOTS
}
