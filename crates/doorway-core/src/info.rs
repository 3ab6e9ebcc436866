//! What an algorithm says of itself, as data: shown by `list`, drawn by `compare`, held by tests.

use alloc::format;

use crate::quorums::{self, Quorums};
use crate::tree::{Tree, TreeShape};
use crate::{Graph, Group, GroupError, NodeId, NodeSet, Shape, Wiring};

/// The family an algorithm belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One node decides.
    Central,
    /// A node asks all others.
    Permission,
    /// A node asks its quorum.
    Quorum,
    /// Who has the token may enter.
    Token,
}

/// What an algorithm assumes of the network, besides that nothing is lost or doubled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// Messages of one node to another arrive in the order sent.
    Fifo,
    /// Messages may overtake each other.
    Unordered,
}

/// What may go wrong in a group, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A message is lost.
    Loss,
    /// A message arrives twice.
    Duplication,
    /// A node that is neither inside nor waiting stops for ever.
    CrashOutside,
    /// A node stops for ever while inside.
    CrashInside,
}

impl Fault {
    /// All of them, with the names by which they are known.
    pub const ALL: [(&str, Self); 4] = [
        ("loss", Self::Loss),
        ("duplication", Self::Duplication),
        ("crash-outside", Self::CrashOutside),
        ("crash-inside", Self::CrashInside),
    ];
}

/// What an algorithm needs to know of its group besides its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing more.
    Nothing,
    /// A quorum for each node.
    Quorums,
    /// The weight of each node's vote.
    Weights,
    /// A spanning tree.
    Tree,
    /// The wires along which messages travel: mesh, ring or tree.
    Wiring,
    /// A connected graph, and who starts the wave over it.
    Graph,
}

/// A formula of a paper: its text, and its value for a group.
#[derive(Clone, Copy, Debug)]
pub struct Formula {
    /// As a person would write it.
    pub text: &'static str,
    /// What it comes to.
    pub of: fn(&Group) -> f64,
}

impl Formula {
    /// No messages at all.
    pub const ZERO: Self = Self { text: "0", of: |_| 0.0 };
}

/// Whether the bounds of a claim hold for each entry or only for the mean over many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// Each single entry.
    Entry,
    /// The mean over a run.
    Run,
}

/// How many messages an entry costs.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// Never fewer.
    pub least: Formula,
    /// Never more.
    pub most: Formula,
    /// Whom the two bounds bind.
    pub per: Per,
    /// The mean when requests come one at a time from nodes chosen evenly, if it is known.
    pub light: Option<Formula>,
    /// The mean when every node wants in again well before its turn comes, if it is known.
    pub heavy: Option<Formula>,
}

impl Claim {
    /// Every entry costs exactly `cost`, however busy the group is.
    pub const fn exactly(cost: Formula) -> Self {
        Self { least: cost, most: cost, per: Per::Entry, light: Some(cost), heavy: Some(cost) }
    }
}

/// Everything an algorithm declares.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// The name the command line knows.
    pub name: &'static str,
    /// What it does, or how a variant differs from its parent, in one line.
    pub summary: &'static str,
    /// Authors, title and place.
    pub paper: &'static str,
    /// When it was published.
    pub year: u16,
    /// The family.
    pub kind: Kind,
    /// What it assumes of the network.
    pub channel: Channel,
    /// Does it serve [`crate::Mode::Shared`]?
    pub shared: bool,
    /// Does it let several in at once by permits?
    pub permits: bool,
    /// What its group must provide.
    pub needs: Needs,
    /// For a text that fails as printed: how.
    pub refuted: Option<&'static str>,
    /// Which faults it survives by itself, each once: everything still holds, and nobody waits for
    /// ever. Survivors learn of a crash; where there are permits, there are two.
    pub survives: &'static [Fault],
    /// May the lock service offer it? Only what is right, rests while nobody wants in, and gains
    /// something over its plainer kin in a service, where a view replaces crashed nodes.
    pub served: bool,
    /// Its cost.
    pub messages: Claim,
}

impl Info {
    /// What an algorithm declares unless it says otherwise: no order of messages assumed, neither
    /// shared mode nor permits, nothing needed of the group, no fault survived, not served.
    ///
    /// Name, summary, paper, year, kind and messages have no default: the list of algorithms does
    /// not compile with one whose texts or year are missing.
    pub const BASE: Self = Self {
        name: "",
        summary: "",
        paper: "",
        year: 0,
        kind: Kind::Permission,
        channel: Channel::Unordered,
        shared: false,
        permits: false,
        needs: Needs::Nothing,
        refuted: None,
        survives: &[],
        served: false,
        messages: Claim::exactly(Formula { text: "", of: |_| 0.0 }),
    };

    /// Has everything been declared for which [`Info::BASE`] has only a blank?
    pub(crate) const fn is_complete(&self) -> bool {
        let texts = [self.name, self.summary, self.paper, self.messages.most.text];
        let mut at = 0;
        while at < texts.len() {
            if texts[at].is_empty() {
                return false;
            }
            at += 1;
        }
        self.year != 0
    }

    /// The group of `size` nodes that this algorithm needs, with the choices of `shape`.
    ///
    /// Choices it has no use for are refused rather than ignored.
    pub fn group(&self, size: usize, shape: &Shape) -> Result<Group, GroupError> {
        self.refuse_useless(shape)?;
        let group = Group::new(size)?;
        let group = match (shape.permits, shape.seats) {
            (None, None) => group,
            (permits, seats) => {
                let permits = permits.unwrap_or(1);
                let seats = seats.unwrap_or_else(|| permits.div_ceil(group.size()));
                group.with_permits(permits, seats)?
            }
        };
        let tree = shape.tree.unwrap_or(TreeShape::Balanced(2));
        match self.needs {
            Needs::Nothing => Ok(group),
            Needs::Quorums => {
                let kind = match shape.quorums {
                    Some(kind) => kind,
                    None => quorums::best_kind(group.size()),
                };
                let sets = Quorums::build(kind, group.size(), shape.weights.as_deref())?;
                group.with_quorums(sets)
            }
            Needs::Weights => {
                let weights = shape.weights.clone();
                group.with_weights(weights.unwrap_or_else(|| quorums::default_weights(size)))
            }
            Needs::Tree => group.with_tree(Tree::new(tree, size)?),
            Needs::Wiring => match shape.wiring.unwrap_or(Wiring::Mesh) {
                Wiring::Tree => {
                    Ok(group.with_tree(Tree::new(tree, size)?)?.with_wiring(Wiring::Tree))
                }
                wiring => Ok(group.with_wiring(wiring)),
            },
            Needs::Graph => {
                let graph = match &shape.graph {
                    Some(graph) => graph.clone(),
                    None => Graph::ring(size),
                };
                let initiators = shape.initiators.clone();
                group.with_graph(
                    graph,
                    initiators.unwrap_or_else(|| NodeSet::from_iter([NodeId(0)])),
                )
            }
        }
    }

    fn refuse_useless(&self, shape: &Shape) -> Result<(), GroupError> {
        let weighted = self.needs == Needs::Weights
            || (self.needs == Needs::Quorums && shape.quorums == Some(quorums::Kind::Weighted));
        let treed = self.needs == Needs::Tree
            || (self.needs == Needs::Wiring && shape.wiring == Some(Wiring::Tree));
        let useless = [
            (shape.permits.is_some_and(|k| k != 1) && !self.permits, "permits"),
            (shape.seats.is_some_and(|k| k != 1) && !self.permits, "seats"),
            (shape.quorums.is_some() && self.needs != Needs::Quorums, "quorums"),
            (shape.weights.is_some() && !weighted, "weights"),
            (shape.tree.is_some() && !treed, "a tree"),
            (shape.wiring.is_some() && self.needs != Needs::Wiring, "a topology"),
            (shape.graph.is_some() && self.needs != Needs::Graph, "a graph"),
            (shape.initiators.is_some() && self.needs != Needs::Graph, "initiators"),
        ];
        match useless.iter().find(|(useless, _)| *useless) {
            None => Ok(()),
            Some((_, what)) => Err(GroupError::new(format!("{} has no use for {what}", self.name))),
        }
    }
}
