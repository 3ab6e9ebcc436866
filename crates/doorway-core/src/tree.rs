//! Spanning trees: balanced, chains and stars.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use crate::{GroupError, NodeId};

/// The shape of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TreeShape {
    /// Every inner node has this many children; levels are filled one after the other.
    Balanced(u32),
    /// Each node has one child.
    Chain,
    /// All nodes are children of node 1.
    Star,
}

impl fmt::Display for TreeShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Balanced(k) => write!(f, "balanced:{k}"),
            Self::Chain => f.write_str("chain"),
            Self::Star => f.write_str("star"),
        }
    }
}

impl FromStr for TreeShape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let arity = |k: &str| k.parse().ok().filter(|k| *k > 0);
        match text.split_once(':') {
            None if text == "chain" => Some(Self::Chain),
            None if text == "star" => Some(Self::Star),
            None if text == "balanced" => Some(Self::Balanced(2)),
            Some(("balanced", k)) => arity(k).map(Self::Balanced),
            _ => None,
        }
        .ok_or_else(|| {
            format!(
                "'{text}' is not the shape of a tree; write chain, star, or balanced:K, \
                 such as balanced:2"
            )
        })
    }
}

/// A rooted tree over nodes `0..size`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The parent of each node. The root is its own parent.
    parents: Vec<NodeId>,
    /// Depth-first numbers. A node is below `top`, or `top` itself, if its entry lies between the
    /// entry and the exit of `top`.
    entry: Vec<u32>,
    exit: Vec<u32>,
    /// The children of all nodes in one list. Those of node i are at `first[i]..first[i + 1]`.
    children: Vec<NodeId>,
    first: Vec<u32>,
}

impl Tree {
    /// A tree of the given shape with node 1 as its root.
    pub fn new(shape: TreeShape, size: usize) -> Result<Self, GroupError> {
        if shape == TreeShape::Balanced(0) {
            return Err(GroupError::new(
                "a balanced tree needs at least one child for each inner node, not 0",
            ));
        }
        let parent = |node: usize| match shape {
            TreeShape::Balanced(k) => node.saturating_sub(1) / k as usize,
            TreeShape::Chain => node.saturating_sub(1),
            TreeShape::Star => 0,
        };
        Self::from_parents((0..size).map(|node| NodeId::at(parent(node))).collect())
    }

    /// The tree in which `parents[i]` is the parent of node `i`. The root is its own parent.
    pub fn from_parents(parents: Vec<NodeId>) -> Result<Self, GroupError> {
        let size = parents.len();
        let roots = parents.iter().enumerate().filter(|(i, p)| p.index() == *i).count();
        if roots != 1 || parents.iter().any(|parent| parent.index() >= size) {
            return Err(GroupError::new(
                "the parents do not form a tree: it needs one root, and each parent must exist",
            ));
        }
        let mut first = alloc::vec![0u32; size + 2];
        for (node, parent) in parents.iter().enumerate() {
            first[parent.index() + 2] += u32::from(parent.index() != node);
        }
        for at in 2..first.len() {
            first[at] += first[at - 1];
        }
        let mut children = alloc::vec![NodeId(0); size - 1];
        for (node, parent) in parents.iter().enumerate().filter(|(i, p)| p.index() != *i) {
            let at = &mut first[parent.index() + 1];
            children[*at as usize] = NodeId::at(node);
            *at += 1;
        }
        first.pop();
        let mut tree = Self {
            parents,
            entry: alloc::vec![0; size],
            exit: alloc::vec![0; size],
            children,
            first,
        };
        if tree.number_nodes() != size {
            return Err(GroupError::new(
                "the parents do not form a tree: some of them form a cycle",
            ));
        }
        Ok(tree)
    }

    /// Compute the depth-first numbers. Returns the number of nodes that the root reaches.
    fn number_nodes(&mut self) -> usize {
        let root = self.root();
        let mut clock = 0;
        let mut path = alloc::vec![(root, 0)];
        while let Some((node, done)) = path.last_mut() {
            let node = *node;
            if *done == 0 {
                self.entry[node.index()] = clock;
                clock += 1;
            }
            if let Some(child) = self.children(node).get(*done).copied() {
                *done += 1;
                path.push((child, 0));
            } else {
                self.exit[node.index()] = clock;
                path.pop();
            }
        }
        clock as usize
    }

    /// The number of nodes.
    pub fn size(&self) -> usize {
        self.parents.len()
    }

    /// The root of the tree: the only node without a parent.
    pub fn root(&self) -> NodeId {
        let root = self.parents.iter().enumerate().find(|(i, parent)| parent.index() == *i);
        root.map_or(NodeId(0), |(i, _)| NodeId::at(i))
    }

    /// The parent of a node, or `None` for the root.
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        Some(self.parents[node.index()]).filter(|parent| *parent != node)
    }

    /// The children of a node, in ascending order.
    pub fn children(&self, node: NodeId) -> &[NodeId] {
        let (from, to) = (self.first[node.index()], self.first[node.index() + 1]);
        &self.children[from as usize..to as usize]
    }

    /// The neighbours of a node: its parent and its children.
    pub fn neighbours(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        self.parent(node).into_iter().chain(self.children(node).iter().copied())
    }

    /// Whether two nodes are joined by an edge.
    pub fn adjacent(&self, one: NodeId, other: NodeId) -> bool {
        one.index() < self.size()
            && other.index() < self.size()
            && (self.parent(one) == Some(other) || self.parent(other) == Some(one))
    }

    /// The neighbour of `from` on the way to `to`. The two must be different nodes.
    pub fn next_hop(&self, from: NodeId, to: NodeId) -> NodeId {
        let target = self.entry[to.index()];
        let below =
            |top: NodeId| self.entry[top.index()] <= target && target < self.exit[top.index()];
        if !below(from) {
            return self.parents[from.index()];
        }
        let children = self.children(from);
        let at = children.partition_point(|child| self.entry[child.index()] <= target);
        children[at - 1]
    }

    /// The number of edges between two nodes.
    pub fn distance(&self, from: NodeId, to: NodeId) -> u32 {
        let mut at = from;
        let mut edges = 0;
        while at != to {
            at = self.next_hop(at, to);
            edges += 1;
        }
        edges
    }

    /// The mean distance of two nodes drawn independently (they may be the same).
    pub fn mean_distance(&self) -> f64 {
        // The edge above a node lies between every node below it and every other node.
        let size = self.size() as f64;
        let crossing = |node: usize| {
            let below = f64::from(self.exit[node] - self.entry[node]);
            2.0 * below * (size - below)
        };
        (0..self.size()).map(crossing).sum::<f64>() / (size * size)
    }

    /// The largest distance of two nodes.
    pub fn diameter(&self) -> u32 {
        let mut height = alloc::vec![0u32; self.size()];
        let mut best = 0;
        let mut order: Vec<usize> = (0..self.size()).collect();
        order.sort_unstable_by_key(|node| core::cmp::Reverse(self.entry[*node]));
        for node in order {
            if let Some(parent) = self.parent(NodeId::at(node)) {
                let reach = height[node] + 1;
                best = best.max(height[parent.index()] + reach);
                height[parent.index()] = height[parent.index()].max(reach);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops_follow_the_edges() {
        let tree = Tree::new(TreeShape::Balanced(2), 15).unwrap();
        assert_eq!(tree.distance(NodeId(7), NodeId(14)), 6);
        assert_eq!(tree.next_hop(NodeId(0), NodeId(14)), NodeId(2));
        assert_eq!(tree.next_hop(NodeId(7), NodeId(8)), NodeId(3));
        assert_eq!(tree.diameter(), 6);
        assert_eq!(Tree::new(TreeShape::Chain, 15).unwrap().diameter(), 14);
        assert_eq!(Tree::new(TreeShape::Star, 15).unwrap().diameter(), 2);
    }

    #[test]
    fn mean_distance_counts_every_pair() {
        for shape in
            [TreeShape::Balanced(2), TreeShape::Balanced(3), TreeShape::Chain, TreeShape::Star]
        {
            let tree = Tree::new(shape, 10).unwrap();
            let nodes = || (0..10).map(NodeId);
            let sum: u32 = nodes()
                .flat_map(|a| nodes().map(move |b| (a, b)))
                .map(|(a, b)| tree.distance(a, b))
                .sum();
            assert!((tree.mean_distance() - f64::from(sum) / 100.0).abs() < 1e-12);
        }
    }

    #[test]
    fn parents_that_form_no_tree_are_refused() {
        let parents = |list: &[u32]| Tree::from_parents(list.iter().map(|p| NodeId(*p)).collect());
        assert!(parents(&[0, 0, 1]).is_ok());
        assert!(parents(&[0, 2, 1]).is_err(), "a cycle beside the root");
        assert!(parents(&[0, 1]).is_err(), "two roots");
        assert!(parents(&[1, 0]).is_err(), "no root");
        assert!(parents(&[0, 9]).is_err(), "a parent that does not exist");
        assert!(Tree::new(TreeShape::Balanced(0), 3).is_err(), "inner nodes without children");
    }
}
