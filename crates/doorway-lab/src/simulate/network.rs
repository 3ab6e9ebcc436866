//! Messages under way in a timed run.

use std::collections::BTreeMap;

use doorway_core::{Channel, NodeId};

use super::accounts::RequestId;
use super::law::Delay;

/// A message under way and the request that pays for it.
#[derive(Clone, Debug)]
pub(super) struct Letter<M> {
    pub(super) from: NodeId,
    pub(super) to: NodeId,
    pub(super) cause: RequestId,
    /// Joins the two ends in a trace.
    pub(super) id: u64,
    pub(super) message: M,
}

/// Letters by slot, so that the event queue moves small numbers only.
#[derive(Clone, Debug)]
pub(super) struct Letters<M> {
    slots: Vec<Option<Letter<M>>>,
    free: Vec<u32>,
}

impl<M> Letters<M> {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    pub(super) fn put(&mut self, letter: Letter<M>) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = Some(letter);
            slot
        } else {
            self.slots.push(Some(letter));
            (self.slots.len() - 1) as u32
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Letter<M>> {
        self.slots.iter().flatten()
    }

    pub(super) fn take(&mut self, slot: u32) -> Letter<M> {
        self.free.push(slot);
        self.slots[slot as usize].take().expect("an event names a letter under way")
    }
}

/// Keeps channels in order: when the last letter of each arrives.
#[derive(Clone, Debug)]
pub(super) enum Order {
    /// Nothing to do: no order is promised, or constant delays keep it by themselves.
    Free,
    /// A table of all channels, where that is small.
    Table { size: usize, last: Vec<u64> },
    /// For each sender, the channels it has used.
    Maps(Vec<BTreeMap<NodeId, u64>>),
}

impl Order {
    /// Larger groups have maps: the table of this many nodes takes 8 MiB.
    const LARGEST_TABLE: usize = 1024;

    pub(super) fn new(channel: Channel, delay: &Delay, size: usize) -> Self {
        if channel == Channel::Unordered || !delay.reorders() {
            Self::Free
        } else if size <= Self::LARGEST_TABLE {
            Self::Table { size, last: vec![0; size * size] }
        } else {
            Self::Maps(vec![BTreeMap::new(); size])
        }
    }

    /// When a letter that would arrive `at` may arrive.
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
