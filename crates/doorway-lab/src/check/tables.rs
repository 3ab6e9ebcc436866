//! What steps make of the parts of worlds, all in numbers.
//!
//! A node's step depends on nothing but its own state and what happens to it, and a group goes
//! through far fewer states of single nodes than worlds. So each such step is taken once, by the
//! shipped code, and looked up from then on. [`WorldCodec`] knows what the numbers stand for.

use doorway_core::{Channel, NodeId};
use doorway_search::Tag;
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use super::codec::WorldCodec;
use super::interner::Interner;

/// What can be asked of a place without looking at its state.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each of them is asked on its own")]
pub(super) struct Facts {
    /// A hash of the place that depends on nothing else.
    pub(super) hash: u64,
    pub(super) acquires: bool,
    pub(super) releases: bool,
    pub(super) waits: bool,
    pub(super) crashed: bool,
    pub(super) held: u32,
    pub(super) readers: u32,
}

/// What a step made of a place.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) place: u32,
    /// Receiver and letter.
    pub(super) sends: Vec<(NodeId, u32)>,
    pub(super) entered: bool,
    pub(super) refused: bool,
    pub(super) breached: bool,
}

/// Something that can be delivered from a channel: the letter, and the channel without it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    pub(super) letter: u32,
    pub(super) rest: u32,
}

/// What happens to a place, as a number: one of these two, or a letter after them.
pub(super) const ACQUIRE: u32 = 0;
pub(super) const RELEASE: u32 = 1;
pub(super) const LETTERS: u32 = 2;

/// A successor in which rare things happen: what its step did, and its row unless it is wrong.
pub(super) type RareStep = (Tag, Option<Vec<u32>>);

/// Everything seen so far. It only grows at its ends, so that a copy can [follow](Self::follow).
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
        // Number 0 is the empty channel, and nothing undetected.
        tables.intern_channel(Vec::new());
        tables.undetected.intern(Vec::new());
        tables
    }

    pub(super) fn order(&self) -> Channel {
        self.order
    }

    /// Learn what another learnt since both were equal: was there anything?
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

    /// How much was seen.
    fn extent(&self) -> [usize; 5] {
        let undetected = self.undetected.len() as usize;
        let (facts, channels) = (self.facts.len(), self.deliveries.len());
        [facts, channels, undetected, self.steps.len(), self.puts.len()]
    }

    /// Is this place among those seen? One that another thread just met is not, in a copy.
    pub(super) fn knows(&self, place: u32) -> bool {
        (place as usize) < self.facts.len()
    }

    pub(super) fn facts(&self, place: u32) -> &Facts {
        &self.facts[place as usize]
    }

    pub(super) fn deliveries(&self, channel: u32) -> &[Delivery] {
        &self.deliveries[channel as usize]
    }

    /// What an event makes of a place, if it was learnt.
    pub(super) fn step(&self, place: u32, event: u32) -> Option<&Outcome> {
        self.steps.get(&key(place, event))
    }

    /// The channel with a letter put in, if it was learnt.
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
        let longer = self.intern_channel(letters);
        self.puts.insert(key(channel, letter), longer);
    }

    /// Learn what there is to know of places that were added.
    pub(super) fn learn_facts(&mut self, codec: &WorldCodec<'_>) {
        let new = self.facts.len() as u32..codec.places();
        self.facts.extend(new.map(|place| codec.facts(place)));
    }

    pub(super) fn intern_channel(&mut self, letters: Vec<u32>) -> u32 {
        if let Some(known) = self.channels.find(&letters) {
            return known;
        }
        let fifo = self.order == Channel::Fifo;
        let reachable = if fifo { letters.len().min(1) } else { letters.len() };
        let mut deliveries = Vec::new();
        for index in 0..reachable {
            // Equal messages of an unordered channel are one choice.
            if index > 0 && letters[index] == letters[index - 1] {
                continue;
            }
            let mut rest = letters.clone();
            let letter = rest.remove(index);
            deliveries.push(Delivery { letter, rest: self.intern_channel(rest) });
        }
        self.deliveries.push(deliveries);
        self.channels.intern(letters)
    }
}

fn key(one: u32, other: u32) -> u64 {
    u64::from(one) << 32 | u64::from(other)
}
