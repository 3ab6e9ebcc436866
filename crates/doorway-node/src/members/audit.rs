//! The audit log: what operators did to a group, and who they were.
//!
//! It is beside the [`Record`](super::Record), not in it, so that the record stays small. All
//! members have the same log.

use std::collections::VecDeque;

use doorway_protocol::AuditEntry;
use doorway_protocol::text::cut;
use serde::{Deserialize, Serialize};

/// How many entries the log keeps.
pub const AUDIT_LIMIT: usize = 1_000;

/// How many bytes a text of an entry may have. What is longer is cut.
const TEXT_LIMIT: usize = 160;

/// The last entries of the audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AuditLog {
    /// The number of the last entry.
    last: u64,
    entries: VecDeque<AuditEntry>,
}

impl AuditLog {
    /// A log of these entries, in the order of their numbers.
    pub(super) fn from_entries(entries: impl IntoIterator<Item = AuditEntry>) -> Self {
        let entries: VecDeque<AuditEntry> = entries.into_iter().collect();
        Self { last: entries.back().map_or(0, |entry| entry.number), entries }
    }

    /// Add an entry. One that is there already was sent again, because its sender got no answer.
    pub fn note(&mut self, entry: &AuditEntry) {
        let mut entry = entry.clone();
        let AuditEntry { number, at, node, who, from, what, result } = &mut entry;
        for text in [at, node, who, from, what, result] {
            text.truncate(cut(text, TEXT_LIMIT).len());
        }
        *number = 0;
        let same = |known: &AuditEntry| AuditEntry { number: 0, ..known.clone() } == entry;
        if self.entries.iter().any(same) {
            return;
        }
        self.last += 1;
        entry.number = self.last;
        self.entries.push_back(entry);
        if self.entries.len() > AUDIT_LIMIT {
            self.entries.pop_front();
        }
    }

    /// The entries after the one with this number, the oldest first.
    pub fn after(&self, number: u64) -> impl Iterator<Item = &AuditEntry> {
        self.entries.iter().filter(move |entry| entry.number > number)
    }
}
