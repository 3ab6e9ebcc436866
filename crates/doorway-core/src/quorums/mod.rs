//! Quorum systems: a set of nodes for each node, any two of which meet.
//!
//! A node that has the permission of its whole quorum knows that nobody else has: the two quorums
//! share a node, and that node gives its permission once. Small quorums make an entry cheap.
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
mod plane;
mod properties;
mod triangle;
mod voting;

use alloc::format;
use alloc::vec::Vec;

use crate::{GroupError, MAX_NODES, NodeId};

pub use kind::{Kind, best_kind};
pub use properties::Properties;
pub use triangle::Scheme;
pub use voting::default_weights;

/// The most members that all quorums of a group may have together: half a gigabyte of them.
const MAX_MEMBERS: u64 = 1 << 27;

/// The quorum of each node, ascending.
type Sets = Vec<Vec<NodeId>>;

/// One quorum for each node, or several that take turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quorums {
    /// `turns[t][i]` is the quorum of node `i` for its requests number t, t + turns, ...
    turns: Vec<Sets>,
}

impl Quorums {
    /// The quorums of a kind for `size` nodes; only [`Kind::Weighted`] has a use for `weights`.
    pub fn build(kind: Kind, size: u32, weights: Option<&[u32]>) -> Result<Self, GroupError> {
        refuse_size(size as usize)?;
        if weights.is_some() && kind != Kind::Weighted {
            return Err(GroupError::new(format!("{kind} quorums have no use for weights")));
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

    /// The triangular arrangement with one of its schemes, or with both taking turns.
    pub fn triangle(size: u32, scheme: Scheme) -> Result<Self, GroupError> {
        refuse_size(size as usize)?;
        Ok(Self { turns: triangle::turns(size, scheme)? })
    }

    /// Quorums made by hand, the first for node 1. Only that any two meet is demanded of them.
    pub fn from_sets(mut sets: Sets) -> Result<Self, GroupError> {
        let size = sets.len();
        refuse_size(size)?;
        for (set, node) in sets.iter_mut().zip((0..).map(NodeId)) {
            if set.is_empty() {
                return Err(GroupError::new(format!("the quorum of node {node} is empty")));
            }
            if let Some(stranger) = set.iter().find(|member| member.index() >= size) {
                let reason = format!("node {stranger} in the quorum of node {node} of {size}");
                return Err(GroupError::new(reason));
            }
            set.sort_unstable();
            set.dedup();
        }
        let quorums = Self { turns: alloc::vec![sets] };
        match quorums.disjoint() {
            None => Ok(quorums),
            Some((one, other)) => {
                let reason = format!("the quorums of nodes {one} and {other} do not meet");
                Err(GroupError::new(reason))
            }
        }
    }

    /// For how many nodes.
    pub fn size(&self) -> u32 {
        self.turns[0].len() as u32
    }

    /// How many quorums each node has, to be used in turn.
    pub fn turns(&self) -> u32 {
        self.turns.len() as u32
    }

    /// The quorum of a node for its `turn`-th request, ascending.
    pub fn quorum(&self, node: NodeId, turn: u32) -> &[NodeId] {
        &self.turns[turn as usize % self.turns.len()][node.index()]
    }

    /// The smallest quorum's size.
    pub fn smallest(&self) -> u32 {
        self.sizes().min().unwrap_or(0)
    }

    /// The largest quorum's size.
    pub fn largest(&self) -> u32 {
        self.sizes().max().unwrap_or(0)
    }

    /// The mean size: over the turns, and over the nodes as if they asked equally often.
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

/// Refuse what is no group.
fn refuse_size(size: usize) -> Result<(), GroupError> {
    if size == 0 || size > MAX_NODES {
        let reason = format!("quorums are for 1 to {MAX_NODES} nodes, not {size}");
        return Err(GroupError::new(reason));
    }
    Ok(())
}

/// Refuse quorums that no memory holds, before any of them is made.
fn refuse_huge(size: u32, members_each: u32) -> Result<(), GroupError> {
    if u64::from(size) * u64::from(members_each) <= MAX_MEMBERS {
        return Ok(());
    }
    Err(GroupError::new(format!(
        "{size} quorums of about {members_each} nodes have more than {MAX_MEMBERS} members in all"
    )))
}

/// Cut an arrangement of `from` nodes down to its first `size`, at least half of them.
///
/// Each dropped node's place is taken everywhere by the node `from - size` before it (Method 1 of
/// Maekawa's section 7, with the map that gives the averages of his Table II). Two sets that met in
/// a dropped node then meet in its heir; dropping it without an heir would part them.
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
