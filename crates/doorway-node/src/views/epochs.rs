//! The views of a group with a fixed list of members, as one node sees them. This knows no clock,
//! no network and no threads.
//!
//! Every member has an epoch, which it raises durably whenever it starts and whenever it wants a
//! new view. The epochs of all members together identify a view, and their sum is its number.
//!
//! # Rules
//!
//! 1. The known epochs only grow: a vector that another member sends is merged in, member by
//!    member. A node's own epoch is what it has raised itself, whatever others say.
//! 2. Once all epochs are known, and whenever one has grown, the node stops: no client enters any
//!    more. The node tells all others what it holds at that moment (it flushes). That snapshot
//!    never changes.
//! 3. A flush counts for exactly the view that it names, and only if that is the newest view known.
//! 4. The node starts the view when all others have flushed for it. The holders are then those of
//!    all snapshots, with its own snapshot as it was sent.
//!
//! # Why it is right
//!
//! A node that starts a view knows that every member has left all older views, and knows all
//! clients that they let in. A member flushes for a vector only while its own epoch is the one in
//! the vector. Suppose that each of two started views had a member whose epoch is higher there than
//! in the other view. Then each of these two members would have raised its epoch before the other
//! one did, which is impossible. So of two started views, one has all the higher epochs. Their
//! numbers differ, and fences that begin with these numbers grow.

use doorway_core::{NodeId, NodeSet};
use doorway_protocol::{Fence, Name};

use super::flush::{FlushRound, HELD_LIMIT};
use crate::messages::{Flush, HeldLock};

/// A view, identified by the epochs of all members.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View(Vec<u64>);

impl View {
    /// The number of the view, which locks and fences use.
    pub fn number(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The epochs, in the order of the members.
    pub fn epochs(&self) -> &[u64] {
        &self.0
    }
}

/// What a node has learnt from the epochs that another member sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LearnOutcome {
    /// Nothing new.
    Nothing,
    /// A member has a higher epoch than was known.
    News,
    /// Other members know a higher epoch of this node than the node itself, which must have
    /// forgotten it. The node has not started a view yet, so it may raise its epoch above this one
    /// and go on.
    Overtaken(u64),
}

/// A view that begins, because all members have flushed for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StartedView {
    /// The view.
    pub view: View,
    /// The locks that each member holds, in the order of the members.
    pub held: Vec<Vec<HeldLock>>,
}

/// Why a message about views was refused. Nothing has changed, except that the epochs of a refused
/// flush may be known now.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ViewError {
    /// The sender has another number of members.
    #[error("{found} epochs were sent, but the group has {size} members")]
    Length {
        /// How many epochs were sent.
        found: usize,
        /// How many members there are.
        size: usize,
    },
    /// The view's number would be too high for a fence.
    #[error("the epochs lead to view {0}, but a view is below {limit}", limit = Fence::VIEW_LIMIT)]
    TooHigh(u64),
    /// Another process has started under the name of this node. This one has to stop.
    #[error("another process runs under the name of this node, with epoch {0}")]
    Superseded(u64),
    /// The flush does not come from another member.
    #[error("a flush from {0}, which is not another member")]
    Stranger(NodeId),
    /// The flush is for a view of which its sender is not a member.
    #[error("a flush for view {0}, of which the sender is not a member")]
    NoMember(u64),
    /// A part of a snapshot is invalid, or is not the next one.
    #[error("part {part} of {parts} of a snapshot arrived, but part {due} was due")]
    Part {
        /// The number of the part.
        part: u32,
        /// The number of parts that the sender announces.
        parts: u32,
        /// The part that is due next.
        due: u32,
    },
    /// The locks of a snapshot must be sorted by name, each once.
    #[error("the lock {0} is in a snapshot twice, or not in the order of names")]
    Order(Name),
    /// The sender holds more locks than any node may hold.
    #[error("the sender claims to hold more than {HELD_LIMIT} locks")]
    TooMuch,
}

/// The views as one node sees them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Views {
    me: NodeId,
    /// The newest epochs known; 0 where none is known.
    known: Vec<u64>,
    /// Has this node ever started a view?
    served: bool,
    /// The snapshots for exactly the known epochs.
    round: FlushRound,
}

impl Views {
    /// Make the machine of node `me` in a group of `size`, with the epoch to which the node has
    /// just raised itself.
    ///
    /// # Panics
    ///
    /// If `me` is not a member, or the epoch is 0 or beyond what a fence can hold.
    pub fn new(me: NodeId, size: usize, epoch: u64) -> Self {
        assert!(me.index() < size, "node {me} is not a member of a group of {size}");
        assert!((1..Fence::VIEW_LIMIT).contains(&epoch), "epoch {epoch} is impossible");
        let mut known = vec![0; size];
        known[me.index()] = epoch;
        Self { me, known, served: false, round: FlushRound::new(me, size) }
    }

    /// Learn the epochs that another member knows.
    pub fn learn(&mut self, epochs: &[u64]) -> Result<LearnOutcome, ViewError> {
        if epochs.len() != self.known.len() {
            let (found, size) = (epochs.len(), self.known.len());
            return Err(ViewError::Length { found, size });
        }
        let own = self.known[self.me.index()];
        let theirs = epochs[self.me.index()];
        if theirs > own && self.served {
            return Err(ViewError::Superseded(theirs));
        }
        let mut merged: Vec<u64> =
            epochs.iter().zip(&self.known).map(|(theirs, ours)| *theirs.max(ours)).collect();
        // The epoch that others know of this node counts here too, because this node may have to go
        // above it.
        below_limit(&merged)?;
        merged[self.me.index()] = own;
        let news = self.advance(merged);
        Ok(if theirs > own {
            LearnOutcome::Overtaken(theirs)
        } else if news {
            LearnOutcome::News
        } else {
            LearnOutcome::Nothing
        })
    }

    /// Note that this node has durably raised its epoch, so there will be a new view.
    pub fn raise(&mut self, epoch: u64) -> Result<(), ViewError> {
        let mut raised = self.known.clone();
        raised[self.me.index()] = epoch.max(raised[self.me.index()]);
        below_limit(&raised)?;
        self.advance(raised);
        Ok(())
    }

    /// Replace the known epochs; none of the new ones is lower than before. Snapshots for the old
    /// epochs are dropped. Returns whether anything has changed.
    fn advance(&mut self, epochs: Vec<u64>) -> bool {
        let news = epochs != self.known;
        if news {
            self.round = FlushRound::new(self.me, epochs.len());
            self.known = epochs;
        }
        news
    }

    /// The view for which this node has to stop now, if there is one.
    pub fn pending(&self) -> Option<View> {
        let complete = !self.known.contains(&0);
        (complete && self.round.is_behind()).then(|| View(self.known.clone()))
    }

    /// Note that this node has stopped for a pending view and holds these locks; no client may have
    /// entered since they were read. Returns the parts of the snapshot, for each of the other
    /// members. If a newer view is known by now, nothing is returned, and [`Views::pending`] gives
    /// the newer view.
    pub fn stopped(&mut self, view: &View, held: Vec<HeldLock>) -> Vec<Flush> {
        if self.pending().as_ref() == Some(view) {
            self.round.stopped(held);
            self.flushes()
        } else {
            Vec::new()
        }
    }

    /// The parts of this node's snapshot, while the node waits for others. They are sent again to a
    /// process that has just connected for the first time: other members may have known it long
    /// before, but what was sent to its predecessor has not reached it.
    pub fn flushes(&self) -> Vec<Flush> {
        self.round.parts(&self.known)
    }

    /// Take a part of another member's snapshot. Its epochs may be news. A snapshot for any view
    /// but the newest one known is otherwise ignored.
    pub fn flush(&mut self, from: NodeId, flush: Flush) -> Result<LearnOutcome, ViewError> {
        if from == self.me || from.index() >= self.known.len() {
            return Err(ViewError::Stranger(from));
        }
        let learned = self.learn(&flush.epochs)?;
        if flush.epochs == self.known {
            self.round.hear(from, flush)?;
        }
        Ok(learned)
    }

    /// The view that begins now, because all members have flushed for it. It is returned once.
    pub fn ready(&mut self) -> Option<StartedView> {
        let held = self.round.start()?;
        self.served = true;
        Some(StartedView { view: View(self.known.clone()), held })
    }

    /// The members for which this node waits: those whose epoch it does not know; or, if it knows
    /// all epochs, those that have not flushed for the newest view. None while that view is
    /// running.
    pub fn missing(&self) -> NodeSet {
        let unknown = || (0..self.known.len()).filter(|node| self.known[*node] == 0);
        if self.round.is_running() {
            NodeSet::new()
        } else if unknown().next().is_some() {
            unknown().map(NodeId::at).collect()
        } else {
            self.round.missing()
        }
    }

    /// The newest epochs known, to be sent to others; 0 where none is known.
    pub fn epochs(&self) -> &[u64] {
        &self.known
    }

    /// The number of the view that is running, if the newest one is.
    pub fn running(&self) -> Option<u64> {
        self.round.is_running().then(|| self.known.iter().sum())
    }
}

fn below_limit(epochs: &[u64]) -> Result<(), ViewError> {
    let number = epochs.iter().fold(0, |sum: u64, epoch| sum.saturating_add(*epoch));
    if number < Fence::VIEW_LIMIT { Ok(()) } else { Err(ViewError::TooHigh(number)) }
}
