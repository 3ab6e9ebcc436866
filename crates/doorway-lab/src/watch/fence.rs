//! Fences: each grant gets a number, and the resource refuses who comes with an older one.
//!
//! A clock is carried by every message of the lock; who receives one takes the later clock. On
//! entering, the clock moves on, and its new reading is the fence. Between exclusive grants fences
//! grow strictly; a writer's exceeds every earlier reader's, a reader's every earlier writer's, and
//! readers may share one. Permits have only fences of their own, no two alike.
//!
//! With permits a clock alone is not enough, for two nodes may enter without having heard of each
//! other. So there each node uses only the readings that leave its own number when divided by the
//! size of the group.

use std::collections::BTreeSet;

use doorway_core::{Group, Mode, NodeId, Start};

use super::{Event, Outgoing, Watch, all, inside};
use crate::World;

/// The clock of a node and the fences it was granted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fences {
    me: NodeId,
    clock: u64,
    /// The mode of the open request.
    asked: Option<Mode>,
    /// The fence of the last grant.
    last: Option<u64>,
    /// The fence of the last exclusive grant.
    last_exclusive: Option<u64>,
    /// All fences ever granted here, where the group has several permits.
    permits: BTreeSet<u64>,
}

impl AsRef<Self> for Fences {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl Watch for Fences {
    type Note = u64;

    fn new(me: NodeId, _group: &Group, start: &Start) -> Self {
        let mode = start.holder(me).map(|holder| holder.mode);
        let exclusive = mode.filter(|mode| *mode == Mode::Exclusive);
        Self {
            me,
            clock: start.floor,
            asked: None,
            last: mode.map(|_| start.floor),
            last_exclusive: exclusive.map(|_| start.floor),
            permits: BTreeSet::new(),
        }
    }

    fn happened(&mut self, event: Event<'_, u64>) {
        match event {
            Event::Acquire(mode) => self.asked = Some(mode),
            Event::Receive { message, .. } => self.clock = self.clock.max(message.note),
            Event::Start | Event::Release | Event::Failed => {}
        }
    }

    fn entered(&mut self, group: &Group) {
        let (size, me) = (u64::from(group.size()), u64::from(self.me.0));
        self.clock += 1;
        if group.permits() > 1 {
            // The next reading of our own: where the clock modulo the size is our number.
            self.clock += (size + me - self.clock % size) % size;
            self.permits.insert(self.clock);
        }
        self.last = Some(self.clock);
        if self.asked.take() == Some(Mode::Exclusive) {
            self.last_exclusive = self.last;
        }
    }

    fn note(&mut self, _: Event<'_, u64>, _: Outgoing<'_>) -> u64 {
        self.clock
    }

    fn floor(&self, algorithm: u64) -> Option<u64> {
        Some(algorithm.max(self.clock))
    }
}

/// Whose fences do not grow as they should?
///
/// No grant comes between that of a node inside and now, save to others who may be inside with it.
/// So all that was granted before is what the others remember as their last.
pub fn check<W: Watch + AsRef<Fences>>(world: &World) -> Option<String> {
    if world.group().permits() > 1 {
        return shared_fence::<W>(world);
    }
    inside::<W>(world).find_map(|(node, own)| {
        let exclusive = world.nodes().member(node).mode() == Mode::Exclusive;
        let own = own.as_ref().last;
        all::<W>(world).filter(|(other, _)| *other != node).find_map(|(other, theirs)| {
            let theirs = theirs.as_ref();
            let before = if exclusive { theirs.last } else { theirs.last_exclusive };
            let breach = before.is_some() && before >= own;
            let [own, before] = [own, before].map(Option::unwrap_or_default);
            breach.then(|| {
                format!("node {node} is inside with fence {own}, but node {other} had {before}")
            })
        })
    })
}

/// Have two nodes been granted the same fence?
fn shared_fence<W: Watch + AsRef<Fences>>(world: &World) -> Option<String> {
    all::<W>(world).find_map(|(one, fences)| {
        let fences = &fences.as_ref().permits;
        all::<W>(world).filter(|(other, _)| *other > one).find_map(|(other, others)| {
            let fence = fences.intersection(&others.as_ref().permits).next()?;
            Some(format!("nodes {one} and {other} have both been granted fence {fence}"))
        })
    })
}
