//! A [`World`] as a row of numbers, so that the search can go through millions of them.
//!
//! The row holds the faults still allowed, which crashes are unknown, each node's place and each
//! channel's content; [`Tables`] keeps what the numbers stand for. Steps are in the order of
//! [`World::choices`].

use std::sync::{PoisonError, RwLock};

use doorway_core::Algorithm;

use super::model::{Deed, Model, Successors, Tag};
use super::tables::{ACQUIRE, Outcome, Question, RELEASE, Tables};
use crate::nodes::compatible;
use crate::{Violation, World};

/// Which of the things that can go wrong end the search; the others are passed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sought {
    /// More are inside than may be.
    pub together: bool,
    /// A message is refused.
    pub refusals: bool,
    /// Someone waits and nothing can happen.
    pub stuck: bool,
}

impl Default for Sought {
    fn default() -> Self {
        Self { together: true, refusals: true, stuck: true }
    }
}

impl Sought {
    /// Only whether too many are inside, also behind refusals and where someone is stuck.
    pub fn together() -> Self {
        Self { together: true, refusals: false, stuck: false }
    }

    /// Does this violation end the search?
    pub fn is(&self, violation: &Violation) -> bool {
        match violation {
            Violation::Together(_) => self.together,
            Violation::Rejected { .. } => self.refusals,
            Violation::Stuck(_) => self.stuck,
            _ => true,
        }
    }
}

/// What must be true of every world, beyond what is always checked: `Some` says what is not.
pub type Judge<A> = dyn Fn(&World<A>) -> Option<String> + Sync;

/// Where things are in a row.
pub(super) const FAULTS: usize = 0;
pub(super) const UNDETECTED: usize = 1;
pub(super) const PLACES: usize = 2;

/// A world as a model.
pub(super) struct Packed<'w, A: Algorithm> {
    pub(super) first: &'w World<A>,
    pub(super) size: usize,
    pub(super) sought: Sought,
    /// Are worlds rewritten into the simplest that behave alike?
    pub(super) settling: bool,
    judge: Option<&'w Judge<A>>,
    pub(super) tables: RwLock<Tables<A>>,
    /// For each slot of a row, what makes equal numbers in different slots differ.
    keys: Vec<u64>,
}

/// Why a world could not be expanded at once.
pub(super) enum Gap<A: Algorithm> {
    Question(Question),
    World(Box<World<A>>),
}

impl<A: Algorithm> From<Question> for Gap<A> {
    fn from(question: Question) -> Self {
        Self::Question(question)
    }
}

/// A successor in the making.
struct Draft {
    row: Vec<u32>,
    print: u64,
}

impl<'w, A: Algorithm> Packed<'w, A> {
    pub(super) fn new(
        first: &'w World<A>,
        sought: Sought,
        settling: bool,
        judge: Option<&'w Judge<A>>,
    ) -> Self {
        let size = first.group().size() as usize;
        let modes = first.limits().acquires.iter().map(|(_, mode)| *mode).collect();
        let tables = Tables::new(first.group().clone(), first.channel(), modes);
        let keys = (0..PLACES + size * size).map(|slot| scramble(slot as u64 + 1)).collect();
        Self { first, size, sought, settling, judge, tables: RwLock::new(tables), keys }
    }

    /// The hash of what a number stands for in a slot.
    pub(super) fn content(&self, tables: &Tables<A>, slot: usize, number: u32) -> u64 {
        match slot {
            FAULTS => u64::from(number),
            UNDETECTED => tables.undetected.hash(number),
            place if place < PLACES + self.size => tables.places.hash(number),
            _ => tables.channels.hash(number),
        }
    }

    /// A slot's share in the fingerprint, which is the sum of them: so it follows a change of one.
    pub(super) fn mix(&self, slot: usize, content: u64) -> u64 {
        scramble(content ^ self.keys[slot])
    }

    pub(super) fn channel(&self, from: usize, to: usize) -> usize {
        PLACES + self.size + from * (self.size - 1) + to - usize::from(to > from)
    }

    pub(super) fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<A> {
        let size = self.size;
        let to = move |from| (0..size).filter(move |to| *to != from).map(move |to| (from, to));
        (0..size).flat_map(to)
    }

    fn set(&self, tables: &Tables<A>, draft: &mut Draft, slot: usize, number: u32) {
        let old = std::mem::replace(&mut draft.row[slot], number);
        let share = |number| self.mix(slot, self.content(tables, slot, number));
        draft.print = draft.print.wrapping_sub(share(old)).wrapping_add(share(number));
    }

    fn try_expand(
        &self,
        tables: &Tables<A>,
        row: &[u32],
        print: u64,
        out: &mut Successors,
    ) -> Result<(), Gap<A>> {
        if let Some(judge) = self.judge
            && judge(&self.unpack_with(tables, row)).is_some()
        {
            out.is_broken();
        }
        let mut draft = Draft { row: row.to_vec(), print };
        let restart = |draft: &mut Draft| {
            draft.row.copy_from_slice(row);
            draft.print = print;
        };
        let (mut waits, mut moves) = (false, row[UNDETECTED] != 0);
        for node in 0..self.size {
            let place = row[PLACES + node];
            let facts = tables.facts(place);
            waits |= facts.waits;
            moves |= facts.releases;
            let events = [(facts.acquires, ACQUIRE), (facts.releases, RELEASE)];
            for (_, event) in events.into_iter().filter(|(possible, _)| *possible) {
                restart(&mut draft);
                let outcome = tables.step(place, event)?;
                self.follow(tables, &mut draft, node, event == ACQUIRE, outcome, out)?;
            }
        }
        let [losses, duplicates, crashes] = unfold(row[FAULTS]);
        for (from, to) in self.pairs() {
            let slot = self.channel(from, to);
            for delivery in tables.deliveries(row[slot]) {
                moves = true;
                let outcome = tables.receive(row[PLACES + to], delivery.letter)?;
                restart(&mut draft);
                self.set(tables, &mut draft, slot, delivery.rest);
                self.follow(tables, &mut draft, to, false, outcome, out)?;
                if losses > 0 {
                    restart(&mut draft);
                    self.set(tables, &mut draft, slot, delivery.rest);
                    let faults = fold([losses - 1, duplicates, crashes]);
                    self.set(tables, &mut draft, FAULTS, faults);
                    self.push(tables, &draft, Tag::new(to, Deed::None, 0), out)?;
                }
                if duplicates > 0 {
                    restart(&mut draft);
                    let faults = fold([losses, duplicates - 1, crashes]);
                    self.set(tables, &mut draft, FAULTS, faults);
                    self.follow(tables, &mut draft, to, false, outcome, out)?;
                }
            }
        }
        if self.sought.stuck && waits && !moves {
            out.is_broken();
        }
        if crashes > 0 || row[UNDETECTED] != 0 || self.first.limits().forgetting {
            self.expand_rare(tables, row, out)?;
        }
        Ok(())
    }

    /// Let a node's step change the draft, and push it unless something is wrong with it.
    fn follow(
        &self,
        tables: &Tables<A>,
        draft: &mut Draft,
        node: usize,
        asked: bool,
        outcome: &Outcome,
        out: &mut Successors,
    ) -> Result<(), Gap<A>> {
        if outcome.breached || (outcome.refused && self.sought.refusals) {
            out.breaks();
            return Ok(());
        }
        self.set(tables, draft, PLACES + node, outcome.place);
        for &(to, letter) in &outcome.sends {
            if !tables.facts(draft.row[PLACES + to.index()]).crashed {
                let slot = self.channel(node, to.index());
                let longer = tables.put(draft.row[slot], letter)?;
                self.set(tables, draft, slot, longer);
            }
        }
        if outcome.entered && self.sought.together && !self.compatible(tables, &draft.row) {
            out.breaks();
            return Ok(());
        }
        let deed = match (asked, outcome.entered) {
            (false, false) => Deed::None,
            (true, false) => Deed::Asked,
            (false, true) => Deed::Entered,
            (true, true) => Deed::AskedAndEntered,
        };
        self.push(tables, draft, Tag::new(node, deed, outcome.sends.len()), out)
    }

    fn compatible(&self, tables: &Tables<A>, row: &[u32]) -> bool {
        let places = row[PLACES..PLACES + self.size].iter().map(|place| tables.facts(*place));
        let (inside, readers) = places.fold((0, 0), |(inside, readers), facts| {
            (inside + facts.held, readers + facts.readers)
        });
        compatible(self.first.group(), inside, readers)
    }

    fn push(
        &self,
        tables: &Tables<A>,
        draft: &Draft,
        tag: Tag,
        out: &mut Successors,
    ) -> Result<(), Gap<A>> {
        if !self.settling {
            out.push(&draft.row, draft.print, tag);
            return Ok(());
        }
        let world = self.unpack_with(tables, &draft.row).settled();
        let Some((row, print)) = self.find(tables, &world) else {
            return Err(Gap::World(Box::new(world)));
        };
        out.push(&row, print, tag);
        Ok(())
    }

    /// Are worlds rewritten before they are told apart?
    pub(super) fn is_settling(&self) -> bool {
        self.settling
    }

    /// Does this violation end the search?
    pub(super) fn seeks(&self, violation: &Violation) -> bool {
        self.sought.is(violation)
    }
}

impl<A: Algorithm> Model for Packed<'_, A> {
    fn width(&self) -> usize {
        PLACES + self.size * self.size
    }

    fn first(&self) -> (Vec<u32>, u64) {
        self.pack(&self.settled(self.first))
    }

    fn expand(&self, row: &[u32], print: u64, out: &mut Successors) {
        loop {
            let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
            let Err(gap) = self.try_expand(&tables, row, print, out) else { return };
            drop(tables);
            out.clear();
            let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
            match gap {
                Gap::Question(question) => tables.learn(question),
                Gap::World(world) => self.keep(&mut tables, &world),
            }
        }
    }
}

/// How many of each fault are still allowed, in one word.
pub(super) fn fold([losses, duplicates, crashes]: [u32; 3]) -> u32 {
    losses | duplicates << 10 | crashes << 20
}

pub(super) fn unfold(faults: u32) -> [u32; 3] {
    [faults & 0x3ff, faults >> 10 & 0x3ff, faults >> 20]
}

/// Mix all bits of a word into all others.
fn scramble(word: u64) -> u64 {
    let fold = |word: u64, by: u64| {
        let product = u128::from(word) * u128::from(by);
        product as u64 ^ (product >> 64) as u64
    };
    fold(
        fold(word ^ 0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03) ^ 0x8cb9_2ba7_2f3d_8dd7,
        0xa24b_aed4_963e_e407,
    )
}
