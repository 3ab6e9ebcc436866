//! The four properties that Maekawa asks of quorums, verified.

use alloc::vec::Vec;

use super::Quorums;
use crate::NodeId;

/// Which of the properties (a) to (d) of Maekawa's section 2 hold, with sizes and loads.
#[expect(clippy::struct_excessive_bools, reason = "the paper has four properties")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Properties {
    /// (a) Any two quorums meet, in whichever turns: what exclusion rests on.
    pub a: bool,
    /// (b) Every node is in its own quorum, which saves it messages.
    pub b: bool,
    /// (c) All quorums are of one size (K of the paper).
    pub c: bool,
    /// (d) All nodes are in equally many quorums (D of the paper).
    pub d: bool,
    /// The size of the smallest quorum.
    pub size_min: u32,
    /// The size of the largest quorum.
    pub size_max: u32,
    /// The mean size.
    pub size_mean: f64,
    /// In how many quorums, of all turns together, the least asked node is.
    pub load_min: u32,
    /// In how many quorums, of all turns together, the most asked node is.
    pub load_max: u32,
}

impl Quorums {
    /// Verify (a) to (d) on the sets themselves, however they were made.
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

    /// The owners of two quorums that do not meet, in order.
    ///
    /// Sixty-four quorums at a time are written as the bits of one word for each node; the words
    /// of a quorum's members then say together which of the sixty-four it meets.
    pub(super) fn disjoint(&self) -> Option<(NodeId, NodeId)> {
        if 2 * self.smallest() > self.size() {
            return None; // Two sets of more than half the nodes each.
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

/// The words of all members joined, as far as needed to reach `everyone`.
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
