//! What is wrong with an arrangement, before any lock uses it.

use std::collections::{BTreeMap, BTreeSet};

use doorway_core::quorums::Plan;
use doorway_core::tree::TreeShape;
use doorway_core::{Info, Kind, Shape};

use super::text::{COORDINATOR, PERMITS_PER_NODE, QUORUMS, TOPOLOGY, TREE, WEIGHTS};
use super::{Arrangement, ArrangementError, QuorumChoice, TreeChoice};

impl Arrangement {
    /// Check what can be checked without knowing the members.
    pub(super) fn check(&self, info: &Info, permits: u32) -> Result<(), ArrangementError> {
        self.refuse_useless(info, permits)?;
        if let Some(QuorumChoice::Sets(sets)) = &self.quorums
            && let Some(why) = disjoint(sets)
        {
            return wrong(QUORUMS, why);
        }
        if let Some(weights) = &self.weights
            && weights.values().all(|weight| *weight == 0)
        {
            return wrong(WEIGHTS, "all weights are zero; at least one must be positive");
        }
        if let Some(TreeChoice::Parents(parents)) = &self.tree {
            check_tree(parents).or_else(|why| wrong(TREE, why))?;
        }
        Ok(())
    }

    /// Check that exactly these members can be arranged so, as a group with a fixed list needs it.
    pub(super) fn check_members(&self, members: &[String]) -> Result<(), ArrangementError> {
        let is_stranger = |name: &&str| !members.iter().any(|it| it == name);
        if let Some((key, stranger)) = self.names().into_iter().find(|(_, name)| is_stranger(name))
        {
            let what = if key == COORDINATOR { "the coordinator " } else { "" };
            let all = members.join(", ");
            return wrong(
                key,
                format!("{what}`{stranger}` is not a member; the members are {all}"),
            );
        }
        if let Some(TreeChoice::Parents(parents)) = &self.tree {
            let named = |name: &&String| {
                parents.contains_key(*name) || parents.values().any(|parent| parent == *name)
            };
            if let Some(missing) = members.iter().find(|name| !named(name)) {
                return wrong(
                    TREE,
                    format!("`{missing}` is not in the tree; add {missing}=PARENT"),
                );
            }
        }
        Ok(())
    }

    fn refuse_useless(&self, info: &Info, permits: u32) -> Result<(), ArrangementError> {
        if self.coordinator.is_some() && info.kind != Kind::Central {
            let why = format!("{} has no use for a coordinator; only central has one", info.name);
            return wrong(COORDINATOR, why);
        }
        match self.permits_per_node {
            Some(_) if !info.permits => {
                let name = info.name;
                let why =
                    format!("{name} has no use for permits_per_node; only raymond-k has permits");
                return wrong(PERMITS_PER_NODE, why);
            }
            Some(seats) if seats == 0 || seats > permits => {
                let why = format!(
                    "permits_per_node is {seats}, but a lock has {permits} in all; write a number \
                     from 1 to {permits}"
                );
                return wrong(PERMITS_PER_NODE, why);
            }
            _ => {}
        }
        let outline = self.outline();
        let refused = info.refuse_useless(&outline);
        let Err(why) = &refused else { return Ok(()) };
        // The choice is useless without which there is another error, or none.
        let without = [
            (QUORUMS, Shape { quorums: None, ..outline.clone() }),
            (WEIGHTS, Shape { weights: None, ..outline.clone() }),
            (TREE, Shape { tree: None, ..outline.clone() }),
        ];
        let useless = without.iter().find(|(_, rest)| info.refuse_useless(rest) != refused);
        wrong(useless.map_or(TOPOLOGY, |(key, _)| key), why.to_string())
    }

    /// The choices without their details: stand-ins for what is made by hand.
    fn outline(&self) -> Shape {
        let quorums = self.quorums.as_ref().map(|quorums| match quorums {
            QuorumChoice::Made(plan) => plan.clone(),
            QuorumChoice::Sets(_) => Plan::Sets(Vec::new()),
        });
        let tree = self.tree.as_ref().map(|tree| match tree {
            TreeChoice::Shape(shape) => *shape,
            TreeChoice::Parents(_) => TreeShape::Chain,
        });
        let weights = self.weights.as_ref().map(|_| Vec::new());
        Shape { quorums, weights, tree, wiring: self.topology, ..Shape::default() }
    }
}

/// This is wrong with this key.
fn wrong(key: &'static str, why: impl Into<String>) -> Result<(), ArrangementError> {
    Err(ArrangementError { key, why: why.into() })
}

/// Two quorums that have no member in common.
pub(super) fn disjoint(sets: &BTreeMap<String, BTreeSet<String>>) -> Option<String> {
    let all: Vec<_> = sets.iter().collect();
    for (at, (one, mine)) in all.iter().enumerate() {
        if mine.is_empty() {
            return Some(format!("the quorum of `{one}` has no members; add a member"));
        }
        for (other, theirs) in &all[..at] {
            if mine.is_disjoint(theirs) {
                return Some(format!(
                    "the quorums of `{other}` and `{one}` have no member in common; add a member \
                     of one quorum to the other"
                ));
            }
        }
    }
    None
}

fn check_tree(parents: &BTreeMap<String, String>) -> Result<(), String> {
    let mut roots = BTreeSet::new();
    for member in parents.keys() {
        let mut at = member;
        for _ in 0..=parents.len() {
            let Some(parent) = parents.get(at) else { break };
            at = parent;
        }
        if parents.contains_key(at) {
            return Err(format!(
                "the tree has a cycle through `{at}`; give every member but the root a parent \
                 nearer to the root"
            ));
        }
        roots.insert(at);
    }
    let roots: Vec<_> = roots.into_iter().collect();
    match roots[..] {
        [one, other, ..] => {
            Err(format!("the tree has two roots, `{one}` and `{other}`; give one of them a parent"))
        }
        _ => Ok(()),
    }
}
