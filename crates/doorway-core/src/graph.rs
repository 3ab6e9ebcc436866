//! Undirected connected graphs, over which a wave can build a tree.

use alloc::format;
use alloc::vec::Vec;

use crate::tree::Tree;
use crate::{GroupError, NodeId};

/// The most nodes of a mesh.
const LARGEST_MESH: usize = 5000;

/// An undirected, connected graph without loops or double edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    neighbours: Vec<Vec<NodeId>>,
}

impl Graph {
    /// The graph of `size` nodes with these edges.
    pub fn new(
        size: usize,
        edges: impl IntoIterator<Item = (NodeId, NodeId)>,
    ) -> Result<Self, GroupError> {
        let mut neighbours = alloc::vec![Vec::new(); size];
        for (one, other) in edges {
            if one == other || one.index() >= size || other.index() >= size {
                return Err(GroupError::new(format!(
                    "an edge from {one} to {other} does not join two different nodes of 1 to {size}"
                )));
            }
            neighbours[one.index()].push(other);
            neighbours[other.index()].push(one);
        }
        for list in &mut neighbours {
            list.sort_unstable();
            list.dedup();
        }
        let graph = Self { neighbours };
        if graph.reached() < size {
            return Err(GroupError::new(
                "the graph is not connected; add edges until every node can be reached",
            ));
        }
        Ok(graph)
    }

    /// A ring: each node is joined to the next, and the last to the first.
    pub fn ring(size: usize) -> Self {
        let edges = (0..size).map(|i| (NodeId::at(i), NodeId::at((i + 1) % size)));
        Self::new(size, edges.filter(|(one, other)| one != other)).expect("a ring is connected")
    }

    /// A mesh: every node is joined to every other. It has N(N-1)/2 edges, all of them in memory.
    pub fn mesh(size: usize) -> Result<Self, GroupError> {
        if size > LARGEST_MESH {
            let reason = format!("a mesh has at most {LARGEST_MESH} nodes, not {size}");
            return Err(GroupError::new(reason));
        }
        let edges = (0..size).flat_map(|i| (0..i).map(move |j| (NodeId::at(i), NodeId::at(j))));
        Self::new(size, edges)
    }

    /// The edges of a tree.
    pub fn of_tree(tree: &Tree) -> Self {
        let edge = |node| tree.parent(node).map(|parent| (node, parent));
        let edges = (0..tree.size()).map(NodeId::at).filter_map(edge);
        Self::new(tree.size(), edges).expect("a tree is connected")
    }

    /// The number of nodes that can be reached from the first one.
    fn reached(&self) -> usize {
        let mut seen = alloc::vec![false; self.size()];
        let mut open: Vec<usize> = (0..self.size().min(1)).collect();
        let mut count = 0;
        while let Some(node) = open.pop() {
            if !core::mem::replace(&mut seen[node], true) {
                count += 1;
                open.extend(self.neighbours[node].iter().map(|next| next.index()));
            }
        }
        count
    }

    /// The number of nodes.
    pub fn size(&self) -> usize {
        self.neighbours.len()
    }

    /// The number of edges.
    pub fn edges(&self) -> usize {
        self.neighbours.iter().map(Vec::len).sum::<usize>() / 2
    }

    /// The neighbours of a node, in ascending order.
    pub fn neighbours(&self, node: NodeId) -> &[NodeId] {
        &self.neighbours[node.index()]
    }
}
