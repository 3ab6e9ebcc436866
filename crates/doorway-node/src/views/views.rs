//! The machine that leads one node from view to view. It knows no clock, no network and no threads.
//!
//! Every member has an epoch, which it raises durably whenever it starts and whenever it wants a
//! new view. The epochs of all members together name a view, and their sum is its number.
//!
//! # Rules
//!
//! 1. What is known of the epochs only grows: a vector that is heard of is taken in member by
//!    member. One's own epoch is what one has raised oneself, whatever others say.
//! 2. Once all epochs are known, and whenever one has grown, the node stops: nobody enters any
//!    more. It says to all others what it holds at that moment. That snapshot never changes.
//! 3. A flush counts for exactly the view that it names, and only if that is the newest one known.
//! 4. The node starts the view when all others have flushed for it. Those inside are then those of
//!    all snapshots, its own as it was sent.
//!
//! # Why it is right
//!
//! Whoever starts a view knows that every member has left all older views, and knows everyone whom
//! they let in. A member flushes for a vector only while its own epoch is the one in it. So if of
//! two views each had a member whose epoch is higher than in the other, each of these two members
//! would have raised its epoch before the other one did: of two views that were started, one has
//! all the higher epochs. Their numbers differ, and fences that begin with them grow.

use doorway_core::{NodeId, NodeSet};
use doorway_protocol::{Fence, Name};

use crate::messages::{Flush, HeldLock};

/// How many locks a node may hold when it stops for a view; what exceeds it is refused by others.
pub const HELD_LIMIT: usize = 1 << 22;

/// How many bytes a part of a snapshot has at most.
const PART_BYTES: usize = 512 * 1024;

/// How many parts a snapshot has at most: enough for [`HELD_LIMIT`] locks with the longest names.
const PARTS_LIMIT: u32 = 2048;

/// How many bytes a lock adds to a part beside its name: two for the length of the name, one for
/// the mode, five for the permits.
const HELD_BYTES: usize = 8;

/// The name of a view: the epochs of all members.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View(Vec<u64>);

impl View {
    /// The number by which locks and fences know the view.
    pub fn number(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The epochs, in the order of the members.
    pub fn epochs(&self) -> &[u64] {
        &self.0
    }
}

/// What came of epochs that were heard of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LearnOutcome {
    /// All of it was known.
    Nothing,
    /// A member has a higher epoch than was known.
    News,
    /// Others know an epoch of this node that it has forgotten. No view has been started yet, so it
    /// may raise its epoch above this one and go on.
    Overtaken(u64),
}

/// All members have flushed: a view begins.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StartedView {
    /// The view.
    pub view: View,
    /// What each member holds, in the order of the members.
    pub held: Vec<Vec<HeldLock>>,
}

/// Why something was refused. It has changed nothing, but that the epochs of a flush whose part was
/// refused may be known now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// Others run with another list of members.
    #[error("{found} epochs were sent for a group of {size}")]
    Length {
        /// How many epochs came.
        found: usize,
        /// How many members there are.
        size: usize,
    },
    /// Fences would be full.
    #[error("epochs that lead to view {0}, but fences end at {limit}", limit = Fence::VIEW_LIMIT)]
    TooHigh(u64),
    /// Another process has started under the name of this node, which has to stop.
    #[error("another process runs under the name of this node, with epoch {0}")]
    Superseded(u64),
    /// Only other members flush.
    #[error("a flush of {0}, who is no other member")]
    Stranger(NodeId),
    /// A part that cannot be, or not after those before it.
    #[error("part {part} of {parts} of a snapshot, where part {due} was due")]
    Part {
        /// The part.
        part: u32,
        /// Of so many.
        parts: u32,
        /// The part that has to come next.
        due: u32,
    },
    /// The locks of a snapshot come in the order of their names, each once.
    #[error("the lock {0} is twice in a snapshot, or not in its place")]
    Order(Name),
    /// More than any node holds.
    #[error("a node that holds more than {HELD_LIMIT} locks")]
    TooMuch,
}

/// The views as one node sees them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Views {
    me: NodeId,
    /// The newest epochs known; 0 where none is.
    known: Vec<u64>,
    /// Has this node ever started a view?
    served: bool,
    stage: Stage,
    /// What the others have flushed for exactly the known epochs; nothing in our own place.
    heard: Vec<PeerSnapshot>,
}

/// How far the node has got with the known epochs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// It has yet to stop for them.
    Behind,
    /// It has stopped, and has told the others that it holds this.
    Flushed(Vec<HeldLock>),
    /// It has started the view that they name.
    Running,
}

/// What has come of the snapshot of one member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct PeerSnapshot {
    /// How many parts have come.
    part: u32,
    /// How many there are; 0 until the first has come.
    parts: u32,
    held: Vec<HeldLock>,
}

impl PeerSnapshot {
    fn is_whole(&self) -> bool {
        self.parts > 0 && self.part == self.parts
    }

    /// A link delivers in order and once, so any part but the next is a mistake of the sender.
    fn add(&mut self, flush: Flush) -> Result<(), ViewError> {
        if self.is_whole() {
            return Ok(()); // Told again, by one who could not know that it had arrived.
        }
        let Flush { part, parts, held, .. } = flush;
        let counts = parts == self.parts || (self.parts == 0 && (1..=PARTS_LIMIT).contains(&parts));
        // A part without locks would be sent for nothing, unless nothing is held.
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

impl Views {
    /// Node `me` of a group of `size`, with the epoch to which it has just raised itself.
    ///
    /// # Panics
    ///
    /// If `me` is no member, or the epoch is none: 0, or beyond what a fence can hold.
    pub fn new(me: NodeId, size: usize, epoch: u64) -> Self {
        assert!(me.index() < size, "node {me} is no member of a group of {size}");
        assert!((1..Fence::VIEW_LIMIT).contains(&epoch), "epoch {epoch} cannot be");
        let mut known = vec![0; size];
        known[me.index()] = epoch;
        let heard = vec![PeerSnapshot::default(); size];
        Self { me, known, served: false, stage: Stage::Behind, heard }
    }

    /// What another member knows of the epochs.
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
        // Here what was said of us is counted as well, for we may have to go above it.
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

    /// This node has durably raised its epoch: there will be a new view.
    pub fn raise(&mut self, epoch: u64) -> Result<(), ViewError> {
        let mut raised = self.known.clone();
        raised[self.me.index()] = epoch.max(raised[self.me.index()]);
        below_limit(&raised)?;
        self.advance(raised);
        Ok(())
    }

    /// Know these epochs, none of which is lower than before. What was heard for others is void.
    fn advance(&mut self, epochs: Vec<u64>) -> bool {
        let news = epochs != self.known;
        if news {
            self.known = epochs;
            self.stage = Stage::Behind;
            self.heard.fill(PeerSnapshot::default());
        }
        news
    }

    /// The view for which this node has to stop.
    pub fn pending(&self) -> Option<View> {
        let complete = !self.known.contains(&0);
        (complete && self.stage == Stage::Behind).then(|| View(self.known.clone()))
    }

    /// This node has stopped for a pending view; nobody has entered since what it holds was read.
    /// The parts are for each of the others. None come back if a newer view is known by now:
    /// [`Views::pending`] tells which.
    pub fn stopped(&mut self, view: &View, mut held: Vec<HeldLock>) -> Vec<Flush> {
        if self.pending().as_ref() == Some(view) {
            held.sort_unstable_by(|one, other| one.lock.cmp(&other.lock));
            self.stage = Stage::Flushed(held);
            self.flushes()
        } else {
            Vec::new()
        }
    }

    /// The parts of the snapshot once more while this node waits for others. They are for a process
    /// whose first connection is up: it may be known from a third member long before, and what was
    /// sent to its predecessor has not reached it.
    pub fn flushes(&self) -> Vec<Flush> {
        let Stage::Flushed(held) = &self.stage else { return Vec::new() };
        let cuts = cut(self.known.len(), held);
        let parts = cuts.len() as u32;
        let flush = |(part, held): (u32, &[HeldLock])| {
            let epochs = self.known.clone();
            Flush { epochs, part, parts, held: held.to_vec() }
        };
        (0..).zip(cuts).map(flush).collect()
    }

    /// Another member has stopped, and says what it holds. Epochs that its view names may be news;
    /// a flush for any view but the newest one known is of no use otherwise.
    pub fn flush(&mut self, from: NodeId, flush: Flush) -> Result<LearnOutcome, ViewError> {
        if from == self.me || from.index() >= self.known.len() {
            return Err(ViewError::Stranger(from));
        }
        let learned = self.learn(&flush.epochs)?;
        if flush.epochs == self.known {
            self.heard[from.index()].add(flush)?;
        }
        Ok(learned)
    }

    /// The view that begins now because all members have flushed for it: told once.
    pub fn ready(&mut self) -> Option<StartedView> {
        if !matches!(self.stage, Stage::Flushed(_)) || !self.missing().is_empty() {
            return None;
        }
        let Stage::Flushed(own) = std::mem::replace(&mut self.stage, Stage::Running) else {
            return None;
        };
        self.served = true;
        let mut held: Vec<_> =
            self.heard.iter_mut().map(|heard| std::mem::take(&mut heard.held)).collect();
        held[self.me.index()] = own;
        Some(StartedView { view: View(self.known.clone()), held })
    }

    /// Whom this node waits for: those whose epoch it does not know, else those who have not
    /// flushed for the newest view. Nobody while that view is running.
    pub fn missing(&self) -> NodeSet {
        let others = (0..self.known.len()).filter(|node| *node != self.me.index());
        let unknown = self.known.contains(&0);
        let missing = others.filter(|&node| match self.stage {
            Stage::Running => false,
            _ if unknown => self.known[node] == 0,
            _ => !self.heard[node].is_whole(),
        });
        missing.map(NodeId::at).collect()
    }

    /// The newest epochs known, for others to learn; 0 where none is.
    pub fn epochs(&self) -> &[u64] {
        &self.known
    }

    /// The number of the view that is running, if the newest one is.
    pub fn running(&self) -> Option<u64> {
        (self.stage == Stage::Running).then(|| self.known.iter().sum())
    }
}

fn below_limit(epochs: &[u64]) -> Result<(), ViewError> {
    let number = epochs.iter().fold(0, |sum: u64, epoch| sum.saturating_add(*epoch));
    if number < Fence::VIEW_LIMIT { Ok(()) } else { Err(ViewError::TooHigh(number)) }
}

/// Cut a snapshot into parts of few enough bytes, at least one.
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
