//! The exchange of snapshots for one view: each member stops, and tells all others which locks it
//! holds. The view starts when all snapshots have arrived.
//!
//! Nothing here depends on how members agree that there is a view.

use doorway_core::{NodeId, NodeSet};

use super::epochs::ViewError;
use crate::messages::{Flush, HeldLock};

/// How many locks a node may hold when it stops for a view. Other members refuse a longer snapshot.
pub const HELD_LIMIT: usize = 1 << 22;

/// The most bytes that one part of a snapshot may have.
const PART_BYTES: usize = 512 * 1024;

/// The most parts that a snapshot may have: enough for [`HELD_LIMIT`] locks with the longest names.
const PARTS_LIMIT: u32 = 2048;

/// How many bytes a lock adds to a part besides its name: two for the length of the name, one for
/// the mode, five for the permits.
const HELD_BYTES: usize = 8;

/// The snapshots for one view, as one node has them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct FlushRound {
    me: NodeId,
    stage: Stage,
    /// The snapshots of the others. The place of this node is unused.
    heard: Vec<PeerSnapshot>,
}

/// How far the node has got with the view.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// The node has not stopped for the view yet.
    Behind,
    /// The node has stopped, and has told the others that it holds these locks.
    Flushed(Vec<HeldLock>),
    /// The node has started the view.
    Running,
}

impl FlushRound {
    /// Begin the exchange for a view of this many members. No snapshot is known yet.
    pub(super) fn new(me: NodeId, size: usize) -> Self {
        Self { me, stage: Stage::Behind, heard: vec![PeerSnapshot::default(); size] }
    }

    /// Has this node yet to stop for the view?
    pub(super) fn is_behind(&self) -> bool {
        self.stage == Stage::Behind
    }

    /// Has this node started the view?
    pub(super) fn is_running(&self) -> bool {
        self.stage == Stage::Running
    }

    /// Note that this node has stopped, and holds these locks.
    pub(super) fn stopped(&mut self, mut held: Vec<HeldLock>) {
        held.sort_unstable_by(|one, other| one.lock.cmp(&other.lock));
        self.stage = Stage::Flushed(held);
    }

    /// The parts of this node's snapshot for the view of this name, while the node waits for
    /// others.
    pub(super) fn parts(&self, view: &[u64]) -> Vec<Flush> {
        let Stage::Flushed(held) = &self.stage else { return Vec::new() };
        let cuts = cut(view.len(), held);
        let parts = cuts.len() as u32;
        let flush = |(part, held): (u32, &[HeldLock])| {
            let epochs = view.to_vec();
            Flush { epochs, part, parts, held: held.to_vec() }
        };
        (0..).zip(cuts).map(flush).collect()
    }

    /// Take a part of the snapshot of another member for this view.
    pub(super) fn hear(&mut self, from: NodeId, flush: Flush) -> Result<(), ViewError> {
        self.heard[from.index()].add(flush)
    }

    /// The other members whose snapshots have not arrived in full.
    pub(super) fn missing(&self) -> NodeSet {
        let others = (0..self.heard.len()).filter(|node| *node != self.me.index());
        others.filter(|node| !self.heard[*node].is_whole()).map(NodeId::at).collect()
    }

    /// Start the view if all members have flushed. Returns the snapshots, once.
    pub(super) fn start(&mut self) -> Option<Vec<Vec<HeldLock>>> {
        if !matches!(self.stage, Stage::Flushed(_)) || !self.missing().is_empty() {
            return None;
        }
        let Stage::Flushed(own) = std::mem::replace(&mut self.stage, Stage::Running) else {
            return None;
        };
        let mut held: Vec<_> =
            self.heard.iter_mut().map(|heard| std::mem::take(&mut heard.held)).collect();
        // The own snapshot counts as it was sent, even if clients have left since.
        held[self.me.index()] = own;
        Some(held)
    }
}

/// The parts of one member's snapshot that have arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct PeerSnapshot {
    /// How many parts have arrived.
    part: u32,
    /// How many parts there are; 0 until the first has arrived.
    parts: u32,
    held: Vec<HeldLock>,
}

impl PeerSnapshot {
    fn is_whole(&self) -> bool {
        self.parts > 0 && self.part == self.parts
    }

    /// Add the next part. A link delivers in order and exactly once, so any other part is a mistake
    /// of the sender.
    fn add(&mut self, flush: Flush) -> Result<(), ViewError> {
        if self.is_whole() {
            return Ok(()); // Sent again by a member that could not know that it had arrived.
        }
        let Flush { part, parts, held, .. } = flush;
        let counts = parts == self.parts || (self.parts == 0 && (1..=PARTS_LIMIT).contains(&parts));
        // A part without locks is sent only if nothing is held.
        if part != self.part || part >= parts || !counts || (held.is_empty() && parts > 1) {
            return Err(ViewError::Part { part, parts, due: self.part });
        }
        if held.len() > HELD_LIMIT - self.held.len() {
            return Err(ViewError::TooMuch);
        }
        let mut last = self.held.last();
        for held in &held {
            if last.is_some_and(|last| last.lock >= held.lock) {
                return Err(ViewError::Order(held.lock.clone()));
            }
            last = Some(held);
        }
        (self.part, self.parts) = (part + 1, parts);
        self.held.extend(held);
        Ok(())
    }
}

/// Split a snapshot into parts of at most [`PART_BYTES`], at least one.
fn cut(size: usize, held: &[HeldLock]) -> Vec<&[HeldLock]> {
    // Up to ten bytes for each epoch, and for each of the three other numbers.
    let header = 10 * (size + 3);
    let mut parts = Vec::new();
    let (mut begin, mut bytes) = (0, header);
    for (at, next) in held.iter().enumerate() {
        let more = next.lock.as_str().len() + HELD_BYTES;
        if bytes + more > PART_BYTES && at > begin {
            parts.push(&held[begin..at]);
            (begin, bytes) = (at, header);
        }
        bytes += more;
    }
    parts.push(&held[begin..]);
    parts
}
