//! Majorities, of nodes and of votes, as fixed sets (Thomas 1979, Gifford 1979).

use alloc::format;
use alloc::vec::Vec;

use super::{Sets, refuse_huge};
use crate::{GroupError, NodeId};

/// Each node with its ⌊N/2⌋ successors.
pub(super) fn majority(size: u32) -> Result<Sets, GroupError> {
    let successors = size / 2;
    refuse_huge(size, successors + 1)?;
    let window = |node: u32| {
        // The part that wraps round the end of the ring comes first, so the set is ascending.
        let end = node + successors + 1;
        (0..end.saturating_sub(size)).chain(node..end.min(size)).map(NodeId).collect()
    };
    Ok((0..size).map(window).collect())
}

/// Each node with the fewest others that give it more than half of all votes: the heaviest nodes,
/// and of equally heavy ones those that follow it on the ring.
pub(super) fn weighted(size: u32, weights: &[u32]) -> Result<Sets, GroupError> {
    if weights.len() != size as usize {
        let reason =
            format!("there are {} weights for {size} nodes; give one for each node", weights.len());
        return Err(GroupError::new(reason));
    }
    let weight = |node: &NodeId| u64::from(weights[node.index()]);
    let mut heaviest: Vec<_> = (0..size).map(NodeId).collect();
    let total: u64 = heaviest.iter().map(weight).sum();
    if total == 0 {
        return Err(GroupError::new("all weights are zero; at least one must be positive"));
    }
    heaviest.sort_by_key(|node| core::cmp::Reverse(weight(node)));
    let mut votes = 0;
    let fewest = heaviest.iter().take_while(|node| {
        let short = 2 * votes <= total;
        votes += weight(node);
        short
    });
    refuse_huge(size, fewest.count() as u32 + 1)?;

    let quorum = |owner: NodeId| {
        let equals = heaviest.chunk_by(|one, other| weight(one) == weight(other));
        let others = equals.flat_map(|class| {
            let (before, after) = class.split_at(class.partition_point(|node| *node <= owner));
            after.iter().chain(before).filter(|node| **node != owner)
        });
        let (mut set, mut votes) = (alloc::vec![owner], weight(&owner));
        for node in others {
            if 2 * votes > total {
                break;
            }
            set.push(*node);
            votes += weight(node);
        }
        set.sort_unstable();
        set
    };
    Ok((0..size).map(|node| quorum(NodeId(node))).collect())
}

/// The weights of a group for which none are given: node 1 has two votes, the others one, so that a
/// group of even size has no ties.
pub fn default_weights(size: usize) -> Vec<u32> {
    (0..size).map(|node| if node == 0 { 2 } else { 1 }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Kind, Quorums};
    use super::*;

    fn shown(weights: &[u32]) -> alloc::string::String {
        format!("{:?}", weighted(weights.len() as u32, weights).unwrap())
    }

    #[test]
    fn equal_weights_are_a_majority() {
        for size in 1..=20 {
            let weights = alloc::vec![3; size as usize];
            assert_eq!(weighted(size, &weights).unwrap(), majority(size).unwrap());
        }
    }

    #[test]
    fn heavy_nodes_are_in_the_quorums() {
        assert_eq!(shown(&[2, 1, 1]), "[[1, 2], [1, 2], [1, 3]]");
        assert_eq!(shown(&[5, 0, 0]), "[[1], [1, 2], [1, 3]]", "the central coordinator");
        assert_eq!(shown(&[0, 1, 2, 3]), "[[1, 3, 4], [2, 4], [3, 4], [3, 4]]");
    }

    #[test]
    fn quorums_of_all_small_weights_meet() {
        for code in 1..4u32.pow(5) {
            let weights: Vec<u32> = (0..5).map(|node| code / 4u32.pow(node) % 4).collect();
            let quorums = Quorums::build(Kind::Weighted, 5, Some(&weights)).unwrap();
            let total: u32 = weights.iter().sum();
            let mut votes = (0..5).map(|node| {
                quorums.quorum(NodeId(node), 0).iter().map(|node| weights[node.index()]).sum()
            });
            assert!(votes.all(|votes: u32| 2 * votes > total), "{weights:?}");
            assert!(quorums.properties().a && quorums.properties().b, "{weights:?}");
        }
    }

    #[test]
    fn wrong_weights_are_refused() {
        assert!(weighted(3, &[1, 1]).is_err());
        assert!(weighted(2, &[0, 0]).is_err());
        assert!(Quorums::build(Kind::Majority, 3, Some(&[1, 1, 1])).is_err());
    }
}
