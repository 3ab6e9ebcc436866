//! Messages under way in a simulated run.

use doorway_core::{Channel, NodeId};
use rustc_hash::FxHashMap;

use super::accounts::RequestId;
use super::distribution::Delay;
use crate::erased::Slot;

/// The address of a message under way, and the request that pays for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Letter {
    pub(super) from: NodeId,
    pub(super) to: NodeId,
    pub(super) cause: RequestId,
    /// The number that joins its two ends in a trace.
    pub(super) id: u64,
}

/// The letters under way, each in the slot of its message.
#[derive(Clone, Debug, Default)]
pub(super) struct Letters {
    slots: Vec<Option<Letter>>,
    under_way: usize,
}

impl Letters {
    pub(super) fn put(&mut self, slot: Slot, letter: Letter) {
        let slot = slot as usize;
        if slot >= self.slots.len() {
            self.slots.resize(slot + 1, None);
        }
        self.slots[slot] = Some(letter);
        self.under_way += 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.under_way == 0
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Letter> {
        self.slots.iter().flatten()
    }

    pub(super) fn take(&mut self, slot: Slot) -> Letter {
        self.under_way -= 1;
        self.slots[slot as usize].take().expect("an event names a letter under way")
    }
}

/// Keeps channels in order. It stores when the last letter of each channel arrives.
#[derive(Clone, Debug)]
pub(super) enum Order {
    /// Nothing is stored: channels are unordered, or delays are constant, which keeps the order.
    Free,
    /// A table of all channels, if that is small.
    Table { size: usize, last: Vec<u64> },
    /// For each sender, the channels it has used.
    Maps(Vec<FxHashMap<NodeId, u64>>),
}

impl Order {
    /// The largest group with a table, which takes 8 MiB. Larger groups use maps.
    const LARGEST_TABLE: usize = 1024;

    pub(super) fn new(channel: Channel, delay: &Delay, size: usize) -> Self {
        if channel == Channel::Unordered || !delay.reorders() {
            Self::Free
        } else if size <= Self::LARGEST_TABLE {
            Self::Table { size, last: vec![0; size * size] }
        } else {
            Self::Maps(vec![FxHashMap::default(); size])
        }
    }

    /// When a letter that was drawn to arrive at `at` arrives.
    pub(super) fn admit(&mut self, from: NodeId, to: NodeId, at: u64) -> u64 {
        let last = match self {
            Self::Free => return at,
            Self::Table { size, last } => &mut last[from.index() * *size + to.index()],
            Self::Maps(maps) => maps[from.index()].entry(to).or_default(),
        };
        *last = at.max(*last);
        *last
    }
}
