//! From worlds to rows and back, and the steps that only whole worlds can take.

use std::sync::PoisonError;

use doorway_core::{Algorithm, NodeId};

use super::model::{Deed, Model, Successors, Tag};
use super::pack::{FAULTS, Gap, PLACES, Packed, UNDETECTED, fold, unfold};
use super::tables::Tables;
use crate::world::Parts;
use crate::{Choice, World};

impl<A: Algorithm> Packed<'_, A> {
    /// The world of a row.
    pub(super) fn unpack(&self, row: &[u32]) -> World<A> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        self.unpack_with(&tables, row)
    }

    /// The row and the fingerprint of a world.
    pub(super) fn pack(&self, world: &World<A>) -> (Vec<u32>, u64) {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        self.keep(&mut tables, world);
        self.find(&tables, world).expect("what is kept is found")
    }

    /// The world as it is searched.
    pub(super) fn settled(&self, world: &World<A>) -> World<A> {
        if self.settling { world.settled() } else { world.clone() }
    }

    pub(super) fn unpack_with(&self, tables: &Tables<A>, row: &[u32]) -> World<A> {
        let places = &row[PLACES..PLACES + self.size];
        let mut channels = Vec::new();
        for (from, to) in self.pairs() {
            let channel = tables.channels.get(row[self.channel(from, to)]);
            if !channel.is_empty() {
                let messages = channel.iter().map(|letter| tables.message(*letter).clone());
                channels.push((NodeId(from as u32), NodeId(to as u32), messages.collect()));
            }
        }
        self.first.made_of(Parts {
            places: places.iter().map(|place| tables.places.get(*place).clone()).collect(),
            channels,
            undetected: tables.undetected.get(row[UNDETECTED]).clone(),
            faults: unfold(row[FAULTS]),
        })
    }

    pub(super) fn keep(&self, tables: &mut Tables<A>, world: &World<A>) {
        let parts = world.parts();
        for place in parts.places {
            tables.keep_place(place);
        }
        for (from, _, messages) in parts.channels {
            tables.keep_messages(from, messages);
        }
        tables.keep_undetected(parts.undetected);
    }

    /// The row and the fingerprint of a world, if all its parts are known.
    pub(super) fn find(&self, tables: &Tables<A>, world: &World<A>) -> Option<(Vec<u32>, u64)> {
        let parts = world.parts();
        let mut row = vec![0; self.width()];
        row[FAULTS] = fold(parts.faults);
        row[UNDETECTED] = tables.undetected.find(&parts.undetected)?;
        for (slot, place) in row[PLACES..].iter_mut().zip(&parts.places) {
            *slot = tables.places.find(place)?;
        }
        for (from, to, messages) in &parts.channels {
            row[self.channel(from.index(), to.index())] = tables.find_messages(*from, messages)?;
        }
        let print = (0..row.len()).fold(0, |print: u64, slot| {
            print.wrapping_add(self.mix(slot, self.content(tables, slot, row[slot])))
        });
        Some((row, print))
    }

    /// The choices that are last in [`World::choices`] and rare: the world itself takes them.
    pub(super) fn expand_rare(
        &self,
        tables: &Tables<A>,
        row: &[u32],
        out: &mut Successors,
    ) -> Result<(), Gap<A>> {
        let before = self.unpack_with(tables, row);
        for choice in before.choices() {
            let (actor, deed) = match choice {
                Choice::Crash(node) => (node, Deed::Crashed),
                Choice::Detect { node, .. } | Choice::Forget(node) => (node, Deed::None),
                _ => continue,
            };
            let mut world = before.clone();
            let step = world.apply(choice);
            if step.violation.is_some_and(|violation| self.sought.is(&violation)) {
                out.breaks();
                continue;
            }
            let deed = if step.entered { Deed::Entered } else { deed };
            let tag = Tag::new(actor.index(), deed, step.sends.len());
            let world = self.settled(&world);
            let Some((row, print)) = self.find(tables, &world) else {
                return Err(Gap::World(Box::new(world)));
            };
            out.push(&row, print, tag);
        }
        Ok(())
    }
}
