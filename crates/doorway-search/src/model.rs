//! What the search needs to know of a system: a state is a row of words, and rows have successors.

/// A system whose states are rows of equal width, each with a fingerprint of 64 bits.
///
/// Whatever can be packed into rows is one: a group and its network, threads and their memory, a
/// specification written for comparison.
pub trait Model: Sync {
    /// How many words a row has.
    fn width(&self) -> usize;

    /// The state in which everything begins, and its fingerprint.
    fn first(&self) -> (Vec<u32>, u64);

    /// Push every successor of `row`, in an order that depends on nothing but the row.
    fn expand(&self, row: &[u32], print: u64, out: &mut Successors);

    /// Do the same for many rows at once: a model that must lock something does it only once.
    fn expand_all(&self, rows: &[u32], prints: &[u64], out: &mut [Successors]) {
        let rows = rows.chunks_exact(self.width());
        for ((row, print), successors) in rows.zip(prints).zip(out) {
            self.expand(row, *print, successors);
        }
    }
}

/// What a step did that can be seen from outside, in two bytes: kept for each step of a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tag(u16);

/// What a step did to the client of the node that took it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deed {
    /// Nothing.
    #[default]
    None,
    /// It began to wait.
    Asked,
    /// It waited, and went inside.
    Entered,
    /// It asked, and was inside at once.
    AskedAndEntered,
    /// It crashed.
    Crashed,
}

impl Tag {
    /// How many nodes can be told apart.
    pub const ACTORS: usize = 32;

    /// The tag of a step of node `actor`, counted from 0, that sent so many messages.
    pub fn new(actor: usize, deed: Deed, sends: usize) -> Self {
        let deed = match deed {
            Deed::None => 0,
            Deed::Asked => 1,
            Deed::Entered => 2,
            Deed::AskedAndEntered => 3,
            Deed::Crashed => 4,
        };
        Self((actor % Self::ACTORS) as u16 | deed << 5 | (sends.min(255) as u16) << 8)
    }

    /// Who took the step.
    pub fn actor(self) -> usize {
        usize::from(self.0) % Self::ACTORS
    }

    /// What became of its client.
    pub fn deed(self) -> Deed {
        match self.0 >> 5 & 7 {
            1 => Deed::Asked,
            2 => Deed::Entered,
            3 => Deed::AskedAndEntered,
            4 => Deed::Crashed,
            _ => Deed::None,
        }
    }

    /// Did a client go inside?
    pub fn entered(self) -> bool {
        matches!(self.deed(), Deed::Entered | Deed::AskedAndEntered)
    }

    /// How many messages were sent.
    pub fn sends(self) -> u64 {
        u64::from(self.0 >> 8)
    }
}

/// What must never happen: a state itself, which is nearer and so comes first, or one of its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wrong {
    /// The state itself.
    State,
    /// One of its steps, by its ordinal.
    Step(u32),
}

impl Wrong {
    /// The ordinal of the step, if it takes one.
    pub fn step(self) -> Option<u32> {
        match self {
            Self::State => None,
            Self::Step(ordinal) => Some(ordinal),
        }
    }
}

/// The successors of one state, and whether something in it or behind it must never happen.
#[derive(Debug, Default)]
pub struct Successors {
    rows: Vec<u32>,
    prints: Vec<u64>,
    tags: Vec<Tag>,
    broken: bool,
    breaking: Option<u32>,
}

/// The fingerprint of a successor that is not followed.
pub const NOT_FOLLOWED: u64 = 0;

impl Successors {
    /// A successor to be followed.
    pub fn push(&mut self, row: &[u32], print: u64, tag: Tag) {
        self.rows.extend_from_slice(row);
        self.prints.push(print.max(1));
        self.tags.push(tag);
    }

    /// A successor that exists and is not followed.
    pub fn leave(&mut self) {
        self.prints.push(NOT_FOLLOWED);
        self.tags.push(Tag::default());
    }

    /// The next successor would break something: it is not followed.
    pub fn breaks(&mut self) {
        self.breaking = self.breaking.or(Some(self.prints.len() as u32));
        self.leave();
    }

    /// The state itself is one that must never be.
    pub fn is_broken(&mut self) {
        self.broken = true;
    }

    /// Forget everything, keeping the buffers.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.prints.clear();
        self.tags.clear();
        self.broken = false;
        self.breaking = None;
    }

    /// Each successor: its fingerprint, which may be [`NOT_FOLLOWED`], its tag and its row.
    pub fn iter(&self, width: usize) -> impl Iterator<Item = (u64, Tag, &[u32])> {
        let mut rows = self.rows.chunks_exact(width);
        self.prints.iter().zip(&self.tags).map(move |(&print, &tag)| {
            let row = if print == NOT_FOLLOWED { &[] } else { rows.next().unwrap_or_default() };
            (print, tag, row)
        })
    }

    /// The fingerprints of those to be followed.
    pub fn prints(&self) -> impl Iterator<Item = u64> {
        self.prints.iter().copied().filter(|print| *print != NOT_FOLLOWED)
    }

    /// What of it must never happen.
    pub fn wrong(&self) -> Option<Wrong> {
        if self.broken { Some(Wrong::State) } else { self.breaking.map(Wrong::Step) }
    }

    /// How many there are, followed or not.
    pub fn len(&self) -> usize {
        self.prints.len()
    }

    /// Is this the end?
    pub fn is_empty(&self) -> bool {
        self.prints.is_empty()
    }
}
