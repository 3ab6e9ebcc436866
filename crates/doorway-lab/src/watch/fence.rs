//! Fences: each grant gets a number, and the protected resource refuses a client with an older one.
//!
//! Every message of the lock carries the sender's clock, and the receiver takes the later of the
//! two clocks. When a node enters, its clock moves on, and the new reading is the fence. The fences
//! of exclusive grants grow strictly. A writer's fence exceeds that of every earlier reader, and a
//! reader's fence exceeds that of every earlier writer. Readers may have equal fences. In a group
//! with several permits, fences are only unique.
//!
//! With several permits a clock alone is not enough, because two nodes may enter without having
//! heard of each other. So each node then uses only clock readings whose remainder, divided by the
//! size of the group, is the node's own number.

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
    /// All fences granted here so far, if the group has several permits.
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
            Event::Withdraw => self.asked = None,
            Event::Start | Event::Release | Event::Failed => {}
        }
    }

    fn entered(&mut self, group: &Group) {
        let (size, me) = (u64::from(group.size()), u64::from(self.me.0));
        self.clock += 1;
        if group.permits() > 1 {
            // The next reading that is ours: the clock modulo the size is our number.
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

/// Check that fences grow as they should.
///
/// After the grant of a node that is still inside, only nodes that may be inside with it were
/// granted the lock. So the last fences of the other nodes are those of all earlier grants.
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

/// Check that no two nodes were granted the same fence.
fn shared_fence<W: Watch + AsRef<Fences>>(world: &World) -> Option<String> {
    all::<W>(world).find_map(|(one, fences)| {
        let fences = &fences.as_ref().permits;
        all::<W>(world).filter(|(other, _)| *other > one).find_map(|(other, others)| {
            let fence = fences.intersection(&others.as_ref().permits).next()?;
            Some(format!("nodes {one} and {other} have both been granted fence {fence}"))
        })
    })
}
