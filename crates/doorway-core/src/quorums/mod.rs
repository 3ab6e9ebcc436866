//! Quorum systems: a set of nodes for each node, any two of which meet.

use alloc::vec::Vec;

use crate::{GroupError, NodeId};

/// The constructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Majorities as fixed sets: each node and its ⌊N/2⌋ successors.
    Majority,
    /// Majorities by weight.
    Weighted,
}

/// One quorum for each node, or several that take turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quorums {
    /// `turns[t][i]` is the quorum of node `i` for its requests number t, t + turns, ...
    turns: Vec<Vec<Vec<NodeId>>>,
}

impl Quorums {
    /// The quorums of a kind for `size` nodes.
    pub fn build(kind: Kind, size: u32, _weights: Option<&[u32]>) -> Result<Self, GroupError> {
        let half = size / 2;
        let _ = kind;
        Ok(Self {
            turns: alloc::vec![
                (0..size)
                    .map(|i| {
                        let mut s: Vec<_> = (0..=half).map(|d| NodeId((i + d) % size)).collect();
                        s.sort_unstable();
                        s.dedup();
                        s
                    })
                    .collect()
            ],
        })
    }

    /// For how many nodes.
    pub fn size(&self) -> u32 {
        self.turns[0].len() as u32
    }

    /// The quorum of a node for its `turn`-th request, ascending.
    pub fn quorum(&self, node: NodeId, turn: u32) -> &[NodeId] {
        &self.turns[turn as usize % self.turns.len()][node.index()]
    }
}

/// The construction with the smallest sets for `size` nodes.
pub fn best_kind(_size: u32) -> Kind {
    Kind::Majority
}

/// Weights for those who name none: node 1 has two votes, so that an even group has no ties.
pub fn default_weights(size: usize) -> Vec<u32> {
    (0..size).map(|node| if node == 0 { 2 } else { 1 }).collect()
}
