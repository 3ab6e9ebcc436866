//! Rounds: which nodes starve if a list of choices is repeated forever. This needs no search.

use std::collections::BTreeSet;

use doorway_core::{NodeId, Phase};

use super::duties::{Duty, duty};
use crate::{Choice, World};

/// The nodes that wait forever if these choices are repeated forever, although every message
/// arrives and every node inside leaves.
///
/// `None` if the world after the round differs from the world before it.
pub fn starved_by(world: &World, round: &[Choice]) -> Option<Vec<NodeId>> {
    let mut after = world.clone();
    for choice in round {
        after.apply(*choice);
    }
    let settling = after != *world;
    if round.is_empty() || (settling && after.settled() != world.settled()) {
        return None;
    }
    let view = |world: &World| if settling { world.settled() } else { world.clone() };
    let mut world = world.clone();
    let mut here = view(&world);
    let mut owed = open(&here, settling);
    let mut waiting = world.live_in(Phase::Waiting);
    for choice in round {
        let seen = seen_in(&here, &world, *choice);
        let done = seen.and_then(|choice| duty(&here, choice, settling));
        owed.retain(|duty| done != Some(*duty));
        world.apply(*choice);
        here = view(&world);
        let still_open = open(&here, settling);
        owed.retain(|duty| still_open.contains(duty));
        let still_waiting = world.live_in(Phase::Waiting);
        waiting.retain(|node| still_waiting.contains(node));
    }
    Some(if owed.is_empty() { waiting } else { Vec::new() })
}

/// The duties that are open in a world.
fn open(world: &World, settling: bool) -> BTreeSet<Duty> {
    world.choices().into_iter().filter_map(|choice| duty(world, choice, settling)).collect()
}

/// The choice in `here`, the settled form of `world`; `None` if it delivers a message that the
/// settled form has dropped. A message keeps its number when it is settled, but not its position.
fn seen_in(here: &World, world: &World, choice: Choice) -> Option<Choice> {
    let Choice::Deliver(position) = choice else { return Some(choice) };
    let (_, letter) = world.under_way().find(|(other, _)| *other == position)?;
    let mut known = here.under_way();
    let (position, _) = known.find(|(other, known)| {
        (other.from, other.to, known.id) == (position.from, position.to, letter.id)
    })?;
    Some(Choice::Deliver(position))
}
