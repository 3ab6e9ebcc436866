//! What Maekawa's algorithms cost in a group, and who asks whom in it.

use crate::algorithms::prelude::*;

/// The quorums of a node, one for each turn.
pub fn quorums(group: &Group, node: NodeId) -> impl Iterator<Item = &[NodeId]> {
    (0..group.turns()).map(move |turn| group.quorum(node, turn))
}

/// Does `node` ever ask `member`?
pub fn asks(group: &Group, node: NodeId, member: NodeId) -> bool {
    quorums(group, node).any(|quorum| quorum.binary_search(&member).is_ok())
}

/// How many members a message must be sent to: K − 1 where the node itself is one of them.
pub fn others(node: NodeId, quorum: &[NodeId]) -> f64 {
    quorum.iter().filter(|member| **member != node).count() as f64
}

/// The cost of one entry of a node with this quorum.
pub type Cost = fn(NodeId, &[NodeId]) -> f64;

/// The cost of one entry for the cheapest quorum.
pub fn least(group: &Group, cost: Cost) -> f64 {
    all(group, cost).fold(f64::INFINITY, f64::min)
}

/// The cost of one entry for the dearest quorum.
pub fn most(group: &Group, cost: Cost) -> f64 {
    all(group, cost).fold(0.0, f64::max)
}

/// The mean over all nodes, each taking its turns.
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

/// REQUEST, LOCKED, RELEASE for each other member.
pub const LEAST: Formula = Formula { text: "3(K-1)", of: |group| 3.0 * least(group, others) };

/// Besides, an INQUIRE, a RELINQUISH and the LOCKED that makes up for it.
pub const MOST: Formula = Formula { text: "6(K-1)", of: |group| 6.0 * most(group, others) };

/// Without contention.
pub const LIGHT: Formula = Formula { text: "3(K-1)", of: |group| 3.0 * mean(group, others) };
