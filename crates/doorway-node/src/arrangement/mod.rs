//! How a rule arranges the members of the group for its locks, in terms of their names.
//!
//! A rule can choose the quorums, the weights of votes, the tree, the links, the permits per node
//! and the coordinator. What it says does not depend on which members a view has: [`view`] computes
//! from the rule and the names of a view how exactly these members are arranged.

mod check;
mod rendezvous;
mod text;
mod view;

use std::collections::{BTreeMap, BTreeSet};

use doorway_core::Wiring;
use doorway_core::quorums::Plan;
use doorway_core::tree::TreeShape;

pub(crate) use rendezvous::coordinator;
pub(crate) use view::{Deviation, arrange, check_fixed};

/// How a rule arranges the members for its locks. What is left out takes the algorithm's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Arrangement {
    /// How the quorums are made.
    pub quorums: Option<QuorumChoice>,
    /// The weight of the vote of each member, by name. A member without a weight has one vote.
    pub weights: Option<BTreeMap<String, u32>>,
    /// The tree.
    pub tree: Option<TreeChoice>,
    /// The links along which messages travel.
    pub topology: Option<Wiring>,
    /// How many permits one member may hold. Without it, one member may hold all of them.
    pub permits_per_node: Option<u32>,
    /// The member that decides. Without it, each lock has a coordinator of its own, which follows
    /// from the names of the lock and the members.
    pub coordinator: Option<String>,
}

/// What is wrong with one key of an arrangement.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{why}")]
pub struct ArrangementError {
    /// The key, one of [`Arrangement::KEYS`].
    pub key: &'static str,
    /// What is wrong, and after a semicolon what would be right.
    pub why: String,
}

/// How quorums are made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum QuorumChoice {
    /// By a construction.
    Made(Plan),
    /// By hand: the quorum of each member.
    Sets(BTreeMap<String, BTreeSet<String>>),
}

/// How a tree is made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TreeChoice {
    /// By its shape; the first member is the root.
    Shape(TreeShape),
    /// By hand: the parent of each member but the root.
    Parents(BTreeMap<String, String>),
}

impl Arrangement {
    /// Whether the rule leaves everything to the algorithm.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// All names of members that the rule mentions, each with the key that mentions it.
    fn names(&self) -> Vec<(&'static str, &str)> {
        let mut names = Vec::new();
        if let Some(QuorumChoice::Sets(sets)) = &self.quorums {
            let members = sets.keys().chain(sets.values().flatten());
            names.extend(members.map(|name| (text::QUORUMS, name.as_str())));
        }
        let weights = self.weights.iter().flat_map(BTreeMap::keys);
        names.extend(weights.map(|name| (text::WEIGHTS, name.as_str())));
        if let Some(TreeChoice::Parents(parents)) = &self.tree {
            let members = parents.keys().chain(parents.values());
            names.extend(members.map(|name| (text::TREE, name.as_str())));
        }
        names.extend(self.coordinator.as_deref().map(|name| (text::COORDINATOR, name)));
        names
    }
}
