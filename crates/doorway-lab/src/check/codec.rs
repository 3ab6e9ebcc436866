//! Translation between worlds and rows of numbers.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use doorway_core::{Channel, Effects, Input, Mail, Mode, NodeId, Phase};
use doorway_search::{ClientEvent, Tag};

use super::interner::Interner;
use super::pack::{
    FAULTS, Frame, Layout, PLACES, PackedModel, SearchTargets, UNDETECTED, fold, unfold,
};
use super::tables::{ACQUIRE, EMPTY, Facts, LETTERS, Outcome, RELEASE, RareStep, Tables, WITHDRAW};
use crate::erased::{
    AnyMember, AnyMessage, AnySnapshot, Catalogue, SettledGroup, Settler, UnlistedPart,
};
use crate::world::{Parts, Place};
use crate::{Choice, FOREVER, World};

/// A predicate that must hold in every world, beyond what is always checked. `Some` says what is
/// wrong.
pub type Judge = dyn Fn(&World) -> Option<String> + Sync;

/// Packs worlds into rows of numbers, and unpacks them. States and messages get their numbers when
/// they are first met.
pub(super) struct WorldCodec<'w> {
    pub(super) first: &'w World,
    pub(super) layout: Layout,
    pub(super) targets: SearchTargets,
    /// Are worlds replaced by their settled form?
    pub(super) settling: bool,
    pub(super) judge: Option<&'w Judge>,
    known: RwLock<Numbering>,
}

/// The values that numbers stand for.
struct Numbering {
    places: Interner<Place>,
    /// Messages with their senders.
    letters: Interner<(NodeId, AnyMessage)>,
}

/// The places and letters that a thread knows.
struct KnownParts<'k> {
    known: &'k Numbering,
    tables: &'k Tables,
}

impl Catalogue for KnownParts<'_> {
    fn member(&self, place: u32) -> &AnyMember {
        &self.known.places.get(place).member
    }

    fn message(&self, letter: u32) -> &AnyMessage {
        &self.known.letters.get(letter).1
    }

    fn settled_member(&mut self, place: u32, member: AnyMember) -> Result<u32, UnlistedPart> {
        let place = Place { member, ..self.known.places.get(place).clone() };
        let found = self.known.places.find(&place);
        found.filter(|place| self.tables.knows(*place)).ok_or(UnlistedPart)
    }

    fn settled_message(&mut self, letter: u32, message: AnyMessage) -> Result<u32, UnlistedPart> {
        let (from, _) = self.known.letters.get(letter);
        self.known.letters.find(&(*from, message)).ok_or(UnlistedPart)
    }
}

impl<'w> WorldCodec<'w> {
    pub(super) fn new(
        first: &'w World,
        targets: SearchTargets,
        settling: bool,
        judge: Option<&'w Judge>,
    ) -> Self {
        let layout = Layout(first.group().size() as usize);
        let known = RwLock::new(Numbering { places: Interner::new(), letters: Interner::new() });
        Self { first, layout, targets, settling, judge, known }
    }

    /// The model that the search explores, which begins with the first world.
    pub(super) fn packed(&self) -> PackedModel<'_> {
        let frame = Frame {
            group: self.first.group().clone(),
            forgetting: self.first.limits().forgetting,
            targets: self.targets,
            judging: self.judge.is_some(),
        };
        let mut tables = Tables::new(self.first.channel());
        let first = self.pack(&mut tables, &self.as_searched(self.first));
        PackedModel::new(self, frame, tables, first)
    }

    fn known(&self) -> RwLockReadGuard<'_, Numbering> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn known_mut(&self) -> RwLockWriteGuard<'_, Numbering> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The world in the form in which it is searched: settled, or as it is.
    pub(super) fn as_searched(&self, world: &World) -> World {
        if self.settling { world.settled() } else { world.clone() }
    }

    /// The world of a row.
    pub(super) fn unpack(&self, tables: &Tables, row: &[u32]) -> World {
        let Layout(size) = self.layout;
        let known = self.known();
        let places = &row[PLACES..PLACES + size];
        let mut channels = Vec::new();
        for (from, to) in self.layout.pairs() {
            let channel = tables.channels.get(row[self.layout.channel(from, to)]);
            if !channel.is_empty() {
                let messages = channel.iter().map(|letter| known.letters.get(*letter).1.clone());
                channels.push((NodeId(from as u32), NodeId(to as u32), messages.collect()));
            }
        }
        self.first.made_of(Parts {
            places: places.iter().map(|place| known.places.get(*place).clone()).collect(),
            channels,
            undetected: tables.undetected.get(row[UNDETECTED]).clone(),
            faults: unfold(row[FAULTS]),
        })
    }

    /// The row of a world, if these tables know all its parts. A thread's copy may be behind.
    pub(super) fn find(&self, tables: &Tables, world: &World) -> Option<Vec<u32>> {
        let known = self.known();
        let parts = world.parts();
        let mut row = vec![0; self.layout.width()];
        row[FAULTS] = fold(parts.faults);
        row[UNDETECTED] = tables.undetected.find(&parts.undetected)?;
        for (slot, place) in row[PLACES..].iter_mut().zip(&parts.places) {
            *slot = known.places.find(place).filter(|place| tables.knows(*place))?;
        }
        for (from, to, messages) in parts.channels {
            let letter = |message| known.letters.find(&(from, message));
            let letters = messages.into_iter().map(letter).collect::<Option<_>>()?;
            row[self.layout.channel(from.index(), to.index())] = tables.channels.find(&letters)?;
        }
        Some(row)
    }

    /// Make all parts of a world known.
    fn know(&self, tables: &mut Tables, world: &World) {
        let parts = world.parts();
        let mut known = self.known_mut();
        for place in parts.places {
            known.places.intern(place);
        }
        for (from, _, messages) in parts.channels {
            let letters = messages.into_iter().map(|message| known.letters.intern((from, message)));
            let letters = letters.collect();
            tables.intern_channel(letters, &|letter| known.letters.hash(letter));
        }
        tables.undetected.intern(parts.undetected);
        drop(known);
        tables.learn_facts(self);
    }

    /// The row of a world.
    pub(super) fn pack(&self, tables: &mut Tables, world: &World) -> Vec<u32> {
        self.know(tables, world);
        self.find(tables, world).expect("all parts were made known")
    }

    /// Crashes, detections and forgetting, which come last in [`World::choices`] and are rare. Each
    /// is given with the world it leads to, or `None` if the step violates one of the targets.
    fn rare_steps(&self, tables: &Tables, row: &[u32]) -> Vec<(Tag, Option<World>)> {
        let before = self.unpack(tables, row);
        let mut steps = Vec::new();
        for choice in before.choices() {
            let (actor, client_event) = match choice {
                Choice::Crash(node) => (node, ClientEvent::Crashed),
                Choice::Detect { node, .. } | Choice::Forget(node) => (node, ClientEvent::None),
                _ => continue,
            };
            let mut world = before.clone();
            let step = world.apply(choice);
            let client_event = if step.entered { ClientEvent::Entered } else { client_event };
            let tag = Tag::new(actor.index(), client_event, step.sends.len());
            let wrong = step.violation.is_some_and(|violation| self.targets.is(&violation));
            steps.push((tag, (!wrong).then(|| self.as_searched(&world))));
        }
        steps
    }
}

/// What the tables and the model ask. They hold numbers only. A row whose parts are not all known
/// must be made known first.
impl WorldCodec<'_> {
    /// Let the shipped code take a step.
    pub(super) fn take(&self, place: u32, event: u32) -> Outcome {
        let mut known = self.known_mut();
        let mut after: Place = known.places.get(place).clone();
        let me = after.member.me();
        let input = match event {
            ACQUIRE => {
                after.wishes -= u32::from(after.wishes != FOREVER);
                Input::Acquire(self.first.limits().acquires[me.index()].1)
            }
            RELEASE => Input::Release,
            WITHDRAW => Input::Withdraw,
            letter => {
                let (from, message) = known.letters.get(letter - LETTERS).clone();
                Input::Receive { from, message }
            }
        };
        let mut effects = Effects::default();
        let breached = after.member.step(self.first.group(), input, &mut effects).is_err();
        let (entered, refused) = (effects.entered(), effects.rejected().is_some());
        let sends = effects.drain().map(|(to, message)| (to, known.letters.intern((me, message))));
        let sends = sends.collect();
        Outcome { place: known.places.intern(after), sends, entered, refused, breached }
    }

    /// How many places are known.
    pub(super) fn places(&self) -> u32 {
        self.known().places.len()
    }

    /// The facts about a place.
    pub(super) fn facts(&self, place: u32) -> Facts {
        let known = self.known();
        let Place { member, wishes, crashed } = known.places.get(place);
        let mode = self.first.limits().acquires[member.me().index()].1;
        let held = if *crashed { 0 } else { member.held() };
        let wants = *wishes > 0 && member.may_acquire(self.first.group(), mode);
        Facts {
            hash: known.places.hash(place),
            acquires: !crashed && wants,
            releases: !crashed && member.may_release(),
            withdraws: !crashed && self.first.limits().withdrawing && member.may_withdraw(),
            waits: !crashed && member.phase() == Phase::Waiting,
            crashed: *crashed,
            held,
            readers: if member.mode() == Mode::Shared { held } else { 0 },
        }
    }

    /// A hash of the message and its sender that does not depend on their number.
    pub(super) fn letter_hash(&self, letter: u32) -> u64 {
        self.known().letters.hash(letter)
    }

    /// Does the message of `letter` come before that of `other`, or are they equal?
    pub(super) fn precedes(&self, letter: u32, other: u32) -> bool {
        let known = self.known();
        known.letters.get(letter).1 <= known.letters.get(other).1
    }

    /// Does the judge reject the world of this row?
    pub(super) fn accuses(&self, tables: &Tables, row: &[u32]) -> bool {
        self.judge.is_some_and(|judge| judge(&self.unpack(tables, row)).is_some())
    }

    /// The settler of the algorithm; `None` if worlds are searched as they are.
    pub(super) fn settler(&self) -> Option<Box<dyn Settler>> {
        let member = self.first.nodes().member(NodeId(0));
        self.settling.then(|| member.state().settler()).flatten()
    }

    /// The row of the settled world; `None` if settling changes nothing.
    ///
    /// [`World::settled`] does the same for a world. Here only what settling has changed is looked
    /// up again; the other parts keep their numbers. Worlds with crashed nodes are few, so they are
    /// settled as worlds, and their row is returned in any case.
    pub(super) fn settled(
        &self,
        settler: &mut dyn Settler,
        tables: &Tables,
        row: &[u32],
    ) -> Result<Option<Vec<u32>>, UnlistedPart> {
        let nodes = &row[PLACES..PLACES + self.layout.0];
        if nodes.iter().any(|place| tables.facts(*place).crashed) {
            let settled = self.find(tables, &self.unpack(tables, row).settled());
            return settled.map(Some).ok_or(UnlistedPart);
        }
        let [_, _, crashes] = unfold(row[FAULTS]);
        let withdrawals = self.first.limits().withdrawing;
        let snapshot = AnySnapshot { nodes, mail: &self.mail(tables, row), crashes, withdrawals };
        let known = &*self.known();
        let mut catalogue = KnownParts { known, tables };
        let settled = settler.settle(self.first.group(), &snapshot, &mut catalogue)?;
        let Some(SettledGroup { nodes, mail }) = settled else { return Ok(None) };
        let mut row = row.to_vec();
        row[PLACES..PLACES + self.layout.0].copy_from_slice(&nodes);
        let Some(mail) = mail else { return Ok(Some(row)) };
        row[PLACES + self.layout.0..].fill(EMPTY);
        for mail in mail.chunk_by(|one, next| (one.from, one.to) == (next.from, next.to)) {
            let slot = self.layout.channel(mail[0].from.index(), mail[0].to.index());
            let mut letters: Vec<_> = mail.iter().map(|mail| mail.message).collect();
            if tables.order() == Channel::Unordered {
                let message = |letter: &u32| &known.letters.get(*letter).1;
                letters.sort_by(|one, other| message(one).cmp(message(other)));
            }
            row[slot] = tables.channels.find(&letters).ok_or(UnlistedPart)?;
        }
        Ok(Some(row))
    }

    /// The messages under way, as the numbers of their letters.
    fn mail(&self, tables: &Tables, row: &[u32]) -> Vec<Mail<u32>> {
        let mut mail = Vec::with_capacity(row.len());
        let channels = &row[PLACES + self.layout.0..];
        for ((from, to), channel) in self.layout.pairs().zip(channels) {
            let (from, to) = (NodeId(from as u32), NodeId(to as u32));
            for letter in tables.channels.get(*channel) {
                mail.push(Mail { id: u64::from(*letter), from, to, message: *letter });
            }
        }
        mail
    }

    /// Make the parts of the settled world known.
    pub(super) fn know_settled(&self, tables: &mut Tables, row: &[u32]) {
        let settled = self.unpack(tables, row).settled();
        self.know(tables, &settled);
    }

    /// The steps that are crashes, detections or forgetting, if all parts of the worlds they lead
    /// to are known.
    pub(super) fn rare(&self, tables: &Tables, row: &[u32]) -> Option<Vec<RareStep>> {
        let steps = self.rare_steps(tables, row).into_iter();
        let found = steps.map(|(tag, world)| match world {
            None => Some((tag, None)),
            Some(world) => Some((tag, Some(self.find(tables, &world)?))),
        });
        found.collect()
    }

    /// Make the parts of the worlds after rare steps known.
    pub(super) fn know_rare(&self, tables: &mut Tables, row: &[u32]) {
        for (_, world) in self.rare_steps(tables, row) {
            if let Some(world) = world {
                self.know(tables, &world);
            }
        }
    }
}
