//! How the members of one view are arranged: a pure function of the rule and their names.
//!
//! All members of a view have agreed on the rules and on the names, so all of them compute the same
//! arrangement. Names that are not in the view drop out:
//!
//! - A quorum by hand loses the members that are not there.
//! - A member without a weight has one vote.
//! - In a tree by hand, a member whose parent is not there moves to its nearest ancestor that is.
//!   Members without such an ancestor, and members that the tree does not name, become children of
//!   the root. If the root is not there, the first of them takes its place.
//! - If the permits do not fit, each member may hold as many more as it takes.
//! - A coordinator who is not there is replaced as if none were named.
//!
//! If what is left of the quorums does not intersect, if nobody has a vote, or if there is no such
//! construction for this number of members, the lock uses `majority` in this view.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use doorway_core::algorithms::ALL;
use doorway_core::quorums::Plan;
use doorway_core::tree::Tree;
use doorway_core::{Graph, Group, GroupError, Info, Kind, Needs, NodeId, Shape, Wiring};

use super::check::disjoint;
use super::text::{COORDINATOR, PERMITS_PER_NODE, QUORUMS, TREE, WEIGHTS};
use super::{Arrangement, ArrangementError, QuorumChoice, TreeChoice};
use crate::lock_rules::RuleConfig;
use crate::locks::RuleError;

/// The algorithm that serves every number of members.
const MAJORITY: &str = "majority";

/// How the members of a view are arranged for the locks of a rule.
#[derive(Clone, Debug)]
pub(crate) struct ViewArrangement {
    /// The algorithm: that of the rule, or `majority`.
    pub(crate) info: Info,
    /// The members.
    pub(crate) group: Group,
    /// Whether each lock has a coordinator of its own.
    pub(crate) spread: bool,
    /// How that differs from what the rule says.
    pub(crate) deviation: Option<Deviation>,
}

/// How the locks of a rule are served otherwise than the rule says, and why.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Deviation {
    /// By `majority`, because the members cannot be arranged as the rule says.
    Majority(ArrangementError),
    /// In some other respect.
    Adjusted(ArrangementError),
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = self.error().why.split("; ").next().unwrap_or_default();
        match self {
            Self::Majority(_) => write!(f, "{MAJORITY}, because {why}"),
            Self::Adjusted(_) => f.write_str(why),
        }
    }
}

impl Deviation {
    /// Why the locks cannot be served as the rule says.
    pub(crate) fn error(&self) -> &ArrangementError {
        let (Self::Majority(error) | Self::Adjusted(error)) = self;
        error
    }

    fn adjusted(key: &'static str, why: String) -> Self {
        Self::Adjusted(ArrangementError { key, why })
    }
}

/// Arrange the members with these names for the locks of a rule. The error says what is wrong with
/// the rule itself, whichever members there are.
pub(crate) fn arrange(rule: &RuleConfig, names: &[String]) -> Result<ViewArrangement, RuleError> {
    let info = find(&rule.algorithm)?;
    let arrangement = &rule.arrangement;
    arrangement.check(&info, rule.permits).map_err(RuleError::Arrangement)?;
    let size = names.len();
    let place = |name: &str| names.iter().position(|it| it == name).map(NodeId::at);
    let (seats, mut deviation) = seats(rule, size);
    let mut group = match made(rule, &info, seats, names) {
        Ok(group) => group,
        Err(ArrangementFailure { key: None, why }) => return Err(RuleError::Group(why)),
        Err(ArrangementFailure { key: Some(key), why }) => {
            let info = find(MAJORITY)?;
            let group = info.group(size, &Shape::default()).map_err(RuleError::Group)?;
            let why = why.to_string();
            let deviation = Some(Deviation::Majority(ArrangementError { key, why }));
            return Ok(ViewArrangement { info, group, spread: false, deviation });
        }
    };
    if let Some(TreeChoice::Parents(parents)) = &arrangement.tree {
        let tree = Tree::from_parents(parents_in_view(parents, names));
        group = tree
            .and_then(|tree| with_tree(group, &info, tree, arrangement.topology))
            .map_err(|why| ArrangementError { key: TREE, why: why.to_string() })
            .map_err(RuleError::Arrangement)?;
    }
    let mut spread = info.kind == Kind::Central;
    if let Some(coordinator) = &arrangement.coordinator {
        if let Some(node) = place(coordinator) {
            group = group.with_coordinator(node).map_err(RuleError::Group)?;
            spread = false;
        } else {
            let why = format!(
                "the coordinator `{coordinator}` is not there: each lock has a coordinator of its \
                 own; name a member"
            );
            deviation = Some(Deviation::adjusted(COORDINATOR, why));
        }
    }
    Ok(ViewArrangement { info, group, spread, deviation })
}

/// How many permits one node may hold, if locks have several, and whether the rule says otherwise.
fn seats(rule: &RuleConfig, size: usize) -> (Option<u32>, Option<Deviation>) {
    // One node may hold all permits, because all clients that want one may be its own.
    let seats = rule.arrangement.permits_per_node.unwrap_or(rule.permits);
    let fewest = u32::try_from((rule.permits as usize).div_ceil(size.max(1))).unwrap_or(seats);
    let deviation = (seats < fewest).then(|| {
        let why = format!(
            "with {size} members, {seats} permits per node are fewer than the {} permits of a \
             lock: each node may hold {fewest}; write permits_per_node = {fewest}",
            rule.permits
        );
        Deviation::adjusted(PERMITS_PER_NODE, why)
    });
    ((rule.permits != 1).then_some(seats.max(fewest)), deviation)
}

/// Why members cannot be arranged, and which key of the rule asks for that, if one does.
struct ArrangementFailure {
    key: Option<&'static str>,
    why: GroupError,
}

/// The group with what the rule says about quorums, weights, links and the shape of the tree.
fn made(
    rule: &RuleConfig,
    info: &Info,
    seats: Option<u32>,
    names: &[String],
) -> Result<Group, ArrangementFailure> {
    let arrangement = &rule.arrangement;
    let wrong = |key| move |why| ArrangementFailure { key: Some(key), why: GroupError::new(why) };
    let tree = match &arrangement.tree {
        Some(TreeChoice::Shape(shape)) => Some(*shape),
        _ => None,
    };
    let shape = Shape {
        permits: seats.map(|_| rule.permits),
        seats,
        quorums: sets(arrangement, names).map_err(wrong(QUORUMS))?,
        weights: weights(arrangement, names).map_err(wrong(WEIGHTS))?,
        tree,
        wiring: arrangement.topology,
        ..Shape::default()
    };
    // An algorithm has a use for one of them, except for quorums that have weights.
    let keys = [
        (QUORUMS, shape.quorums.is_some()),
        (WEIGHTS, shape.weights.is_some()),
        (TREE, tree.is_some()),
    ];
    let key = keys.into_iter().find_map(|(key, is_set)| is_set.then_some(key));
    info.group(names.len(), &shape).map_err(|why| ArrangementFailure { key, why })
}

/// The group with a tree that was made by hand. An algorithm that needs a graph gets its edges.
fn with_tree(
    mut group: Group,
    info: &Info,
    tree: Tree,
    topology: Option<Wiring>,
) -> Result<Group, GroupError> {
    if info.needs == Needs::Graph {
        let initiators = group.initiators().clone();
        group = group.with_graph(Graph::of_tree(&tree), initiators)?;
    }
    group = group.with_tree(tree)?;
    if topology == Some(Wiring::Tree) {
        group = group.with_wiring(Wiring::Tree);
    }
    Ok(group)
}

/// Check that exactly these members can be arranged as the rule says, as a group with a fixed list
/// of members needs it.
pub(crate) fn check_fixed(
    rule: &RuleConfig,
    names: &[String],
    deviation: Option<&Deviation>,
) -> Result<(), RuleError> {
    rule.arrangement.check_members(names).map_err(RuleError::Arrangement)?;
    deviation.map_or(Ok(()), |it| Err(RuleError::Arrangement(it.error().clone())))
}

/// The description of an algorithm that can be served.
fn find(algorithm: &str) -> Result<Info, RuleError> {
    let entry = ALL.iter().find(|entry| entry.info.name == algorithm);
    let info = entry.ok_or_else(|| RuleError::Unknown(algorithm.to_owned()))?.info;
    if info.served { Ok(info) } else { Err(RuleError::NotServed(algorithm.to_owned())) }
}

/// The quorums of the members, as far as the rule names members.
fn sets(arrangement: &Arrangement, names: &[String]) -> Result<Option<Plan>, String> {
    let sets = match &arrangement.quorums {
        None => return Ok(None),
        Some(QuorumChoice::Made(plan)) => return Ok(Some(plan.clone())),
        Some(QuorumChoice::Sets(sets)) => sets,
    };
    let mut left = BTreeMap::new();
    for name in names {
        let Some(set) = sets.get(name) else {
            return Err(format!("`{name}` has no quorum; add {name}=MEMBER,MEMBER"));
        };
        let set: BTreeSet<_> = set.iter().filter(|it| names.contains(it)).cloned().collect();
        left.insert(name.clone(), set);
    }
    if let Some(why) = disjoint(&left) {
        return Err(why);
    }
    let place = |name: &String| names.iter().position(|it| it == name).map(NodeId::at);
    let numbers = |name: &String| left[name].iter().filter_map(place).collect();
    Ok(Some(Plan::Sets(names.iter().map(numbers).collect())))
}

fn weights(arrangement: &Arrangement, names: &[String]) -> Result<Option<Vec<u32>>, String> {
    let Some(weights) = &arrangement.weights else { return Ok(None) };
    let weight = |name: &String| weights.get(name).copied().unwrap_or(1);
    let weights: Vec<u32> = names.iter().map(weight).collect();
    if weights.iter().all(|weight| *weight == 0) {
        return Err("no member has a vote; give one of them a positive weight".to_owned());
    }
    Ok(Some(weights))
}

/// The parent of each member in a tree by hand. The root is its own parent.
fn parents_in_view(parents: &BTreeMap<String, String>, names: &[String]) -> Vec<NodeId> {
    let place = |name: &String| names.iter().position(|it| it == name);
    let ancestor = |name: &String| {
        let mut at = parents.get(name)?;
        for _ in 0..=parents.len() {
            if let Some(found) = place(at) {
                return Some(found);
            }
            at = parents.get(at)?;
        }
        None
    };
    let found: Vec<Option<usize>> = names.iter().map(ancestor).collect();
    let is_named =
        |name: &String| parents.contains_key(name) || parents.values().any(|parent| parent == name);
    let orphans = || (0..names.len()).filter(|at| found[*at].is_none());
    let root = orphans().find(|at| is_named(&names[*at])).or_else(|| orphans().next()).unwrap_or(0);
    found.iter().map(|parent| NodeId::at(parent.unwrap_or(root))).collect()
}

#[cfg(test)]
mod tests;
