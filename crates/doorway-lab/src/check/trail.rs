//! From the steps of a search back to choices of a world.

use std::collections::BTreeSet;

use super::codec::WorldCodec;
use crate::{Choice, Violation, World};

impl WorldCodec<'_> {
    /// The choices that lead from a world along steps of the search, given by their ordinals; where
    /// they end; and what went wrong at the last of them.
    ///
    /// A settled world has dropped the mail that no longer counts. In the real one it arrives as
    /// soon as it is dropped, and from then on both have the same choices.
    pub(super) fn trail(
        &self,
        from: &World,
        steps: &[u32],
    ) -> (World, Vec<Choice>, Option<Violation>) {
        let mut world = from.clone();
        let mut choices = self.deliver_dropped(&mut world);
        let mut violation = None;
        for ordinal in steps {
            let choice = world.choices()[*ordinal as usize];
            choices.push(choice);
            violation = world.apply(choice).violation;
            choices.extend(self.deliver_dropped(&mut world));
        }
        (world, choices, violation)
    }

    fn deliver_dropped(&self, world: &mut World) -> Vec<Choice> {
        let mut choices = Vec::new();
        while let Some(choice) = self.settling.then(|| dropped(world)).flatten() {
            choices.push(choice);
            world.apply(choice);
        }
        choices
    }
}

/// A message that would be gone if the world were settled.
fn dropped(world: &World) -> Option<Choice> {
    let settled = world.settled();
    let kept: BTreeSet<u64> = settled.under_way().map(|(_, letter)| letter.id).collect();
    let gone = world.under_way().filter(|(_, letter)| !kept.contains(&letter.id));
    let gone: BTreeSet<_> = gone.map(|(position, _)| Choice::Deliver(position)).collect();
    world.choices().into_iter().find(|choice| gone.contains(choice))
}
