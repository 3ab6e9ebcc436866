//! A [`World`](crate::World) as a row of numbers, so that the search can go through millions of
//! them.
//!
//! The row holds the faults that are still allowed, the undetected crashes, the place of each node
//! and the content of each channel. [`WorldCodec`] knows what the numbers stand for. Steps are in
//! the order of [`World::choices`](crate::World::choices).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use doorway_core::Group;
use doorway_search::{ClientEvent, Model, Successors, Tag};

use super::codec::WorldCodec;
use super::settled_rows::SettledRows;
use super::tables::{ACQUIRE, LETTERS, Outcome, RELEASE, Tables, WITHDRAW};
use crate::Violation;
use crate::erased::{Settler, UnlistedPart};
use crate::nodes::compatible;

/// Which violations end the search. The search goes on past the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchTargets {
    /// More nodes are inside than the group allows.
    pub together: bool,
    /// A message is rejected.
    pub refusals: bool,
    /// A deadlock: a node waits and nothing can happen.
    pub stuck: bool,
}

impl Default for SearchTargets {
    fn default() -> Self {
        Self { together: true, refusals: true, stuck: true }
    }
}

impl SearchTargets {
    /// Only too many nodes inside. The search goes on past rejected messages and deadlocks.
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

/// The layout of a row for a group of this size.
#[derive(Clone, Copy)]
pub(super) struct Layout(pub(super) usize);

pub(super) const FAULTS: usize = 0;
pub(super) const UNDETECTED: usize = 1;
pub(super) const PLACES: usize = 2;

impl Layout {
    pub(super) fn width(self) -> usize {
        PLACES + self.0 * self.0
    }

    pub(super) fn channel(self, from: usize, to: usize) -> usize {
        PLACES + self.0 + from * (self.0 - 1) + to - usize::from(to > from)
    }

    /// All pairs of sender and receiver, in order.
    pub(super) fn pairs(self) -> impl Iterator<Item = (usize, usize)> {
        let Self(size) = self;
        let to = move |from| (0..size).filter(move |to| *to != from).map(move |to| (from, to));
        (0..size).flat_map(to)
    }
}

/// What the model knows about its worlds besides their numbers.
pub(super) struct Frame {
    pub(super) group: Arc<Group>,
    pub(super) forgetting: bool,
    pub(super) targets: SearchTargets,
    pub(super) judging: bool,
}

/// The worlds of a check, as a model that [`doorway_search`] explores.
pub(super) struct PackedModel<'m> {
    codec: &'m WorldCodec<'m>,
    frame: Frame,
    layout: Layout,
    /// The row of the first world.
    first: Vec<u32>,
    tables: RwLock<Tables>,
    /// What threads have for themselves, while no thread uses it.
    spares: Mutex<Vec<ThreadTables>>,
    /// A key for each slot of a row, so that equal numbers in different slots hash differently.
    keys: Vec<u64>,
}

/// What a thread has for itself.
struct ThreadTables {
    /// A copy of the tables. If all threads read the same tables, each would wait whenever another
    /// one adds to them.
    tables: Tables,
    /// The settler of the algorithm, if worlds are replaced by their settled form.
    settler: Option<Box<dyn Settler>>,
    settled: SettledRows,
}

/// What the tables did not know when a world was expanded.
enum Gap {
    Step { place: u32, event: u32 },
    Put { channel: u32, letter: u32 },
    Settled(Vec<u32>),
    Rare,
}

/// A successor that is being built.
struct Draft {
    row: Vec<u32>,
    print: u64,
}

impl<'m> PackedModel<'m> {
    /// The model that begins with the row `first`.
    pub(super) fn new(
        codec: &'m WorldCodec<'m>,
        frame: Frame,
        tables: Tables,
        first: Vec<u32>,
    ) -> Self {
        let layout = Layout(frame.group.size() as usize);
        let keys = (0..layout.width()).map(|slot| scramble(slot as u64 + 1)).collect();
        let (tables, spares) = (RwLock::new(tables), Mutex::default());
        Self { codec, frame, layout, first, tables, spares, keys }
    }

    pub(super) fn tables(&self) -> RwLockReadGuard<'_, Tables> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tables_mut(&self) -> RwLockWriteGuard<'_, Tables> {
        self.tables.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fingerprint of a row.
    pub(super) fn print(&self, tables: &Tables, row: &[u32]) -> u64 {
        let shares = (0..row.len()).map(|slot| self.share(tables, slot, row[slot]));
        shares.fold(0, u64::wrapping_add)
    }

    /// A slot's share in the fingerprint. The fingerprint is the sum of the shares, so a change of
    /// one slot updates it without reading the others.
    fn share(&self, tables: &Tables, slot: usize, number: u32) -> u64 {
        let content = match slot {
            FAULTS => u64::from(number),
            UNDETECTED => tables.undetected.hash(number),
            place if place < PLACES + self.layout.0 => tables.facts(number).hash,
            _ => tables.channels.hash(number),
        };
        scramble(content ^ self.keys[slot])
    }

    fn set(&self, tables: &Tables, draft: &mut Draft, slot: usize, number: u32) {
        let old = std::mem::replace(&mut draft.row[slot], number);
        let (less, more) = (self.share(tables, slot, old), self.share(tables, slot, number));
        draft.print = draft.print.wrapping_sub(less).wrapping_add(more);
    }

    fn try_expand(
        &self,
        tables: &Tables,
        row: &[u32],
        print: u64,
        out: &mut Successors,
    ) -> Result<(), Gap> {
        let mut draft = Draft { row: row.to_vec(), print };
        let restart = |draft: &mut Draft| {
            draft.row.copy_from_slice(row);
            draft.print = print;
        };
        let (mut waits, mut moves) = (false, row[UNDETECTED] != 0);
        for node in 0..self.layout.0 {
            let place = row[PLACES + node];
            let facts = tables.facts(place);
            waits |= facts.waits;
            moves |= facts.releases;
            let events = [
                (facts.acquires, ACQUIRE, ClientEvent::Asked),
                (facts.releases, RELEASE, ClientEvent::None),
                (facts.withdraws, WITHDRAW, ClientEvent::Withdrew),
            ];
            for (_, event, client_event) in events.into_iter().filter(|(possible, ..)| *possible) {
                restart(&mut draft);
                let outcome = tables.step(place, event).ok_or(Gap::Step { place, event })?;
                self.follow(tables, &mut draft, node, client_event, outcome, out)?;
            }
        }
        let [losses, duplicates, crashes] = unfold(row[FAULTS]);
        for (from, to) in self.layout.pairs() {
            let slot = self.layout.channel(from, to);
            for delivery in tables.deliveries(row[slot]) {
                moves = true;
                let (place, event) = (row[PLACES + to], delivery.letter + LETTERS);
                let outcome = tables.step(place, event).ok_or(Gap::Step { place, event })?;
                restart(&mut draft);
                self.set(tables, &mut draft, slot, delivery.rest);
                self.follow(tables, &mut draft, to, ClientEvent::None, outcome, out)?;
                if losses > 0 {
                    restart(&mut draft);
                    self.set(tables, &mut draft, slot, delivery.rest);
                    let faults = fold([losses - 1, duplicates, crashes]);
                    self.set(tables, &mut draft, FAULTS, faults);
                    out.push(&draft.row, draft.print, Tag::new(to, ClientEvent::None, 0));
                }
                if duplicates > 0 {
                    restart(&mut draft);
                    let faults = fold([losses, duplicates - 1, crashes]);
                    self.set(tables, &mut draft, FAULTS, faults);
                    self.follow(tables, &mut draft, to, ClientEvent::None, outcome, out)?;
                }
            }
        }
        let stuck = self.frame.targets.stuck && waits && !moves;
        if stuck || (self.frame.judging && self.codec.accuses(tables, row)) {
            out.is_broken();
        }
        if crashes > 0 || row[UNDETECTED] != 0 || self.frame.forgetting {
            for (tag, found) in self.codec.rare(tables, row).ok_or(Gap::Rare)? {
                match found {
                    None => out.breaks(),
                    Some(row) => out.push(&row, self.print(tables, &row), tag),
                }
            }
        }
        Ok(())
    }

    /// Apply a node's step to the draft, and push the draft unless the step is a violation.
    /// `client_event` is what the event itself does for the client.
    fn follow(
        &self,
        tables: &Tables,
        draft: &mut Draft,
        node: usize,
        client_event: ClientEvent,
        outcome: &Outcome,
        out: &mut Successors,
    ) -> Result<(), Gap> {
        if outcome.breached || (outcome.refused && self.frame.targets.refusals) {
            out.breaks();
            return Ok(());
        }
        self.set(tables, draft, PLACES + node, outcome.place);
        for &(to, letter) in &outcome.sends {
            if !tables.facts(draft.row[PLACES + to.index()]).crashed {
                let slot = self.layout.channel(node, to.index());
                let channel = draft.row[slot];
                let longer = tables.put(channel, letter).ok_or(Gap::Put { channel, letter })?;
                self.set(tables, draft, slot, longer);
            }
        }
        if outcome.entered && self.frame.targets.together && !self.compatible(tables, &draft.row) {
            out.breaks();
            return Ok(());
        }
        let client_event = match (client_event, outcome.entered) {
            (client_event, false) => client_event,
            (ClientEvent::Asked, true) => ClientEvent::AskedAndEntered,
            (_, true) => ClientEvent::Entered,
        };
        out.push(&draft.row, draft.print, Tag::new(node, client_event, outcome.sends.len()));
        Ok(())
    }

    /// Fill a gap of a copy. If the shared tables know more than the copy, taking that over is
    /// tried first.
    fn learn(&self, copy: &mut Tables, gap: Gap, row: &[u32]) {
        let mut tables = self.tables_mut();
        if copy.follow(&tables) {
            return;
        }
        match gap {
            Gap::Step { place, event } => tables.learn_step(self.codec, place, event),
            Gap::Put { channel, letter } => tables.learn_put(self.codec, channel, letter),
            Gap::Settled(row) => self.codec.know_settled(&mut tables, &row),
            Gap::Rare => self.codec.know_rare(&mut tables, row),
        }
        copy.follow(&tables);
    }

    /// What a thread has for itself, with the tables as they are now.
    fn take_spare(&self) -> ThreadTables {
        let spare = self.spares().pop();
        let tables = self.tables();
        let mut own = spare.unwrap_or_else(|| ThreadTables {
            tables: Tables::new(tables.order()),
            settler: self.codec.settler(),
            settled: SettledRows::new(self.layout.width()),
        });
        own.tables.follow(&tables);
        own
    }

    fn spares(&self) -> MutexGuard<'_, Vec<ThreadTables>> {
        self.spares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn compatible(&self, tables: &Tables, row: &[u32]) -> bool {
        let places = row[PLACES..PLACES + self.layout.0].iter().map(|place| tables.facts(*place));
        let (inside, readers) = places.fold((0, 0), |(inside, readers), facts| {
            (inside + facts.held, readers + facts.readers)
        });
        compatible(&self.frame.group, inside, readers)
    }

    /// Replace the successors of a world by their settled forms. If this fails, it may be tried
    /// again: a settled world is its own settled form.
    fn try_settle(&self, own: &mut ThreadTables, successors: &mut Successors) -> Result<(), Gap> {
        let ThreadTables { tables, settler: Some(settler), settled } = own else { return Ok(()) };
        successors.rewrite(self.layout.width(), |row, print| {
            if let Some(print) = settled.recall(print, row) {
                return Ok(print);
            }
            let found = self.codec.settled(&mut **settler, tables, row);
            let after = match found.map_err(|UnlistedPart| Gap::Settled(row.to_vec()))? {
                None => print,
                Some(changed) => {
                    row.copy_from_slice(&changed);
                    self.print(tables, row)
                }
            };
            settled.remember(print, row, after);
            Ok(after)
        })
    }
}

impl Model for PackedModel<'_> {
    fn width(&self) -> usize {
        self.layout.width()
    }

    fn first(&self) -> (Vec<u32>, u64) {
        (self.first.clone(), self.print(&self.tables(), &self.first))
    }

    fn expand(&self, row: &[u32], print: u64, out: &mut Successors) {
        self.expand_all(row, &[print], std::slice::from_mut(out));
    }

    fn expand_all(&self, rows: &[u32], prints: &[u64], out: &mut [Successors]) {
        let mut own = self.take_spare();
        let rows = rows.chunks_exact(self.width());
        for ((row, print), successors) in rows.zip(prints).zip(&mut *out) {
            while let Err(gap) = self.try_expand(&own.tables, row, *print, successors) {
                successors.clear();
                self.learn(&mut own.tables, gap, row);
            }
        }
        if own.settler.is_some() {
            own.settled.glance(out.iter().flat_map(Successors::prints));
            for successors in out {
                while let Err(gap) = self.try_settle(&mut own, successors) {
                    self.learn(&mut own.tables, gap, &[]);
                }
            }
        }
        self.spares().push(own);
    }
}

/// The number of faults of one kind must be below this to fit into [`fold`].
pub(super) const MAX_FAULTS: u32 = 1 << 10;

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
