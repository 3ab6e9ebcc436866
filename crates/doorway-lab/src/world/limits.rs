//! What may happen in a world besides the algorithm's own steps: requests and faults.

use doorway_core::{Group, Mode, NodeId, Phase};

use crate::erased::AnyMember;

/// The number of requests of a node that never stops asking.
///
/// A run of such a node has no end. Sequence numbers grow with every request, so without help no
/// two worlds of the run would be equal, and a search would never end. [`crate::World::settled`]
/// removes that growth.
pub const FOREVER: u32 = u32::MAX;

/// Which nodes may crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Victims {
    /// Every node, in any phase.
    #[default]
    Anyone,
    /// Only a node that is neither inside nor waiting.
    Outside,
    /// Only a node that is inside, or that holds a permit while it waits for another.
    Inside,
}

impl Victims {
    /// May this node crash?
    pub(super) fn fit(self, member: &AnyMember) -> bool {
        match self {
            Self::Anyone => true,
            Self::Outside => member.phase() == Phase::Outside,
            Self::Inside => member.held() > 0,
        }
    }
}

/// How many requests and faults may still happen in a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For each node, how many requests it still makes, and in which mode. [`FOREVER`] means that
    /// it never stops.
    pub acquires: Vec<(u32, Mode)>,
    /// How many messages may still be lost.
    pub losses: u32,
    /// How many messages may still be duplicated.
    pub duplicates: u32,
    /// How many nodes may still crash.
    pub crashes: u32,
    /// Which nodes may crash.
    pub victims: Victims,
    /// Do the surviving nodes learn of a crash?
    pub detection: bool,
    /// May an idle node forget the lock?
    pub forgetting: bool,
    /// May a waiting client give up, if the algorithm can withdraw its request?
    pub withdrawing: bool,
}

impl Limits {
    /// Every node makes `acquires` exclusive requests, and nothing fails.
    pub fn reliable(group: &Group, acquires: u32) -> Self {
        Self {
            acquires: vec![(acquires, Mode::Exclusive); group.size() as usize],
            losses: 0,
            duplicates: 0,
            crashes: 0,
            victims: Victims::Anyone,
            detection: false,
            forgetting: false,
            withdrawing: false,
        }
    }

    /// Count a request of `node`.
    pub(super) fn count_acquire(&mut self, node: NodeId) {
        let (left, _) = &mut self.acquires[node.index()];
        if *left != FOREVER {
            *left -= 1;
        }
    }
}
