//! The cost of Maekawa's algorithms in a group, and which nodes ask which others.

use crate::algorithms::prelude::*;

/// The quorums of a node, one for each turn.
pub fn quorums(group: &Group, node: NodeId) -> impl Iterator<Item = &[NodeId]> {
    (0..group.turns()).map(move |turn| group.quorum(node, turn))
}

/// Whether `node` ever asks `member`.
pub fn asks(group: &Group, node: NodeId, member: NodeId) -> bool {
    quorums(group, node).any(|quorum| quorum.binary_search(&member).is_ok())
}

/// The number of members to which a message must be sent: K − 1 if the node is in its own quorum.
pub fn others(node: NodeId, quorum: &[NodeId]) -> f64 {
    quorum.iter().filter(|member| **member != node).count() as f64
}

/// A function for the cost of one entry of a node with this quorum.
pub type Cost = fn(NodeId, &[NodeId]) -> f64;

/// The cost of one entry with the cheapest quorum.
pub fn least(group: &Group, cost: Cost) -> f64 {
    all(group, cost).fold(f64::INFINITY, f64::min)
}

/// The cost of one entry with the most expensive quorum.
pub fn most(group: &Group, cost: Cost) -> f64 {
    all(group, cost).fold(0.0, f64::max)
}

/// The mean cost of one entry over all nodes and their turns.
pub fn mean(group: &Group, cost: Cost) -> f64 {
    let of = |node| {
        let (sum, turns) = quorums(group, node)
            .fold((0.0, 0.0), |(sum, turns), quorum| (sum + cost(node, quorum), turns + 1.0));
        sum / turns
    };
    group.nodes().map(of).sum::<f64>() / f64::from(group.size())
}

fn all(group: &Group, cost: Cost) -> impl Iterator<Item = f64> {
    let of = move |node| quorums(group, node).map(move |quorum| cost(node, quorum));
    group.nodes().flat_map(of)
}

/// The lowest cost: REQUEST, LOCKED and RELEASE for each other member.
pub const LEAST: Formula = Formula { text: "3(K-1)", of: |group| 3.0 * least(group, others) };

/// The highest cost: for each other member, also an INQUIRE, a RELINQUISH and another LOCKED.
pub const MOST: Formula = Formula { text: "6(K-1)", of: |group| 6.0 * most(group, others) };

/// The mean cost without contention.
pub const LIGHT: Formula = Formula { text: "3(K-1)", of: |group| 3.0 * mean(group, others) };
