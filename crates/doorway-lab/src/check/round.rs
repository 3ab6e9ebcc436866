//! A round of choices that can be made again and again, judged without any search.

use std::collections::BTreeSet;

use doorway_core::{NodeId, Phase};

use super::duties::{Duty, duty};
use crate::{Choice, World};

/// Who waits for ever if these choices are made again and again, although every message arrives
/// and everyone inside leaves; `None` if the world is not, in the end, what it was before.
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

/// What ought to happen one day.
fn open(world: &World, settling: bool) -> BTreeSet<Duty> {
    world.choices().into_iter().filter_map(|choice| duty(world, choice, settling)).collect()
}

/// The choice as `here`, the settled form of `world`, knows it; `None` if it delivers what no
/// longer counts there. A settled message keeps its number, and may change its place.
fn seen_in(here: &World, world: &World, choice: Choice) -> Option<Choice> {
    let Choice::Deliver(position) = choice else { return Some(choice) };
    let (_, letter) = world.under_way().find(|(other, _)| *other == position)?;
    let mut known = here.under_way();
    let (position, _) = known.find(|(other, known)| {
        (other.from, other.to, known.id) == (position.from, position.to, letter.id)
    })?;
    Some(Choice::Deliver(position))
}
