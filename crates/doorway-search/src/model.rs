//! The system that is searched: a state is a row of words, and rows have successors.

/// A system to be searched. Its states are rows of 32-bit words, all of the same width, each with a
/// fingerprint of 64 bits.
///
/// Any system can be searched whose states fit into such rows, for example a group of nodes and its
/// network, or threads and their memory.
pub trait Model: Sync {
    /// The number of words of a row.
    fn width(&self) -> usize;

    /// The first state and its fingerprint.
    fn first(&self) -> (Vec<u32>, u64);

    /// Push every successor of `row`, in an order that depends only on the row. Call
    /// [`Successors::is_broken`] if the state itself must never be reached.
    fn expand(&self, row: &[u32], print: u64, out: &mut Successors);

    /// Expand many rows at once. A model that has to take a lock for that can override this and
    /// take it only once.
    fn expand_all(&self, rows: &[u32], prints: &[u64], out: &mut [Successors]) {
        let rows = rows.chunks_exact(self.width());
        for ((row, print), successors) in rows.zip(prints).zip(out) {
            self.expand(row, *print, successors);
        }
    }
}

/// What a step did, in two bytes: the node that took it, what became of its client, and how many
/// messages it sent. A [`Graph`](crate::Graph) keeps it for each step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tag(u16);

/// What a step did for the client of the node that took it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientEvent {
    /// Nothing that others can see.
    #[default]
    None,
    /// The client began to wait.
    Asked,
    /// The client waited, and entered.
    Entered,
    /// The client asked, and entered at once.
    AskedAndEntered,
    /// The node crashed.
    Crashed,
    /// The client waited, and gave up.
    Withdrew,
}

impl Tag {
    /// The number of nodes that can be told apart.
    pub const ACTORS: usize = 32;

    /// The tag of a step of node `actor`, counted from 0, that sent `sends` messages (255 stands
    /// for more).
    pub fn new(actor: usize, event: ClientEvent, sends: usize) -> Self {
        let event = match event {
            ClientEvent::None => 0,
            ClientEvent::Asked => 1,
            ClientEvent::Entered => 2,
            ClientEvent::AskedAndEntered => 3,
            ClientEvent::Crashed => 4,
            ClientEvent::Withdrew => 5,
        };
        Self((actor % Self::ACTORS) as u16 | event << 5 | (sends.min(255) as u16) << 8)
    }

    /// The tag as a number.
    pub(super) fn to_bits(self) -> u16 {
        self.0
    }

    /// The tag of this number.
    pub(super) fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// The node that took the step.
    pub fn actor(self) -> usize {
        usize::from(self.0) % Self::ACTORS
    }

    /// What the step did for the client of that node.
    pub fn client_event(self) -> ClientEvent {
        match self.0 >> 5 & 7 {
            1 => ClientEvent::Asked,
            2 => ClientEvent::Entered,
            3 => ClientEvent::AskedAndEntered,
            4 => ClientEvent::Crashed,
            5 => ClientEvent::Withdrew,
            _ => ClientEvent::None,
        }
    }

    /// Whether the client entered with this step.
    pub fn entered(self) -> bool {
        matches!(self.client_event(), ClientEvent::Entered | ClientEvent::AskedAndEntered)
    }

    /// The number of messages that the step sent.
    pub fn sends(self) -> u64 {
        u64::from(self.0 >> 8)
    }
}

/// A violation: something that must never happen. A broken state comes before a broken step,
/// because it is one step nearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ModelViolation {
    /// The state itself must never be reached.
    State,
    /// One of the steps of the state must never be taken; its position among the successors.
    Step(u32),
}

impl ModelViolation {
    /// The position of the step, if the violation is a step.
    pub fn step(self) -> Option<u32> {
        match self {
            Self::State => None,
            Self::Step(ordinal) => Some(ordinal),
        }
    }
}

/// The successors of one state, and whether the state or one of its steps is a violation.
#[derive(Debug, Default)]
pub struct Successors {
    rows: Vec<u32>,
    prints: Vec<u64>,
    tags: Vec<Tag>,
    broken: bool,
    breaking: Option<u32>,
}

/// Marks a successor that is not followed, in place of its fingerprint.
pub const NOT_FOLLOWED: u64 = 0;

impl Successors {
    /// Add a successor.
    pub fn push(&mut self, row: &[u32], print: u64, tag: Tag) {
        self.rows.extend_from_slice(row);
        self.prints.push(print.max(1));
        self.tags.push(tag);
    }

    /// Add a successor that exists but is not followed, for example because it lies beyond a bound.
    pub fn leave(&mut self) {
        self.prints.push(NOT_FOLLOWED);
        self.tags.push(Tag::default());
    }

    /// Add a step that must never be taken. It is not followed.
    pub fn breaks(&mut self) {
        self.breaking = self.breaking.or(Some(self.prints.len() as u32));
        self.leave();
    }

    /// Report that the state itself must never be reached.
    pub fn is_broken(&mut self) {
        self.broken = true;
    }

    /// Remove everything, and keep the allocated memory.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.prints.clear();
        self.tags.clear();
        self.broken = false;
        self.breaking = None;
    }

    /// All successors, each as its fingerprint, tag and row. The fingerprint of one that is not
    /// followed is [`NOT_FOLLOWED`], and its row is empty.
    pub fn iter(&self, width: usize) -> impl Iterator<Item = (u64, Tag, &[u32])> {
        let mut rows = self.rows.chunks_exact(width);
        self.prints.iter().zip(&self.tags).map(move |(&print, &tag)| {
            let row = if print == NOT_FOLLOWED { &[] } else { rows.next().unwrap_or_default() };
            (print, tag, row)
        })
    }

    /// Change the successors that are followed, one after the other: `change` gets a row and its
    /// fingerprint, may write another row over it, and returns the fingerprint of what it wrote.
    /// The first error ends this; the successors before it stay changed.
    pub fn rewrite<E>(
        &mut self,
        width: usize,
        mut change: impl FnMut(&mut [u32], u64) -> Result<u64, E>,
    ) -> Result<(), E> {
        let followed = self.prints.iter_mut().filter(|print| **print != NOT_FOLLOWED);
        for (print, row) in followed.zip(self.rows.chunks_exact_mut(width)) {
            *print = change(row, *print)?.max(1);
        }
        Ok(())
    }

    /// The fingerprints of the successors that are followed.
    pub fn prints(&self) -> impl Iterator<Item = u64> {
        self.prints.iter().copied().filter(|print| *print != NOT_FOLLOWED)
    }

    /// The violation, if there is one.
    pub fn wrong(&self) -> Option<ModelViolation> {
        if self.broken {
            Some(ModelViolation::State)
        } else {
            self.breaking.map(ModelViolation::Step)
        }
    }

    /// The number of successors, followed or not.
    pub fn len(&self) -> usize {
        self.prints.len()
    }

    /// Whether the state has no successors.
    pub fn is_empty(&self) -> bool {
        self.prints.is_empty()
    }
}
