//! Quorums of the papers' figures, and the smallest ones that show a flaw. Nodes are numbered from
//! 1, as in the papers.

use std::sync::Arc;

use doorway_core::quorums::Quorums;
use doorway_core::{Group, Mode, NodeId};

use crate::Limits;

/// Two nodes that each ask both.
pub const PAIR: &[&[u32]] = &[&[1, 2], &[1, 2]];
/// Figure 1(a), as a ring.
pub const TRIANGLE: &[&[u32]] = &[&[1, 2], &[2, 3], &[1, 3]];
/// Each node asks all nodes.
pub const FULL: &[&[u32]] = &[&[1, 2, 3], &[1, 2, 3], &[1, 2, 3]];
/// The smallest sets on which the printed algorithm deadlocks.
pub const STAIRS: &[&[u32]] = &[&[1, 2, 3], &[2, 3], &[3]];
/// The smallest such sets that meet all of Maekawa's conditions (a) to (d).
pub const CYCLIC: &[&[u32]] = &[&[1, 2, 3], &[2, 3, 4], &[1, 3, 4], &[1, 2, 4]];
/// Rows and columns of two by two nodes.
pub const GRID: &[&[u32]] = &[&[1, 2, 3], &[1, 2, 4], &[1, 3, 4], &[2, 3, 4]];
/// Figure 1(b): the plane of order 2.
pub const FANO: &[&[u32]] =
    &[&[1, 2, 3], &[2, 4, 6], &[3, 5, 6], &[1, 4, 5], &[2, 5, 7], &[1, 6, 7], &[3, 4, 7]];
/// Figure 1(c): the plane of order 3.
pub const PLANE_13: &[&[u32]] = &[
    &[1, 2, 3, 4],
    &[2, 5, 8, 11],
    &[3, 6, 8, 13],
    &[4, 6, 10, 11],
    &[1, 5, 6, 7],
    &[2, 6, 9, 12],
    &[2, 7, 10, 13],
    &[1, 8, 9, 10],
    &[3, 7, 9, 11],
    &[3, 5, 10, 12],
    &[1, 11, 12, 13],
    &[4, 7, 8, 12],
    &[4, 5, 9, 13],
];
/// One node decides, and three clients are in no quorum.
pub const VOTER: &[&[u32]] = &[&[4], &[4], &[4], &[4]];
/// Node 1 is in every quorum, and each other node in its own.
pub const HUB: &[&[u32]] = &[&[1], &[1, 2], &[1, 3], &[1, 4]];
/// One voter in common, and one for each client.
pub const STAR: &[&[u32]] = &[&[4, 5], &[4, 6], &[4, 7], &[4], &[4], &[4], &[4]];

/// A group with these quorums.
///
/// # Panics
///
/// If two of the sets have no node in common.
pub fn group<S: AsRef<[u32]>>(sets: &[S]) -> Arc<Group> {
    let nodes = |set: &S| set.as_ref().iter().map(|node| NodeId(node - 1)).collect();
    let quorums = Quorums::from_sets(sets.iter().map(nodes).collect()).expect("the sets meet");
    let group = Group::new(sets.len()).and_then(|group| group.with_quorums(quorums));
    Arc::new(group.expect("one set for each node"))
}

/// Node i asks `asks[i]` times. Nodes beyond the list do not ask.
pub fn limits(group: &Group, asks: &[u32]) -> Limits {
    let mut limits = Limits::reliable(group, 0);
    for (limit, asks) in limits.acquires.iter_mut().zip(asks) {
        *limit = (*asks, Mode::Exclusive);
    }
    limits
}
