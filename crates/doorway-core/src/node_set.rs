//! Nodes, sets of nodes, and the timestamps that order their requests.

use core::fmt;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// A node of a group. Numbers run from 0 in memory and are shown from 1, as in the papers.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The number as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The node with this index.
    ///
    /// # Panics
    ///
    /// If the index does not fit into 32 bits.
    pub fn at(index: usize) -> Self {
        Self(u32::try_from(index).expect("a group has fewer than 2^32 nodes"))
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&(u64::from(self.0) + 1), f)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The age of a request: sequence number first, then node. The smaller timestamp is the older
/// request and goes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// The sequence number.
    pub clock: u64,
    /// The node that made the request.
    pub node: NodeId,
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.clock, self.node)
    }
}

/// The limit for sequence numbers. No correct peer sends a number this high: a thousand million
/// requests a second would take more than a century to reach it, and the next view, in which
/// numbers begin again, comes long before. Below the limit, adding one never overflows.
pub const CLOCK_LIMIT: u64 = 1 << 62;

/// The reason for which a number at or above [`CLOCK_LIMIT`] is refused.
pub const BEYOND_LIMIT: &str = "a sequence number that no correct node reaches";

/// A set of nodes, stored as bits. There are no trailing zero words, so equal sets are equal
/// values.
///
/// A set of the first 128 nodes needs no memory on the heap. Testing for emptiness takes constant
/// time.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct NodeSet {
    words: SmallVec<[u64; 2]>,
}

impl NodeSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// The set of all nodes of a group of `size`.
    pub fn full(size: u32) -> Self {
        let size = size as usize;
        let mut words: SmallVec<[u64; 2]> = smallvec::smallvec![u64::MAX; size / 64];
        if !size.is_multiple_of(64) {
            words.push(u64::MAX >> (64 - size % 64));
        }
        Self { words }
    }

    /// Add a node. Returns whether it was new.
    pub fn insert(&mut self, node: NodeId) -> bool {
        let (word, bit) = place(node);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let added = self.words[word] & bit == 0;
        self.words[word] |= bit;
        added
    }

    /// Remove a node. Returns whether it was there.
    pub fn remove(&mut self, node: NodeId) -> bool {
        let (word, bit) = place(node);
        let Some(bits) = self.words.get_mut(word).filter(|bits| **bits & bit != 0) else {
            return false;
        };
        *bits &= !bit;
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
        true
    }

    /// Whether the node is in the set.
    pub fn contains(&self, node: NodeId) -> bool {
        let (word, bit) = place(node);
        self.words.get(word).is_some_and(|bits| bits & bit != 0)
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The number of nodes in the set.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The nodes that are also in `other`, and those that are not.
    #[must_use]
    pub fn split(&self, other: &Self) -> (Self, Self) {
        let (mut both, mut rest) = (Self::new(), Self::new());
        for node in self.iter() {
            if other.contains(node) {
                both.insert(node)
            } else {
                rest.insert(node)
            };
        }
        (both, rest)
    }

    /// Remove all nodes.
    pub fn clear(&mut self) {
        self.words.clear();
    }

    /// The nodes, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.words.iter().zip(0u32..).flat_map(|(&word, at)| {
            let mut rest = word;
            core::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros();
                    rest &= rest - 1;
                    NodeId(at * 64 + bit)
                })
            })
        })
    }
}

fn place(node: NodeId) -> (usize, u64) {
    (node.index() / 64, 1 << (node.0 % 64))
}

impl FromIterator<NodeId> for NodeSet {
    fn from_iter<I: IntoIterator<Item = NodeId>>(nodes: I) -> Self {
        let mut set = Self::new();
        for node in nodes {
            set.insert(node);
        }
        set
    }
}

impl fmt::Debug for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn equal_sets_are_equal_values_whatever_their_history() {
        let mut set = NodeSet::new();
        assert!(set.insert(NodeId(3)));
        assert!(!set.insert(NodeId(3)));
        assert!(set.insert(NodeId(700)));
        assert!(set.remove(NodeId(700)));
        assert!(!set.remove(NodeId(700)));
        assert_eq!(set, [NodeId(3)].into_iter().collect());
        assert!(set.remove(NodeId(3)) && set.is_empty());
        assert_eq!(set, NodeSet::new());
    }

    #[test]
    fn full_sets_hold_exactly_the_group() {
        for size in [1, 63, 64, 65, 128, 129, 1000] {
            let full = NodeSet::full(size);
            assert_eq!(full.len(), size as usize);
            assert_eq!(full.iter().collect::<Vec<_>>(), (0..size).map(NodeId).collect::<Vec<_>>());
            assert_eq!(full, (0..size).map(NodeId).collect());
        }
    }

    #[test]
    fn a_set_is_split_by_another() {
        let set = |nodes: &[u32]| nodes.iter().map(|node| NodeId(*node)).collect::<NodeSet>();
        let split = set(&[1, 3, 70]).split(&set(&[0, 3]));
        assert_eq!(split, (set(&[3]), set(&[1, 70])));
    }

    #[test]
    fn nodes_are_shown_from_one() {
        assert_eq!(alloc::format!("{:?}", NodeSet::full(3)), "{1, 2, 3}");
        assert_eq!(alloc::format!("{:?}", Timestamp { clock: 4, node: NodeId(6) }), "4.7");
    }
}
