//! The group: its nodes, and the topology that its algorithm needs. All nodes share it; it is not
//! part of a node's state.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::quorums::{self, Quorums};
use crate::tree::{Tree, TreeShape};
use crate::{Graph, NodeId, NodeSet};

/// The largest number of nodes in a group: enough for any simulation, and small enough that
/// products of sizes do not overflow.
pub const MAX_NODES: usize = 16_777_216;

/// The largest number of permits, for the same reasons.
const MAX_PERMITS: u32 = 1 << 24;

/// Why a group cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupError(String);

impl GroupError {
    /// An error with this reason, which is shown to the user as it is.
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

/// The links along which messages travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Wiring {
    /// Every node reaches every other.
    #[default]
    Mesh,
    /// Each node reaches its successor.
    Ring,
    /// Each node reaches its neighbours in the tree.
    Tree,
}

/// The choices a user has about a group. What is left out takes the algorithm's default.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// The number of clients that may be inside at once.
    pub permits: Option<u32>,
    /// The number of permits that one node may hold.
    pub seats: Option<u32>,
    /// How the quorums are made.
    pub quorums: Option<quorums::Plan>,
    /// The weight of each node's vote.
    pub weights: Option<Vec<u32>>,
    /// The tree.
    pub tree: Option<TreeShape>,
    /// The links along which messages travel.
    pub wiring: Option<Wiring>,
    /// The graph over which a wave builds a tree.
    pub graph: Option<Graph>,
    /// The nodes that start the wave.
    pub initiators: Option<NodeSet>,
}

/// The nodes of a group and their topology.
#[derive(Clone, Debug)]
pub struct Group {
    size: u32,
    permits: u32,
    seats: u32,
    coordinator: NodeId,
    wiring: Wiring,
    quorums: Option<Quorums>,
    weights: Vec<u32>,
    tree: Option<Tree>,
    graph: Option<Graph>,
    initiators: NodeSet,
}

impl Group {
    /// A group of `size` nodes in which every node reaches every other.
    pub fn new(size: usize) -> Result<Self, GroupError> {
        if size == 0 || size > MAX_NODES {
            let reason = format!("a group has 1 to {MAX_NODES} nodes, not {size}");
            return Err(GroupError::new(reason));
        }
        Ok(Self {
            size: size as u32,
            permits: 1,
            seats: 1,
            coordinator: NodeId(0),
            wiring: Wiring::Mesh,
            quorums: None,
            weights: Vec::new(),
            tree: None,
            graph: None,
            initiators: NodeSet::new(),
        })
    }

    /// Allow `permits` clients inside at once, and at most `seats` of them at one node.
    pub fn with_permits(mut self, permits: u32, seats: u32) -> Result<Self, GroupError> {
        if permits == 0 || permits > MAX_PERMITS {
            let reason = format!("a group has 1 to {MAX_PERMITS} permits, not {permits}");
            return Err(GroupError::new(reason));
        }
        if seats == 0 {
            return Err(GroupError::new("a node has at least one seat, not 0"));
        }
        if seats > permits {
            let reason = format!(
                "{seats} seats per node are more than the {permits} permits of the group; \
                 choose at most {permits}"
            );
            return Err(GroupError::new(reason));
        }
        if u64::from(seats) * u64::from(self.size) < u64::from(permits) {
            let reason = format!(
                "{} nodes with {seats} seats each cannot hold {permits} permits; choose more seats \
                 or fewer permits",
                self.size
            );
            return Err(GroupError::new(reason));
        }
        (self.permits, self.seats) = (permits, seats);
        Ok(self)
    }

    /// Let this node decide, where one node decides.
    pub fn with_coordinator(mut self, node: NodeId) -> Result<Self, GroupError> {
        if !self.contains(node) {
            let reason =
                format!("the coordinator is node {node}, but there are {} nodes", self.size);
            return Err(GroupError::new(reason));
        }
        self.coordinator = node;
        Ok(self)
    }

    /// Give each node its quorum.
    pub fn with_quorums(mut self, quorums: Quorums) -> Result<Self, GroupError> {
        if quorums.size() != self.size {
            let reason = format!(
                "the quorums are for {} nodes, but the group has {}",
                quorums.size(),
                self.size
            );
            return Err(GroupError::new(reason));
        }
        self.quorums = Some(quorums);
        Ok(self)
    }

    /// Give each node's vote a weight.
    pub fn with_weights(mut self, weights: Vec<u32>) -> Result<Self, GroupError> {
        if weights.len() != self.size as usize {
            let reason = format!(
                "there are {} weights for {} nodes; give one for each node",
                weights.len(),
                self.size
            );
            return Err(GroupError::new(reason));
        }
        if weights.iter().all(|weight| *weight == 0) {
            return Err(GroupError::new("all weights are zero; at least one must be positive"));
        }
        self.weights = weights;
        Ok(self)
    }

    /// Arrange the nodes in a tree.
    pub fn with_tree(mut self, tree: Tree) -> Result<Self, GroupError> {
        if tree.size() != self.size as usize {
            let reason =
                format!("the tree has {} nodes, but the group has {}", tree.size(), self.size);
            return Err(GroupError::new(reason));
        }
        self.tree = Some(tree);
        Ok(self)
    }

    /// Choose the links along which messages travel.
    pub fn with_wiring(mut self, wiring: Wiring) -> Self {
        self.wiring = wiring;
        self
    }

    /// Provide a graph for a wave, and the nodes that start the wave.
    pub fn with_graph(mut self, graph: Graph, initiators: NodeSet) -> Result<Self, GroupError> {
        if graph.size() != self.size as usize {
            let reason =
                format!("the graph has {} nodes, but the group has {}", graph.size(), self.size);
            return Err(GroupError::new(reason));
        }
        if initiators.is_empty() || initiators.iter().any(|node| !self.contains(node)) {
            let reason = "the initiators of a wave must be one or more nodes of the group";
            return Err(GroupError::new(reason));
        }
        (self.graph, self.initiators) = (Some(graph), initiators);
        Ok(self)
    }

    /// The number of nodes (N).
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Whether `node` is a node of the group.
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

    /// All nodes but one, beginning with the successor of `me` and going round the ring: the order
    /// in which a scan is fair.
    pub fn others_from(&self, me: NodeId) -> impl Iterator<Item = NodeId> + use<> {
        (me.0 + 1..self.size).chain(0..me.0).map(NodeId)
    }

    /// The next node on the ring.
    pub fn successor(&self, node: NodeId) -> NodeId {
        NodeId((node.0 + 1) % self.size)
    }

    /// Whether there is a link from one node to another.
    pub fn wired(&self, from: NodeId, to: NodeId) -> bool {
        match self.wiring {
            Wiring::Mesh => from != to,
            Wiring::Ring => self.successor(from) == to,
            Wiring::Tree => {
                self.tree().parent(from) == Some(to) || self.tree().parent(to) == Some(from)
            }
        }
    }

    /// The number of permits: how many clients may be inside at once (K of Raymond's algorithm).
    pub fn permits(&self) -> u32 {
        self.permits
    }

    /// The number of permits that one node may hold.
    pub fn seats(&self) -> u32 {
        self.seats
    }

    /// The node that decides, where one node decides: node 1 unless another one was chosen.
    pub fn coordinator(&self) -> NodeId {
        self.coordinator
    }

    /// The links along which messages travel.
    pub fn wiring(&self) -> Wiring {
        self.wiring
    }

    /// The quorum of a node (S of Maekawa's paper) for its `turn`-th request, in ascending order.
    /// Constructions that balance the load by alternation have several quorums for each node.
    ///
    /// # Panics
    ///
    /// If the group has no quorums. [`crate::Info::group`] provides them to every algorithm that
    /// declares the need.
    pub fn quorum(&self, node: NodeId, turn: u32) -> &[NodeId] {
        let quorums = self.quorums.as_ref();
        quorums.expect("the group of an algorithm that needs quorums has them").quorum(node, turn)
    }

    /// The number of quorums that each node has; its requests use them in turn.
    pub fn turns(&self) -> u32 {
        self.quorums.as_ref().map_or(1, Quorums::turns)
    }

    /// All quorums, or `None` if the group has none.
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
    /// If the group has no tree. [`crate::Info::group`] provides one to every algorithm that
    /// declares the need.
    pub fn tree(&self) -> &Tree {
        self.tree.as_ref().expect("the group of an algorithm that needs a tree has one")
    }

    /// The graph over which a wave builds a tree.
    ///
    /// # Panics
    ///
    /// If the group has no graph. [`crate::Info::group`] provides one to every algorithm that
    /// declares the need.
    pub fn graph(&self) -> &Graph {
        self.graph.as_ref().expect("the group of an algorithm that needs a graph has one")
    }

    /// The nodes that start the wave.
    pub fn initiators(&self) -> &NodeSet {
        &self.initiators
    }
}
