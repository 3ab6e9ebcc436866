//! The parts of worlds, each kept once and named by a number, and what steps make of them.
//!
//! A node's step depends on nothing but its own state and what happens to it, and a group goes
//! through far fewer states of single nodes than worlds. So each such step is taken once, by the
//! shipped code, and looked up from then on.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use doorway_core::{Algorithm, Channel, Effects, Group, Input, Mode, NodeId, Phase};
use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use crate::FOREVER;
use crate::world::Place;

/// Values of a kind, each with a number and a hash that depends on nothing but the value.
#[derive(Debug)]
pub(super) struct Kept<T> {
    values: IndexSet<T, FxBuildHasher>,
    hashes: Vec<u64>,
}

impl<T: Hash + Eq> Kept<T> {
    fn new() -> Self {
        Self { values: IndexSet::default(), hashes: Vec::new() }
    }

    fn keep(&mut self, value: T) -> u32 {
        let (number, new) = self.values.insert_full(value);
        if new {
            let mut hasher = DefaultHasher::new();
            self.values[number].hash(&mut hasher);
            self.hashes.push(hasher.finish());
        }
        number as u32
    }

    pub(super) fn find(&self, value: &T) -> Option<u32> {
        self.values.get_index_of(value).map(|number| number as u32)
    }

    pub(super) fn get(&self, number: u32) -> &T {
        &self.values[number as usize]
    }

    pub(super) fn hash(&self, number: u32) -> u64 {
        self.hashes[number as usize]
    }
}

/// What can be asked of a place without looking at its state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
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

/// Something that can be delivered from a channel: its index, the letter, and what is left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    pub(super) letter: u32,
    pub(super) rest: u32,
}

/// What happens to a place, as a number: one of these two, or a letter after them.
pub(super) const ACQUIRE: u32 = 0;
pub(super) const RELEASE: u32 = 1;
const LETTERS: u32 = 2;

/// A question that was not yet asked.
#[derive(Clone, Copy, Debug)]
pub(super) enum Question {
    /// What does this event make of this place?
    Step { place: u32, event: u32 },
    /// What is the channel with this letter put in?
    Put { channel: u32, letter: u32 },
}

/// Everything seen so far.
pub(super) struct Tables<A: Algorithm> {
    group: Arc<Group>,
    order: Channel,
    modes: Vec<Mode>,
    pub(super) places: Kept<Place<A>>,
    facts: Vec<Facts>,
    /// Messages with their senders.
    letters: Kept<(NodeId, A::Message)>,
    pub(super) channels: Kept<Vec<u32>>,
    deliveries: Vec<Vec<Delivery>>,
    pub(super) undetected: Kept<Vec<(NodeId, NodeId)>>,
    steps: HashMap<u64, u32, FxBuildHasher>,
    outcomes: Vec<Outcome>,
    puts: HashMap<u64, u32, FxBuildHasher>,
}

impl<A: Algorithm> Tables<A> {
    pub(super) fn new(group: Arc<Group>, order: Channel, modes: Vec<Mode>) -> Self {
        let mut tables = Self {
            group,
            order,
            modes,
            places: Kept::new(),
            facts: Vec::new(),
            letters: Kept::new(),
            channels: Kept::new(),
            deliveries: Vec::new(),
            undetected: Kept::new(),
            steps: HashMap::default(),
            outcomes: Vec::new(),
            puts: HashMap::default(),
        };
        // Number 0 is the empty channel, and nothing undetected.
        tables.keep_channel(Vec::new());
        tables.undetected.keep(Vec::new());
        tables
    }

    pub(super) fn facts(&self, place: u32) -> Facts {
        self.facts[place as usize]
    }

    pub(super) fn deliveries(&self, channel: u32) -> &[Delivery] {
        &self.deliveries[channel as usize]
    }

    pub(super) fn message(&self, letter: u32) -> &A::Message {
        &self.letters.get(letter).1
    }

    /// What an event makes of a place.
    pub(super) fn step(&self, place: u32, event: u32) -> Result<&Outcome, Question> {
        let outcome = self.steps.get(&key(place, event));
        let found = outcome.map(|outcome| &self.outcomes[*outcome as usize]);
        found.ok_or(Question::Step { place, event })
    }

    /// What a letter makes of a place.
    pub(super) fn receive(&self, place: u32, letter: u32) -> Result<&Outcome, Question> {
        self.step(place, letter + LETTERS)
    }

    /// The channel with a letter put in.
    pub(super) fn put(&self, channel: u32, letter: u32) -> Result<u32, Question> {
        self.puts.get(&key(channel, letter)).copied().ok_or(Question::Put { channel, letter })
    }

    /// Answer a question for ever.
    pub(super) fn learn(&mut self, question: Question) {
        match question {
            Question::Step { place, event } => {
                let outcome = self.take(place, event);
                self.steps.insert(key(place, event), self.outcomes.len() as u32);
                self.outcomes.push(outcome);
            }
            Question::Put { channel, letter } => {
                let mut letters = self.channels.get(channel).clone();
                let at = match self.order {
                    Channel::Fifo => letters.len(),
                    Channel::Unordered => {
                        let new = self.message(letter);
                        letters.partition_point(|other| self.message(*other) <= new)
                    }
                };
                letters.insert(at, letter);
                let longer = self.keep_channel(letters);
                self.puts.insert(key(channel, letter), longer);
            }
        }
    }

    /// Let the shipped code take a step.
    fn take(&mut self, place: u32, event: u32) -> Outcome {
        let mut after: Place<A> = self.places.get(place).clone();
        let input = match event {
            ACQUIRE => {
                after.wishes -= u32::from(after.wishes != FOREVER);
                Input::Acquire(self.modes[after.member.me().index()])
            }
            RELEASE => Input::Release,
            letter => {
                let (from, message) = self.letters.get(letter - LETTERS).clone();
                Input::Receive { from, message }
            }
        };
        let mut effects = Effects::default();
        let breached = after.member.step(&self.group, input, &mut effects).is_err();
        let (entered, refused) = (effects.entered(), effects.rejected().is_some());
        let me = after.member.me();
        let sends = effects.drain().map(|(to, message)| (to, self.letters.keep((me, message))));
        let sends = sends.collect();
        Outcome { place: self.keep_place(after), sends, entered, refused, breached }
    }

    pub(super) fn keep_place(&mut self, place: Place<A>) -> u32 {
        let number = self.places.keep(place);
        if number as usize == self.facts.len() {
            let Place { member, wishes, crashed } = self.places.get(number);
            let mode = self.modes[member.me().index()];
            let shared = member.mode() == Mode::Shared;
            let held = if *crashed { 0 } else { member.held() };
            self.facts.push(Facts {
                acquires: !crashed && *wishes > 0 && member.may_acquire(&self.group, mode),
                releases: !crashed && member.may_release(),
                waits: !crashed && member.phase() == Phase::Waiting,
                crashed: *crashed,
                held,
                readers: if shared { held } else { 0 },
            });
        }
        number
    }

    /// Keep a channel by its messages, all of one sender.
    pub(super) fn keep_messages(&mut self, from: NodeId, messages: Vec<A::Message>) -> u32 {
        let letters = messages.into_iter().map(|message| self.letters.keep((from, message)));
        let letters = letters.collect();
        self.keep_channel(letters)
    }

    pub(super) fn find_messages(&self, from: NodeId, messages: &[A::Message]) -> Option<u32> {
        let letter = |message: &A::Message| self.letters.find(&(from, message.clone()));
        self.channels.find(&messages.iter().map(letter).collect::<Option<_>>()?)
    }

    pub(super) fn keep_undetected(&mut self, undetected: Vec<(NodeId, NodeId)>) -> u32 {
        self.undetected.keep(undetected)
    }

    fn keep_channel(&mut self, letters: Vec<u32>) -> u32 {
        if let Some(known) = self.channels.find(&letters) {
            return known;
        }
        let reachable =
            if self.order == Channel::Fifo { letters.len().min(1) } else { letters.len() };
        let mut deliveries = Vec::new();
        for index in 0..reachable {
            // Equal messages of an unordered channel are one choice.
            if index > 0 && letters[index] == letters[index - 1] {
                continue;
            }
            let mut rest = letters.clone();
            let letter = rest.remove(index);
            deliveries.push(Delivery { letter, rest: self.keep_channel(rest) });
        }
        self.deliveries.push(deliveries);
        self.channels.keep(letters)
    }
}

fn key(one: u32, other: u32) -> u64 {
    u64::from(one) << 32 | u64::from(other)
}
