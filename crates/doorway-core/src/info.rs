//! What an algorithm declares about itself, as data: `doorway list` shows it, `doorway compare`
//! draws it, and tests check it.

use alloc::format;

use crate::quorums;
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
    /// The node that has the token may enter.
    Token,
}

/// What an algorithm assumes about the order of messages. All assume that none is lost or doubled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// Messages from one node to another arrive in the order in which they were sent.
    Fifo,
    /// Messages may overtake each other.
    Unordered,
}

/// A fault that may happen in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A message is lost.
    Loss,
    /// A message arrives twice.
    Duplication,
    /// A node crashes for good while it is neither inside nor waiting.
    CrashOutside,
    /// A node crashes for good while it is inside.
    CrashInside,
}

impl Fault {
    /// All faults, with the names that the command line uses.
    pub const ALL: [(&str, Self); 4] = [
        ("loss", Self::Loss),
        ("duplication", Self::Duplication),
        ("crash-outside", Self::CrashOutside),
        ("crash-inside", Self::CrashInside),
    ];
}

/// What an algorithm needs to know about its group besides the size.
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
    /// The links along which messages travel: mesh, ring or tree.
    Wiring,
    /// A connected graph, by hand or by its links, and the nodes that start a wave over it.
    Graph,
}

/// A formula of a paper: its text, and the function that computes it for a group.
#[derive(Clone, Copy, Debug)]
pub struct Formula {
    /// The formula as a person would write it.
    pub text: &'static str,
    /// Computes its value for a group.
    pub of: fn(&Group) -> f64,
}

impl Formula {
    /// The constant 0.
    pub const ZERO: Self = Self { text: "0", of: |_| 0.0 };
}

/// Whether the bounds of a claim hold for each entry or only on average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// Each single entry.
    Entry,
    /// The mean over all entries of a run.
    Run,
}

/// The number of messages that an entry costs, as claimed.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// The lower bound.
    pub least: Formula,
    /// The upper bound.
    pub most: Formula,
    /// Whether the two bounds hold for each entry or on average.
    pub per: Per,
    /// The mean under light load, if it is known: requests come one at a time, from nodes chosen
    /// at random.
    pub light: Option<Formula>,
    /// The mean under heavy load, if it is known: every node asks again well before its turn comes.
    pub heavy: Option<Formula>,
}

impl Claim {
    /// The claim that every entry costs exactly `cost`, however busy the group is.
    pub const fn exactly(cost: Formula) -> Self {
        Self { least: cost, most: cost, per: Per::Entry, light: Some(cost), heavy: Some(cost) }
    }
}

/// Everything an algorithm declares.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a declaration of its own")]
pub struct Info {
    /// The name on the command line.
    pub name: &'static str,
    /// One line: what the algorithm does, or how a variant differs from the original.
    pub summary: &'static str,
    /// Authors, title and place of publication.
    pub paper: &'static str,
    /// The year of publication.
    pub year: u16,
    /// The family.
    pub kind: Kind,
    /// What it assumes about the order of messages.
    pub channel: Channel,
    /// Whether it serves [`crate::Mode::Shared`].
    pub shared: bool,
    /// Whether it serves permits, so that several clients may be inside at once.
    pub permits: bool,
    /// Whether a request can be withdrawn while it waits, so that it keeps no other node waiting.
    /// Where it cannot, a lock service waits for the entry and releases it at once.
    pub withdraws: bool,
    /// What it needs to know about its group.
    pub needs: Needs,
    /// How the text fails, for an algorithm that is wrong as printed.
    pub refuted: Option<&'static str>,
    /// The faults that it survives by itself, once each: exclusion still holds, and no live node
    /// waits for ever. Survivors learn of a crash. An algorithm with permits has at least two.
    pub survives: &'static [Fault],
    /// Whether a lock service may offer it. It must be correct, send nothing while no client wants
    /// to enter, and have an advantage over the simpler algorithms in a service, where the change
    /// of views deals with crashes.
    pub served: bool,
    /// The number of messages that an entry costs.
    pub messages: Claim,
}

impl Info {
    /// The defaults from which an algorithm's declaration begins: messages may overtake each other,
    /// neither shared mode nor permits, no withdrawal, no needs, no fault survived, not served.
    ///
    /// Name, summary, paper, year, kind and messages have no useful default. If an algorithm lacks
    /// one of these texts or the year, the list of algorithms does not compile.
    pub const BASE: Self = Self {
        name: "",
        summary: "",
        paper: "",
        year: 0,
        kind: Kind::Permission,
        channel: Channel::Unordered,
        shared: false,
        permits: false,
        withdraws: false,
        needs: Needs::Nothing,
        refuted: None,
        survives: &[],
        served: false,
        messages: Claim::exactly(Formula { text: "", of: |_| 0.0 }),
    };

    /// Whether everything is declared for which [`Info::BASE`] has only a blank.
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

    /// Why a service does not offer this algorithm, as the end of a sentence with "because"; `None`
    /// if a service does, or if the algorithm is refuted.
    pub fn why_not_served(&self) -> Option<&'static str> {
        match self.name {
            _ if self.served => None,
            "le-lann" => Some("its token travels for ever, also while nobody wants a lock"),
            "maekawa-heir" => Some(
                "in a service the change of views deals with crashes, so `maekawa` does the same",
            ),
            _ => None,
        }
    }

    /// Build the group of `size` nodes that this algorithm needs, with the choices of `shape`.
    ///
    /// A choice that the algorithm does not use is refused, not ignored.
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
                let plan = match &shape.quorums {
                    Some(plan) => plan.clone(),
                    None => quorums::best_kind(group.size()).into(),
                };
                let sets = plan.build(group.size(), shape.weights.as_deref())?;
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
                let graph = match (&shape.graph, shape.wiring) {
                    (Some(_), Some(_)) => {
                        let reason = "a graph and a topology exclude each other; give one of them";
                        return Err(GroupError::new(reason));
                    }
                    (Some(graph), None) => graph.clone(),
                    (None, None | Some(Wiring::Ring)) => Graph::ring(size),
                    (None, Some(Wiring::Mesh)) => Graph::mesh(size)?,
                    (None, Some(Wiring::Tree)) => Graph::of_tree(&Tree::new(tree, size)?),
                };
                let initiators = shape.initiators.clone();
                group.with_graph(
                    graph,
                    initiators.unwrap_or_else(|| NodeSet::from_iter([NodeId(0)])),
                )
            }
        }
    }

    /// Refuse choices that the algorithm does not use.
    pub fn refuse_useless(&self, shape: &Shape) -> Result<(), GroupError> {
        let weighted = self.needs == Needs::Weights
            || (self.needs == Needs::Quorums
                && shape.quorums.as_ref().is_some_and(quorums::Plan::takes_weights));
        let wired = matches!(self.needs, Needs::Wiring | Needs::Graph);
        let treed = self.needs == Needs::Tree || (wired && shape.wiring == Some(Wiring::Tree));
        let useless = [
            (shape.permits.is_some_and(|k| k != 1) && !self.permits, "permits"),
            (shape.seats.is_some_and(|k| k != 1) && !self.permits, "seats"),
            (shape.quorums.is_some() && self.needs != Needs::Quorums, "quorums"),
            (shape.weights.is_some() && !weighted, "weights"),
            (shape.tree.is_some() && !treed, "a tree"),
            (shape.wiring.is_some() && !wired, "a topology"),
            (shape.graph.is_some() && self.needs != Needs::Graph, "a graph"),
            (shape.initiators.is_some() && self.needs != Needs::Graph, "initiators"),
        ];
        match useless.iter().find(|(useless, _)| *useless) {
            None => Ok(()),
            Some((_, what)) => Err(GroupError::new(format!("{} has no use for {what}", self.name))),
        }
    }
}
