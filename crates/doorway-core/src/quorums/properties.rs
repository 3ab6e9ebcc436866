//! The four properties that Maekawa's paper asks of quorums, verified on the sets.

use alloc::vec::Vec;

use super::Quorums;
use crate::NodeId;

/// Which of the properties (a) to (d) of Maekawa's section 2 hold, and the sizes and loads.
#[expect(clippy::struct_excessive_bools, reason = "the paper has four properties")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Properties {
    /// (a) Any two quorums have a node in common, also those of different turns. Mutual exclusion
    /// depends on this.
    pub a: bool,
    /// (b) Every node is in its own quorum, which saves it messages.
    pub b: bool,
    /// (c) All quorums have the same size (K of the paper).
    pub c: bool,
    /// (d) All nodes are in the same number of quorums (D of the paper).
    pub d: bool,
    /// The size of the smallest quorum.
    pub size_min: u32,
    /// The size of the largest quorum.
    pub size_max: u32,
    /// The mean size of a quorum.
    pub size_mean: f64,
    /// The lowest load: the number of quorums, of all turns together, in which a node is.
    pub load_min: u32,
    /// The highest load: the number of quorums, of all turns together, in which a node is.
    pub load_max: u32,
}

impl Quorums {
    /// Verify the properties (a) to (d) on the sets themselves, however they were made.
    pub fn properties(&self) -> Properties {
        let mut loads = alloc::vec![0u32; self.size() as usize];
        for member in self.all().flat_map(|(_, set)| set) {
            loads[member.index()] += 1;
        }
        let (size_min, size_max) = (self.smallest(), self.largest());
        let load_min = loads.iter().copied().min().unwrap_or(0);
        let load_max = loads.iter().copied().max().unwrap_or(0);
        Properties {
            a: self.disjoint().is_none(),
            b: self.all().all(|(owner, set)| set.binary_search(&owner).is_ok()),
            c: size_min == size_max,
            d: load_min == load_max,
            size_min,
            size_max,
            size_mean: self.mean_size(),
            load_min,
            load_max,
        }
    }

    /// The owners of two disjoint quorums, in ascending order, or `None` if any two meet.
    ///
    /// Quorums are taken 64 at a time. Each node has a word whose bits say in which of the 64 it
    /// is. The words of a quorum's members, joined, say which of the 64 the quorum meets.
    pub(super) fn disjoint(&self) -> Option<(NodeId, NodeId)> {
        if 2 * self.smallest() > self.size() {
            return None; // Two sets of more than half the nodes each always meet.
        }
        let all: Vec<_> = self.all().collect();
        let mut words = alloc::vec![0u64; self.size() as usize];
        for start in (0..all.len()).step_by(64) {
            let later = &all[start..];
            let batch = &later[..later.len().min(64)];
            words.fill(0);
            for (bit, (_, set)) in batch.iter().enumerate() {
                for member in *set {
                    words[member.index()] |= 1 << bit;
                }
            }
            let everyone = u64::MAX >> (64 - batch.len());
            for (owner, set) in later {
                let missed = everyone & !meets(set, &words, everyone);
                if missed != 0 {
                    let other = batch[missed.trailing_zeros() as usize].0;
                    return Some((other.min(*owner), other.max(*owner)));
                }
            }
        }
        None
    }
}

/// The words of the members of `set`, joined until the result is `everyone`.
fn meets(set: &[NodeId], words: &[u64], everyone: u64) -> u64 {
    let mut met = 0;
    for member in set {
        met |= words[member.index()];
        if met == everyone {
            break;
        }
    }
    met
}
