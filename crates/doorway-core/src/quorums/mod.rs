//! Quorum systems: each node has a set of nodes, its quorum, and any two quorums have a node in
//! common.
//!
//! A node that has the permission of its whole quorum knows that no other node has: the two quorums
//! share a node, and a node gives its permission to one at a time. Small quorums make an entry
//! cheap.
//!
//! ```
//! use doorway_core::NodeId;
//! use doorway_core::quorums::{Kind, Quorums};
//!
//! let quorums = Quorums::build(Kind::ProjectivePlane, 7, None)?;
//! assert_eq!(quorums.quorum(NodeId(3), 0), [NodeId(0), NodeId(3), NodeId(4)]);
//! assert!(quorums.properties().a);
//! assert!(Quorums::build(Kind::ProjectivePlane, 8, None).is_err());
//! # Ok::<(), doorway_core::GroupError>(())
//! ```

mod cyclic;
mod field;
mod grid;
mod kind;
mod plan;
mod plane;
mod properties;
mod triangle;
mod voting;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::{GroupError, MAX_NODES, NodeId};

pub use kind::{Kind, best_kind};
pub use plan::Plan;
pub use properties::Properties;
pub use triangle::Scheme;
pub use voting::default_weights;

/// The largest number of members that all quorums of a group may have together, which takes half a
/// gigabyte of memory.
const MAX_MEMBERS: u64 = 1 << 27;

/// The quorum of each node, in ascending order.
type Sets = Vec<Vec<NodeId>>;

/// The quorums of a group: one for each node, or several that its requests use in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quorums {
    /// With T turns, `turns[t][i]` is the quorum of node `i` for its requests t, t + T, t + 2T, ...
    turns: Vec<Sets>,
}

impl Quorums {
    /// Build the quorums of a kind for `size` nodes. Only [`Kind::Weighted`] takes `weights`.
    pub fn build(kind: Kind, size: u32, weights: Option<&[u32]>) -> Result<Self, GroupError> {
        refuse_size(size as usize)?;
        if weights.is_some() && kind != Kind::Weighted {
            return Err(GroupError::new(format!(
                "{kind} quorums take no weights; only weighted quorums do"
            )));
        }
        let sets = match kind {
            Kind::ProjectivePlane => plane::projective(size)?,
            Kind::DegeneratePlane => plane::degenerate(size)?,
            Kind::Grid => grid::sets(size)?,
            Kind::Triangle => return Self::triangle(size, Scheme::Both),
            Kind::Cyclic => cyclic::sets(size)?,
            Kind::Majority => voting::majority(size)?,
            Kind::Weighted => match weights {
                Some(weights) => voting::weighted(size, weights)?,
                None => voting::weighted(size, &default_weights(size as usize))?,
            },
        };
        Ok(Self { turns: alloc::vec![sets] })
    }

    /// Build the triangular arrangement with one of its schemes, or with both in turn.
    pub fn triangle(size: u32, scheme: Scheme) -> Result<Self, GroupError> {
        refuse_size(size as usize)?;
        Ok(Self { turns: triangle::turns(size, scheme)? })
    }

    /// Use quorums made by hand, the first for node 1. They are checked: any two must have a node
    /// in common.
    pub fn from_sets(mut sets: Sets) -> Result<Self, GroupError> {
        let size = sets.len();
        refuse_size(size)?;
        for (set, node) in sets.iter_mut().zip((0..).map(NodeId)) {
            if set.is_empty() {
                return Err(GroupError::new(format!("the quorum of node {node} is empty")));
            }
            if let Some(stranger) = set.iter().find(|member| member.index() >= size) {
                let reason = format!(
                    "the quorum of node {node} contains node {stranger}, but there are {size} nodes"
                );
                return Err(GroupError::new(reason));
            }
            set.sort_unstable();
            set.dedup();
        }
        let quorums = Self { turns: alloc::vec![sets] };
        match quorums.disjoint() {
            None => Ok(quorums),
            Some((one, other)) => {
                let (mine, theirs) = (quorums.quorum(one, 0), quorums.quorum(other, 0));
                let reason = format!(
                    "the quorums {} of node {one} and {} of node {other} have no node in common; \
                     add a node of one quorum to the other",
                    braced(mine),
                    braced(theirs)
                );
                Err(GroupError::new(reason))
            }
        }
    }

    /// The number of nodes.
    pub fn size(&self) -> u32 {
        self.turns[0].len() as u32
    }

    /// The number of quorums that each node has; its requests use them in turn.
    pub fn turns(&self) -> u32 {
        self.turns.len() as u32
    }

    /// The quorum of a node for its `turn`-th request, in ascending order.
    pub fn quorum(&self, node: NodeId, turn: u32) -> &[NodeId] {
        &self.turns[turn as usize % self.turns.len()][node.index()]
    }

    /// The size of the smallest quorum.
    pub fn smallest(&self) -> u32 {
        self.sizes().min().unwrap_or(0)
    }

    /// The size of the largest quorum.
    pub fn largest(&self) -> u32 {
        self.sizes().max().unwrap_or(0)
    }

    /// The mean size of a quorum over all turns and all nodes, as if all nodes asked equally often.
    pub fn mean_size(&self) -> f64 {
        let members: u64 = self.sizes().map(u64::from).sum();
        members as f64 / (f64::from(self.size()) * f64::from(self.turns()))
    }

    /// All quorums with their owners, turn after turn.
    fn all(&self) -> impl Iterator<Item = (NodeId, &[NodeId])> {
        self.turns.iter().flat_map(|sets| (0..).map(NodeId).zip(sets.iter().map(Vec::as_slice)))
    }

    fn sizes(&self) -> impl Iterator<Item = u32> {
        self.all().map(|(_, set)| set.len() as u32)
    }
}

/// A quorum in braces, as in {1,2}.
fn braced(set: &[NodeId]) -> String {
    let members: Vec<_> = set.iter().map(ToString::to_string).collect();
    format!("{{{}}}", members.join(","))
}

/// Refuse a size that no group has.
fn refuse_size(size: usize) -> Result<(), GroupError> {
    if size == 0 || size > MAX_NODES {
        let reason = format!("quorums exist for 1 to {MAX_NODES} nodes, not for {size}");
        return Err(GroupError::new(reason));
    }
    Ok(())
}

/// Refuse quorums that would take too much memory, before any of them is made.
fn refuse_huge(size: u32, members_each: u32) -> Result<(), GroupError> {
    if u64::from(size) * u64::from(members_each) <= MAX_MEMBERS {
        return Ok(());
    }
    Err(GroupError::new(format!(
        "{size} quorums of about {members_each} nodes would have more than {MAX_MEMBERS} members \
         in all, which takes too much memory"
    )))
}

/// Reduce an arrangement of `from` nodes to its first `size` nodes, which are at least half of
/// them.
///
/// In every set, a dropped node is replaced by the node whose number is `from - size` lower (Method
/// 1 of Maekawa's section 7, with the map that gives the averages of his Table II). Two sets that
/// had only a dropped node in common then have its replacement in common.
fn shrink(sets: &mut Sets, from: u32, size: u32) {
    let dropped = from - size;
    sets.truncate(size as usize);
    for set in sets {
        for node in set.iter_mut().filter(|node| node.0 >= size) {
            node.0 -= dropped;
        }
        set.sort_unstable();
        set.dedup();
    }
}

#[cfg(test)]
mod tests;
