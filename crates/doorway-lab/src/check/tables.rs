//! Tables of steps: what each event does to each part of a world, all in numbers.
//!
//! A node's step depends only on its own state and on the event. A group goes through far fewer
//! states of single nodes than worlds. So the shipped code takes each such step once, and it is
//! looked up from then on. [`WorldCodec`] knows what the numbers stand for.

use doorway_core::{Channel, NodeId};
use doorway_search::Tag;
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use super::codec::WorldCodec;
use super::interner::{Interner, hash};

/// What the model needs to know about a place, without looking at the node's state.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each of them is read on its own")]
pub(super) struct Facts {
    /// A hash of the place that does not depend on its number.
    pub(super) hash: u64,
    pub(super) acquires: bool,
    pub(super) releases: bool,
    pub(super) withdraws: bool,
    pub(super) waits: bool,
    pub(super) crashed: bool,
    pub(super) held: u32,
    pub(super) readers: u32,
}

/// The result of a node's step.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) place: u32,
    /// Receiver and letter.
    pub(super) sends: Vec<(NodeId, u32)>,
    pub(super) entered: bool,
    pub(super) refused: bool,
    pub(super) breached: bool,
}

/// A message that can be delivered from a channel, and the channel without it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    pub(super) letter: u32,
    pub(super) rest: u32,
}

/// An event as a number: one of these three, or [`LETTERS`] plus the number of a message.
pub(super) const ACQUIRE: u32 = 0;
pub(super) const RELEASE: u32 = 1;
pub(super) const WITHDRAW: u32 = 2;
pub(super) const LETTERS: u32 = 3;

/// The number of the empty channel.
pub(super) const EMPTY: u32 = 0;

/// A crash, a detection or forgetting: what the step did, and the row it leads to, or `None` if the
/// step violates one of the targets.
pub(super) type RareStep = (Tag, Option<Vec<u32>>);

/// Everything that was learnt so far. All parts grow at their ends only, so that a copy can
/// [follow](Self::follow).
pub(super) struct Tables {
    order: Channel,
    facts: Vec<Facts>,
    pub(super) channels: Interner<Vec<u32>>,
    deliveries: Vec<Vec<Delivery>>,
    pub(super) undetected: Interner<Vec<(NodeId, NodeId)>>,
    steps: IndexMap<u64, Outcome, FxBuildHasher>,
    puts: IndexMap<u64, u32, FxBuildHasher>,
}

impl Tables {
    pub(super) fn new(order: Channel) -> Self {
        let mut tables = Self {
            order,
            facts: Vec::new(),
            channels: Interner::new(),
            deliveries: Vec::new(),
            undetected: Interner::new(),
            steps: IndexMap::default(),
            puts: IndexMap::default(),
        };
        // Number 0 is the empty channel, and the empty list of undetected crashes.
        tables.intern_channel(Vec::new(), &|letter| letter.into());
        tables.undetected.intern(Vec::new());
        tables
    }

    pub(super) fn order(&self) -> Channel {
        self.order
    }

    /// Take over what `other` has learnt since both were equal. Returns whether that was anything.
    pub(super) fn follow(&mut self, other: &Self) -> bool {
        if self.extent() == other.extent() {
            return false;
        }
        self.facts.extend_from_slice(&other.facts[self.facts.len()..]);
        self.channels.follow(&other.channels);
        self.deliveries.extend_from_slice(&other.deliveries[self.deliveries.len()..]);
        self.undetected.follow(&other.undetected);
        let steps = other.steps[self.steps.len()..].iter();
        self.steps.extend(steps.map(|(key, outcome)| (*key, outcome.clone())));
        self.puts.extend(&other.puts[self.puts.len()..]);
        true
    }

    /// The length of each table.
    fn extent(&self) -> [usize; 5] {
        let undetected = self.undetected.len() as usize;
        let (facts, channels) = (self.facts.len(), self.deliveries.len());
        [facts, channels, undetected, self.steps.len(), self.puts.len()]
    }

    /// Do these tables know the place? A copy does not know a place that another thread just met.
    pub(super) fn knows(&self, place: u32) -> bool {
        (place as usize) < self.facts.len()
    }

    pub(super) fn facts(&self, place: u32) -> &Facts {
        &self.facts[place as usize]
    }

    pub(super) fn deliveries(&self, channel: u32) -> &[Delivery] {
        &self.deliveries[channel as usize]
    }

    /// The result of an event at a place, if it was learnt.
    pub(super) fn step(&self, place: u32, event: u32) -> Option<&Outcome> {
        self.steps.get(&key(place, event))
    }

    /// The channel with one more message, if it was learnt.
    pub(super) fn put(&self, channel: u32, letter: u32) -> Option<u32> {
        self.puts.get(&key(channel, letter)).copied()
    }

    pub(super) fn learn_step(&mut self, codec: &WorldCodec<'_>, place: u32, event: u32) {
        let outcome = codec.take(place, event);
        self.steps.insert(key(place, event), outcome);
        self.learn_facts(codec);
    }

    pub(super) fn learn_put(&mut self, codec: &WorldCodec<'_>, channel: u32, letter: u32) {
        let mut letters = self.channels.get(channel).clone();
        let at = match self.order {
            Channel::Fifo => letters.len(),
            Channel::Unordered => letters.partition_point(|other| codec.precedes(*other, letter)),
        };
        letters.insert(at, letter);
        let longer = self.intern_channel(letters, &|letter| codec.letter_hash(letter));
        self.puts.insert(key(channel, letter), longer);
    }

    /// Learn the facts about places that were added.
    pub(super) fn learn_facts(&mut self, codec: &WorldCodec<'_>) {
        let new = self.facts.len() as u32..codec.places();
        self.facts.extend(new.map(|place| codec.facts(place)));
    }

    /// The number of a channel with these letters. Its hash is one of the hashes of the letters,
    /// because their numbers are not the same in every run.
    pub(super) fn intern_channel(
        &mut self,
        letters: Vec<u32>,
        letter_hash: &dyn Fn(u32) -> u64,
    ) -> u32 {
        if let Some(known) = self.channels.find(&letters) {
            return known;
        }
        let fifo = self.order == Channel::Fifo;
        let reachable = if fifo { letters.len().min(1) } else { letters.len() };
        let mut deliveries = Vec::new();
        for index in 0..reachable {
            // In an unordered channel, equal messages lead to the same world.
            if index > 0 && letters[index] == letters[index - 1] {
                continue;
            }
            let mut rest = letters.clone();
            let letter = rest.remove(index);
            deliveries.push(Delivery { letter, rest: self.intern_channel(rest, letter_hash) });
        }
        self.deliveries.push(deliveries);
        let content = |letters: &Vec<u32>| {
            hash(&letters.iter().map(|letter| letter_hash(*letter)).collect::<Vec<u64>>())
        };
        self.channels.intern_hashed(letters, content)
    }
}

fn key(one: u32, other: u32) -> u64 {
    u64::from(one) << 32 | u64::from(other)
}
