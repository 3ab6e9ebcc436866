//! From the steps of a search back to choices of a world.

use std::collections::BTreeSet;

use super::codec::WorldCodec;
use crate::{Choice, Violation, World};

impl WorldCodec<'_> {
    /// Follow steps of the search, given by their ordinals, from a world. Returns the world at
    /// their end, the choices that lead there, and what the last of them violated; `None` if the
    /// world has no such step.
    ///
    /// A settled world has dropped the messages that can no longer change anything. In the real
    /// world such a message is delivered as soon as it would be dropped. From then on both worlds
    /// have the same choices.
    pub(super) fn trail(
        &self,
        from: &World,
        steps: &[u32],
    ) -> Option<(World, Vec<Choice>, Option<Violation>)> {
        let mut world = from.clone();
        let mut choices = self.deliver_dropped(&mut world);
        let mut violation = None;
        for ordinal in steps {
            let choice = *world.choices().get(*ordinal as usize)?;
            choices.push(choice);
            violation = world.apply(choice).violation;
            choices.extend(self.deliver_dropped(&mut world));
        }
        Some((world, choices, violation))
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

/// The delivery of a message that the settled form of this world drops.
fn dropped(world: &World) -> Option<Choice> {
    let settled = world.settled();
    let kept: BTreeSet<u64> = settled.under_way().map(|(_, letter)| letter.id).collect();
    let gone = world.under_way().filter(|(_, letter)| !kept.contains(&letter.id));
    let gone: BTreeSet<_> = gone.map(|(position, _)| Choice::Deliver(position)).collect();
    world.choices().into_iter().find(|choice| gone.contains(choice))
}
