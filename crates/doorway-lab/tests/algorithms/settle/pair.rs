//! A world and its settled form, side by side.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use doorway_lab::{ChannelPosition, Choice, Step, World};

/// What can be observed of a step: the choice without the position of a message in its channel,
/// whether a node entered, and the violation.
fn seen(step: &Step) -> String {
    let choice = match step.choice {
        Choice::Deliver(position) => format!("{} hears {}", position.to, position.from),
        choice => format!("{choice:?}"),
    };
    format!("{choice}, entered: {}, {:?}", step.entered, step.violation)
}

/// A world that was never settled, and one that is settled after each step.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub(crate) world: World,
    settled: World,
}

impl Pair {
    pub(crate) fn new(world: World) -> Self {
        Self { settled: world.settled(), world }
    }

    pub(crate) fn fingerprint(&self) -> (u64, u64) {
        (fingerprint(&self.world), fingerprint(&self.settled))
    }

    fn fail<T>(&self, what: &str) -> Result<T, String> {
        Err(format!("{what}\n{:#?}\nsettled:\n{:#?}", self.world, self.settled))
    }

    /// Check that both worlds can do the same after the messages have arrived that change nothing.
    pub(crate) fn check(&self) -> Result<(), String> {
        let settled = self.world.settled();
        if settled.settled() != settled || self.settled.settled() != self.settled {
            return self.fail("settling twice gives another world than settling once");
        }
        let Some(calm) = without_dropped(&self.world) else {
            return self.fail("a message that matters was dropped");
        };
        if calm.choices() != self.settled.choices() || calm.stuck() != self.settled.stuck() {
            return self.fail("they have different choices");
        }
        for choice in calm.choices() {
            let here = seen(&calm.clone().apply(choice));
            let there = seen(&self.settled.clone().apply(choice));
            if here != there {
                return self.fail(&format!("they do different things: {here}; {there}"));
            }
        }
        Ok(())
    }

    /// Make the same choice in both worlds; `None` if the step is a violation.
    pub(crate) fn step(&self, choice: Choice) -> Result<Option<Self>, String> {
        let mut next = self.clone();
        let here = next.world.apply(choice);
        let Some(choice) = in_settled(&self.world, choice) else {
            let silent = !here.entered && here.violation.is_none();
            return if silent { Ok(Some(next)) } else { self.fail("a dropped message matters") };
        };
        if !self.settled.choices().contains(&choice) {
            return self.fail(&format!("the settled world has no {choice:?}"));
        }
        let there = next.settled.apply(choice);
        if seen(&here) != seen(&there) {
            return self.fail(&format!("they do different things: {}", seen(&here)));
        }
        next.settled = next.settled.settled();
        Ok(here.violation.is_none().then_some(next))
    }
}

/// The numbers of the messages that are still under way once the world is settled.
fn kept(world: &World) -> BTreeSet<u64> {
    world.settled().under_way().map(|(_, letter)| letter.id).collect()
}

/// The choice of the settled world that corresponds to this one; `None` if it delivers a dropped
/// message.
fn in_settled(world: &World, choice: Choice) -> Option<Choice> {
    let Choice::Deliver(position) = choice else { return Some(choice) };
    let kept = kept(world);
    let channel = |at: &ChannelPosition| (at.from, at.to) == (position.from, position.to);
    let up_to = world.under_way().filter(|(at, _)| channel(at) && at.index <= position.index);
    let up_to: Vec<bool> = up_to.map(|(_, letter)| kept.contains(&letter.id)).collect();
    let index = up_to.iter().filter(|kept| **kept).count().checked_sub(1)?;
    up_to.last()?.then_some(Choice::Deliver(ChannelPosition { index, ..position }))
}

/// Deliver dropped messages until there are none. They must not change anything, except that they
/// may cause more such messages.
fn without_dropped(world: &World) -> Option<World> {
    let settled = world.settled();
    let mut world = world.clone();
    for _ in 0..1000 {
        let dropped = |choice: &Choice| in_settled(&world, *choice).is_none();
        let Some(choice) = world.choices().into_iter().find(dropped) else { return Some(world) };
        let step = world.apply(choice);
        if step.entered || step.violation.is_some() || world.settled() != settled {
            return None;
        }
    }
    None
}

/// A hash that tells worlds apart.
pub(crate) fn fingerprint(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}
