//! What may happen in a world besides its algorithm.

use doorway_core::{Group, Mode, NodeId, Phase};

use crate::erased::AnyMember;

/// As many requests as one likes: a node that asks so often never stops asking.
///
/// A world in which someone asks for ever has no end, and numbers that grow with every request make
/// each of its worlds a new one. [`crate::World::settled`] takes that growth out again.
pub const FOREVER: u32 = u32::MAX;

/// Which nodes may crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Victims {
    /// Every node, whatever it is doing.
    #[default]
    Anyone,
    /// Only one that is neither inside nor waiting.
    Outside,
    /// Only one that is inside, or holds a permit while it waits for another.
    Inside,
}

impl Victims {
    /// Is this node one of them?
    pub(super) fn fit(self, member: &AnyMember) -> bool {
        match self {
            Self::Anyone => true,
            Self::Outside => member.phase() == Phase::Outside,
            Self::Inside => member.held() > 0,
        }
    }
}

/// What may happen in a world besides its algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How often each node still asks, [`FOREVER`] if it never stops, and how; one entry per node.
    pub acquires: Vec<(u32, Mode)>,
    /// How many messages may still be lost.
    pub losses: u32,
    /// How many messages may still be doubled.
    pub duplicates: u32,
    /// How many nodes may still crash.
    pub crashes: u32,
    /// Which nodes these may be.
    pub victims: Victims,
    /// Do survivors learn of a crash?
    pub detection: bool,
    /// May idle nodes forget?
    pub forgetting: bool,
}

impl Limits {
    /// Every node asks `acquires` times, exclusively, and nothing fails.
    pub fn reliable(group: &Group, acquires: u32) -> Self {
        Self {
            acquires: vec![(acquires, Mode::Exclusive); group.size() as usize],
            losses: 0,
            duplicates: 0,
            crashes: 0,
            victims: Victims::Anyone,
            detection: false,
            forgetting: false,
        }
    }

    /// `node` has asked once more.
    pub(super) fn count_acquire(&mut self, node: NodeId) {
        let (left, _) = &mut self.acquires[node.index()];
        if *left != FOREVER {
            *left -= 1;
        }
    }
}
