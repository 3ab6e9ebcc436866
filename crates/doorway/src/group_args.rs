//! The arguments that describe a group of nodes.

use std::collections::BTreeMap;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use doorway_core::algorithms::Entry;
use doorway_core::tree::{Tree, TreeShape};
use doorway_core::{
    Graph, Group, GroupError, Info, Kind, MAX_NODES, Needs, NodeId, NodeSet, Shape, Wiring, quorums,
};
use doorway_lab::AnyAlgorithm;
use serde::Serialize;

use crate::failure::Usage;
use crate::names;
use crate::numbers::whole;

/// The parts of a group that can be chosen, where the algorithm has a use for them.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Group")]
pub(crate) struct ShapeArgs {
    /// Allow up to K holders at once, for algorithms with permits
    #[arg(long, value_name = "K", value_parser = whole(0..=u32::MAX))]
    permits: Option<u32>,
    /// Allow one node to hold up to S permits [default: just enough that all can be held]
    #[arg(long, value_name = "S", requires = "permits", value_parser = whole(0..=u32::MAX))]
    seats: Option<u32>,
    /// Choose the quorum construction, or give the quorum of every node, as in '1,2,3;2,3;3'
    /// [default: the construction with the smallest quorums for N]
    #[arg(long, value_name = "KIND|SETS", value_parser = names::quorum_plans())]
    quorums: Option<quorums::Plan>,
    /// Set the weight of each node's vote, as in 2,1,1
    #[arg(long, value_name = "WEIGHTS", value_delimiter = ',', value_parser = whole(0..=u32::MAX))]
    #[arg(allow_hyphen_values = true)]
    weights: Option<Vec<u32>>,
    /// Choose the spanning tree: balanced:K, chain or star [default: balanced:2]
    #[arg(long, value_name = "SHAPE")]
    tree: Option<TreeShape>,
    /// Choose the links along which messages travel [default: mesh]
    #[arg(long, value_name = "WIRES")]
    topology: Option<Topology>,
    /// Choose the graph for a wave: ring, mesh, chain, star, balanced:K, or edges as in 1-2,2-3
    /// [default: ring]
    #[arg(long, value_name = "GRAPH")]
    graph: Option<GraphShape>,
    /// Choose the nodes that start the wave, as in 1,4 [default: 1]
    #[arg(long, value_name = "NODES", value_delimiter = ',', value_parser = parse_node)]
    initiators: Option<Vec<NodeId>>,
}

impl ShapeArgs {
    /// The group of `size` nodes that `info` needs, as chosen here.
    pub(crate) fn group(&self, info: &Info, size: usize) -> Result<Group, GroupError> {
        let graph = self.graph.as_ref().map(|graph| graph.build(size)).transpose()?;
        let shape = Shape {
            permits: self.permits,
            seats: self.seats,
            quorums: self.quorums.clone(),
            weights: self.weights.clone(),
            tree: self.tree,
            wiring: self.topology.map(Topology::wiring),
            graph,
            initiators: self.initiators.clone().map(NodeSet::from_iter),
        };
        info.group(size, &shape)
    }

    /// Whether nothing was chosen.
    pub(crate) fn is_default(&self) -> bool {
        let Self { permits, seats, quorums, weights, tree, topology, graph, initiators } = self;
        permits.is_none()
            && seats.is_none()
            && quorums.is_none()
            && weights.is_none()
            && tree.is_none()
            && topology.is_none()
            && graph.is_none()
            && initiators.is_none()
    }

    /// The number of nodes: as given, or as many as there are quorums by hand, or else `default`.
    pub(crate) fn size(&self, given: Option<usize>, default: usize) -> usize {
        given.or_else(|| self.quorums_by_hand()).unwrap_or(default)
    }

    /// The number of quorums that were given by hand, if they were.
    pub(crate) fn quorums_by_hand(&self) -> Option<usize> {
        self.quorums.as_ref().and_then(quorums::Plan::size)
    }

    /// What was chosen, under the names that options of a script's `run` command have.
    fn choices(&self, size: usize) -> Vec<(&'static str, String)> {
        let list = |items: Vec<String>| items.join(",");
        let weights = self.weights.as_ref();
        let weights = weights.map(|all| list(all.iter().map(u32::to_string).collect()));
        let initiators = self.initiators.as_ref();
        let initiators = initiators.map(|all| list(all.iter().map(NodeId::to_string).collect()));
        let topology = self.topology.and_then(|topology| topology.to_possible_value());
        let options = [
            ("permits", self.permits.map(|permits| permits.to_string())),
            ("seats", self.seats.map(|seats| seats.to_string())),
            ("quorums", self.quorums.as_ref().map(ToString::to_string)),
            ("weights", weights),
            ("tree", self.tree.map(|tree| tree.to_string())),
            ("topology", topology.map(|name| name.get_name().to_owned())),
            ("graph", self.graph.as_ref().and_then(|graph| graph.script_option(size))),
            ("initiators", initiators),
        ];
        options.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// What was chosen for a group of nodes, in the words of its readers: people, scripts and programs.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub(crate) struct Arrangement(BTreeMap<&'static str, String>);

impl Arrangement {
    /// What was chosen for a group of `size` nodes.
    pub(crate) fn new(shape: &ShapeArgs, begin: BeginArgs, size: usize) -> Self {
        let one_pass = begin.is_one_pass().then(|| ("begin", ONE_PASS.to_owned()));
        Self(shape.choices(size).into_iter().chain(one_pass).collect())
    }

    /// Whether one pass of `ricart-agrawala` makes the token.
    pub(crate) fn is_one_pass(&self) -> bool {
        self.0.contains_key("begin")
    }

    /// The choices as options of a script's `run` command, each after a blank.
    pub(crate) fn script_options(&self) -> String {
        let option = |(name, value): (&&str, &String)| format!(" {name}={value}");
        self.0.iter().map(option).collect::<Vec<_>>().concat()
    }

    /// The choices as parts of a sentence, each after a comma.
    pub(crate) fn clauses(&self) -> String {
        let clause = |(name, value): (&&str, &String)| match *name {
            "begin" => ", token by one pass".to_owned(),
            name => format!(", {name} {value}"),
        };
        self.0.iter().map(clause).collect::<Vec<_>>().concat()
    }
}

/// The name of the start in which one pass of `ricart-agrawala` makes the token.
const ONE_PASS: &str = "one-pass";

/// How a token algorithm begins.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Group")]
pub(crate) struct BeginArgs {
    /// Choose how a token algorithm comes by its token: node 1 has it (node-1), or one pass of
    /// ricart-agrawala makes it (one-pass). The algorithm raymond-echo is raymond-tree that begins
    /// with an echo wave [default: node-1]
    #[arg(long, value_name = "HOW")]
    pub(crate) begin: Option<TokenOrigin>,
}

/// Where the token comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TokenOrigin {
    #[value(name = "node-1")]
    NodeOne,
    #[value(name = ONE_PASS)]
    OnePass,
}

impl BeginArgs {
    /// The algorithm, which begins as chosen here.
    pub(crate) fn algorithm(self, entry: &Entry) -> Result<AnyAlgorithm, Usage> {
        let name = entry.info.name;
        match (self.begin, entry.info.kind) {
            (None, _) => Ok(AnyAlgorithm::from(entry)),
            (Some(_), Kind::Central | Kind::Permission | Kind::Quorum) => {
                Err(Usage(format!("{name} has no token, so it has no use for --begin")))
            }
            (Some(TokenOrigin::NodeOne), _) if entry.info.needs != Needs::Graph => {
                Ok(AnyAlgorithm::from(entry))
            }
            (Some(_), _) => AnyAlgorithm::by_one_pass(name).ok_or_else(|| {
                Usage(format!("{name} makes its token by a wave; --begin is for the other ones"))
            }),
        }
    }

    /// Whether one pass of `ricart-agrawala` makes the token.
    pub(crate) fn is_one_pass(self) -> bool {
        self.begin == Some(TokenOrigin::OnePass)
    }
}

/// The wirings by name.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Topology {
    Mesh,
    Ring,
    Tree,
}

impl Topology {
    fn wiring(self) -> Wiring {
        match self {
            Self::Mesh => Wiring::Mesh,
            Self::Ring => Wiring::Ring,
            Self::Tree => Wiring::Tree,
        }
    }
}

/// A graph whose size is not known yet.
#[derive(Clone, Debug, PartialEq)]
enum GraphShape {
    Ring,
    Mesh,
    Tree(TreeShape),
    Edges(Vec<(NodeId, NodeId)>),
}

impl GraphShape {
    fn build(&self, size: usize) -> Result<Graph, GroupError> {
        match self {
            Self::Ring => Ok(Graph::ring(size)),
            Self::Mesh => Graph::mesh(size),
            Self::Tree(shape) => Ok(Graph::of_tree(&Tree::new(*shape, size)?)),
            Self::Edges(edges) => Graph::new(size, edges.iter().copied()),
        }
    }

    /// The graph as a script's option. Scripts do not know trees here, so a tree is written as its
    /// edges. A single node has no edges, and so no option.
    fn script_option(&self, size: usize) -> Option<String> {
        let edges = match self {
            Self::Ring => return Some("ring".to_owned()),
            Self::Mesh => return Some("mesh".to_owned()),
            Self::Tree(shape) => tree_edges(*shape, size).ok()?,
            Self::Edges(edges) => edges.clone(),
        };
        let edges: Vec<_> = edges.iter().map(|(one, other)| format!("{one}-{other}")).collect();
        (!edges.is_empty()).then(|| edges.join(","))
    }
}

fn tree_edges(shape: TreeShape, size: usize) -> Result<Vec<(NodeId, NodeId)>, GroupError> {
    let tree = Tree::new(shape, size)?;
    let edge = |node| tree.parent(node).map(|parent| (node, parent));
    Ok((0..size).map(NodeId::at).filter_map(edge).collect())
}

impl FromStr for GraphShape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let tree = || text.parse().ok().map(Self::Tree);
        let edges = || {
            let edge = |pair: &str| {
                let (one, other) = pair.split_once('-')?;
                Some((parse_node(one).ok()?, parse_node(other).ok()?))
            };
            text.split(',').map(edge).collect::<Option<_>>().map(Self::Edges)
        };
        let known = match text {
            "ring" => Some(Self::Ring),
            "mesh" => Some(Self::Mesh),
            _ => tree().or_else(edges),
        };
        known.ok_or_else(|| {
            "say ring, mesh, chain, star, balanced:K, or edges as in 1-2,2-3".to_owned()
        })
    }
}

/// Parse the number of a node; people count them from 1.
pub(crate) fn parse_node(text: &str) -> Result<NodeId, String> {
    let number = text.parse::<usize>().ok().filter(|number| (1..=MAX_NODES).contains(number));
    number.map(|number| NodeId::at(number - 1)).ok_or_else(|| "nodes are numbered from 1".into())
}

/// Parse a list of nodes, as in 1,4.
pub(crate) fn parse_nodes(text: &str) -> Result<Vec<NodeId>, String> {
    text.split(',').map(parse_node).collect()
}

/// Parse a size that a group can have.
pub(crate) fn parse_size(text: &str) -> Result<usize, String> {
    let size = text.parse::<usize>().ok().filter(|size| (1..=MAX_NODES).contains(size));
    size.ok_or_else(|| format!("a group has 1 to {MAX_NODES} nodes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphs_are_read_and_built() {
        for (text, edges) in
            [("ring", 5), ("mesh", 10), ("chain", 4), ("star", 4), ("1-2,2-3,3-4,4-5,5-2", 5)]
        {
            assert_eq!(text.parse::<GraphShape>().unwrap().build(5).unwrap().edges(), edges);
        }
        for text in ["", "round", "1-", "0-1", "1-2,", "balanced:0"] {
            assert!(text.parse::<GraphShape>().is_err(), "{text}");
        }
        let apart = "1-2,3-4".parse::<GraphShape>().unwrap();
        assert!(apart.build(4).is_err(), "not connected");
        assert!(apart.build(3).is_err(), "a stranger");
        assert!(GraphShape::Mesh.build(MAX_NODES).is_err(), "too large");
    }

    #[test]
    fn sizes_and_nodes_have_bounds() {
        assert_eq!(parse_size("7"), Ok(7));
        assert_eq!(parse_node("7"), Ok(NodeId(6)));
        for text in ["0", "-1", "x", "", "16777217", "99999999999999999999999"] {
            assert!(parse_size(text).is_err() && parse_node(text).is_err(), "{text}");
        }
    }
}
