//! The group: who is in it, and what its algorithm's topology needs. Shared by all nodes, part of
//! no node's state.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::quorums::{self, Quorums};
use crate::tree::{Tree, TreeShape};
use crate::{Graph, NodeId, NodeSet};

/// The largest group: enough for any simulation, small enough that sizes multiply safely.
pub const MAX_NODES: usize = 16_777_216;

/// The most permits, for the same reasons.
const MAX_PERMITS: u32 = 1 << 24;

/// Why a group cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupError(String);

impl GroupError {
    /// An error that says `reason`, in words for the person who asked.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for GroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for GroupError {}

/// The wires along which messages travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wiring {
    /// Everyone reaches everyone.
    #[default]
    Mesh,
    /// Each node reaches its successor.
    Ring,
    /// Each node reaches its neighbours in the tree.
    Tree,
}

/// What a person may choose about a group; what is left out takes the algorithm's default.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// How many may be inside at once.
    pub permits: Option<u32>,
    /// How many permits one node may hold.
    pub seats: Option<u32>,
    /// The quorum construction.
    pub quorums: Option<quorums::Kind>,
    /// The weight of each node's vote.
    pub weights: Option<Vec<u32>>,
    /// The tree.
    pub tree: Option<TreeShape>,
    /// The wires.
    pub wiring: Option<Wiring>,
    /// The graph for a wave.
    pub graph: Option<Graph>,
    /// Who starts the wave.
    pub initiators: Option<NodeSet>,
}

/// The members and their arrangement.
#[derive(Clone, Debug)]
pub struct Group {
    size: u32,
    permits: u32,
    seats: u32,
    wiring: Wiring,
    quorums: Option<Quorums>,
    weights: Vec<u32>,
    tree: Option<Tree>,
    graph: Option<Graph>,
    initiators: NodeSet,
}

impl Group {
    /// A group of `size` nodes in which everyone reaches everyone.
    pub fn new(size: usize) -> Result<Self, GroupError> {
        if size == 0 || size > MAX_NODES {
            let reason = format!("a group has 1 to {MAX_NODES} nodes, not {size}");
            return Err(GroupError::new(reason));
        }
        Ok(Self {
            size: size as u32,
            permits: 1,
            seats: 1,
            wiring: Wiring::Mesh,
            quorums: None,
            weights: Vec::new(),
            tree: None,
            graph: None,
            initiators: NodeSet::new(),
        })
    }

    /// Let `permits` clients in at once, at most `seats` of one node.
    pub fn with_permits(mut self, permits: u32, seats: u32) -> Result<Self, GroupError> {
        if permits == 0 || permits > MAX_PERMITS {
            let reason = format!("a group has 1 to {MAX_PERMITS} permits, not {permits}");
            return Err(GroupError::new(reason));
        }
        if seats == 0 {
            return Err(GroupError::new("a node has at least one seat, not 0"));
        }
        if seats > permits {
            let reason = format!("{seats} seats a node make no sense with {permits} permits");
            return Err(GroupError::new(reason));
        }
        if u64::from(seats) * u64::from(self.size) < u64::from(permits) {
            let reason = format!(
                "{} nodes with {seats} seats each cannot hold {permits} permits",
                self.size
            );
            return Err(GroupError::new(reason));
        }
        (self.permits, self.seats) = (permits, seats);
        Ok(self)
    }

    /// Give each node its quorum.
    pub fn with_quorums(mut self, quorums: Quorums) -> Result<Self, GroupError> {
        if quorums.size() != self.size {
            let reason = format!("quorums for {} nodes, not {}", quorums.size(), self.size);
            return Err(GroupError::new(reason));
        }
        self.quorums = Some(quorums);
        Ok(self)
    }

    /// Give each node's vote its weight.
    pub fn with_weights(mut self, weights: Vec<u32>) -> Result<Self, GroupError> {
        if weights.len() != self.size as usize {
            let reason = format!("{} weights for {} nodes", weights.len(), self.size);
            return Err(GroupError::new(reason));
        }
        if weights.iter().all(|weight| *weight == 0) {
            return Err(GroupError::new("at least one weight must not be zero"));
        }
        self.weights = weights;
        Ok(self)
    }

    /// Span the group by a tree.
    pub fn with_tree(mut self, tree: Tree) -> Result<Self, GroupError> {
        if tree.size() != self.size as usize {
            let reason = format!("a tree of {} nodes for {}", tree.size(), self.size);
            return Err(GroupError::new(reason));
        }
        self.tree = Some(tree);
        Ok(self)
    }

    /// Let messages travel along these wires.
    pub fn with_wiring(mut self, wiring: Wiring) -> Self {
        self.wiring = wiring;
        self
    }

    /// Let a wave run over `graph`, started by `initiators`.
    pub fn with_graph(mut self, graph: Graph, initiators: NodeSet) -> Result<Self, GroupError> {
        if graph.size() != self.size as usize {
            let reason = format!("a graph of {} nodes for {}", graph.size(), self.size);
            return Err(GroupError::new(reason));
        }
        if initiators.is_empty() || initiators.iter().any(|node| !self.contains(node)) {
            let reason = "a wave is started by one or more nodes of the group";
            return Err(GroupError::new(reason));
        }
        (self.graph, self.initiators) = (Some(graph), initiators);
        Ok(self)
    }

    /// How many nodes there are (N).
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Is this a node of the group?
    pub fn contains(&self, node: NodeId) -> bool {
        node.0 < self.size
    }

    /// All nodes, in order.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.size).map(NodeId)
    }

    /// All nodes but one, in order.
    pub fn others(&self, me: NodeId) -> impl Iterator<Item = NodeId> + use<> {
        self.nodes().filter(move |node| *node != me)
    }

    /// The others, beginning with the successor of `me` and going round: the fair order to scan.
    pub fn others_from(&self, me: NodeId) -> impl Iterator<Item = NodeId> + use<> {
        (me.0 + 1..self.size).chain(0..me.0).map(NodeId)
    }

    /// The next node on the ring.
    pub fn successor(&self, node: NodeId) -> NodeId {
        NodeId((node.0 + 1) % self.size)
    }

    /// Is there a wire from one node to another?
    pub fn wired(&self, from: NodeId, to: NodeId) -> bool {
        match self.wiring {
            Wiring::Mesh => from != to,
            Wiring::Ring => self.successor(from) == to,
            Wiring::Tree => {
                self.tree().parent(from) == Some(to) || self.tree().parent(to) == Some(from)
            }
        }
    }

    /// How many may be inside at once (K of Raymond's algorithm).
    pub fn permits(&self) -> u32 {
        self.permits
    }

    /// How many permits one node may hold.
    pub fn seats(&self) -> u32 {
        self.seats
    }

    /// The wires.
    pub fn wiring(&self) -> Wiring {
        self.wiring
    }

    /// The quorum of a node (S of Maekawa's paper), ascending, for its `turn`-th request: those
    /// constructions that balance load by alternation have several.
    ///
    /// # Panics
    ///
    /// If there is none, like [`Group::tree`].
    pub fn quorum(&self, node: NodeId, turn: u32) -> &[NodeId] {
        let quorums = self.quorums.as_ref();
        quorums.expect("the group of an algorithm that needs quorums has them").quorum(node, turn)
    }

    /// How many quorums each node has, which its requests use in turn.
    pub fn turns(&self) -> u32 {
        self.quorums.as_ref().map_or(1, Quorums::turns)
    }

    /// All quorums, if the group has any.
    pub fn quorums(&self) -> Option<&Quorums> {
        self.quorums.as_ref()
    }

    /// The weight of a node's vote: 1 unless weights were given.
    pub fn weight(&self, node: NodeId) -> u32 {
        self.weights.get(node.index()).copied().unwrap_or(1)
    }

    /// The sum of all weights.
    pub fn total_weight(&self) -> u64 {
        self.nodes().map(|node| u64::from(self.weight(node))).sum()
    }

    /// The tree that spans the group.
    ///
    /// # Panics
    ///
    /// If there is none: [`crate::Info::group`] gives one to every algorithm that declares a need.
    pub fn tree(&self) -> &Tree {
        self.tree.as_ref().expect("the group of an algorithm that needs a tree has one")
    }

    /// The graph for a wave.
    ///
    /// # Panics
    ///
    /// If there is none, like [`Group::tree`].
    pub fn graph(&self) -> &Graph {
        self.graph.as_ref().expect("the group of an algorithm that needs a graph has one")
    }

    /// Who starts the wave.
    pub fn initiators(&self) -> &NodeSet {
        &self.initiators
    }
}
