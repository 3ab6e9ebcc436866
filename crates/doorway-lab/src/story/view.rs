//! What a page is told about a story: plain values that become JSON.

use std::collections::{BTreeMap, BTreeSet};

use doorway_core::quorums::{Kind, Quorums, Scheme};
use doorway_core::{Channel, Group, GroupError, Mode, Needs, NodeId, Per, Phase, Wiring};
use serde::Serialize;

use super::fields::fields;
use crate::check::Property;
use crate::source::{Place, Span, sends_round};
use crate::{Violation, World};

/// A story, or the new part of one.
#[derive(Clone, Debug, Serialize)]
pub struct StoryView {
    /// What stays the same in the story; left out where only its new part is told.
    #[serde(flatten)]
    pub frame: Option<FrameView>,
    /// How many steps come before the first of `steps`.
    pub from: usize,
    /// The steps.
    pub steps: Vec<StepView>,
    /// What can happen after the last step.
    pub choices: Vec<ChoiceView>,
    /// The deadlock after the last step.
    pub stuck: Option<ViolationView>,
}

/// What stays the same in a story.
#[derive(Clone, Debug, Serialize)]
pub struct FrameView {
    /// The group, as in a script: the words after `run`, and `quorum` lines below them.
    pub run: String,
    /// The name of the algorithm.
    pub algorithm: String,
    /// The group and its network.
    pub group: GroupView,
    /// The names of the fields of a state.
    pub fields: Vec<String>,
    /// The nodes at the beginning.
    pub base: Vec<NodeView>,
    /// The messages that nodes sent as they began.
    pub opening: Vec<OpeningView>,
    /// The colour of each kind of message, as a number.
    pub colours: BTreeMap<String, usize>,
    /// The names of the nodes; empty if they are called by their numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// A group.
#[derive(Clone, Debug, Serialize)]
pub struct GroupView {
    /// The number of nodes.
    pub n: u32,
    /// How many may be inside together.
    pub permits: u32,
    /// "fifo" or "unordered".
    pub channel: &'static str,
    /// How to arrange the nodes: "mesh", "ring", "tree" or "graph"; by the construction of their
    /// quorums "grid" or "triangle", which have `rows`, or "plane"; "quorums" for all others.
    pub layout: &'static str,
    /// How many nodes each row of a grid or a triangle has.
    pub rows: Vec<u32>,
    /// The links between nodes; none in a mesh, where all are linked.
    pub edges: Vec<(u32, u32)>,
    /// The parent of each node in a tree; 0 for the root.
    pub parents: Vec<u32>,
    /// The quorum of each node.
    pub quorums: Vec<Vec<u32>>,
    /// The claimed number of messages per entry.
    pub claim: ClaimView,
}

/// How many messages an entry costs, as claimed.
#[derive(Clone, Debug, Serialize)]
pub struct ClaimView {
    /// The formula, or the two formulas between which the cost is.
    pub text: String,
    /// The lower bound in this group.
    pub least: f64,
    /// The upper bound in this group; `None` if there is none.
    pub most: Option<f64>,
    /// "entry" if the bounds are about each entry, "run" if they are about the mean of a whole run.
    pub per: &'static str,
}

/// A node at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeView {
    /// "outside", "waiting", "inside" or "crashed".
    pub phase: &'static str,
    /// How many permits the node holds.
    pub held: u32,
    /// Whether it waits or is inside in shared mode.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// The values of its fields, in the order of the field names of the story.
    pub fields: Vec<String>,
}

/// What a node sent as it began.
#[derive(Clone, Debug, Serialize)]
pub struct OpeningView {
    /// The node.
    pub node: u32,
    /// Its messages.
    pub sends: Vec<SendView>,
}

/// A message that was sent.
#[derive(Clone, Debug, Serialize)]
pub struct SendView {
    /// Tells it from all other messages of the story.
    pub id: u64,
    /// The receiver.
    pub to: u32,
    /// The message.
    pub text: String,
    /// The node whose request pays for it, and which request of that node, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pays: Option<(u32, u32)>,
    /// The node that the algorithm says it serves; if it names none, the cause decides who pays.
    #[serde(skip)]
    pub serves: Option<u32>,
}

/// One step.
#[derive(Clone, Debug, Serialize)]
pub struct StepView {
    /// The step as a link names it.
    #[serde(rename = "do")]
    pub word: String,
    /// The node that acts.
    pub node: u32,
    /// The number of the message that arrives, is lost or is doubled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took: Option<u64>,
    /// The messages that no node will receive after this step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<u64>,
    /// The messages that the node sends.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sends: Vec<SendView>,
    /// Did the node enter?
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub entered: bool,
    /// What the step violated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub violation: Option<ViolationView>,
    /// The rules that ran.
    pub rules: Vec<usize>,
    /// The lines that handled the step, each with the number of its file.
    pub lines: Vec<Span>,
    /// The lines among them that had its effects.
    pub hits: Vec<Place>,
    /// The node after the step.
    pub state: NodeView,
    /// A hash of everything that has been told up to here.
    pub print: u32,
    /// What happened, in words, and when, where that is not to be told from the step itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub say: Option<String>,
}

/// Something that must never happen.
#[derive(Clone, Debug, Serialize)]
pub struct ViolationView {
    /// The property.
    pub property: String,
    /// What happened, as a sentence.
    pub text: String,
    /// The nodes that it is about.
    pub nodes: Vec<u32>,
    /// Why each of these nodes waits, if it is a deadlock and the way to it is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<WaitView>,
    /// Nodes of which each one misses an answer of the next one, and the last one of the first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub circle: Vec<u32>,
}

/// A node in a deadlock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WaitView {
    /// The node.
    pub node: u32,
    /// The nodes whose answers to its request it misses.
    pub on: Vec<u32>,
    /// Why it waits, as a sentence.
    pub text: String,
}

/// Something that can happen next.
#[derive(Clone, Debug, Serialize)]
pub struct ChoiceView {
    /// "message", "client", "learn" or "crash".
    pub kind: &'static str,
    /// The acting node; for a message, its receiver.
    pub node: u32,
    /// The sender of the message, or the node that crashed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u32>,
    /// The number of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// The message, or what the client does.
    pub text: String,
    /// The step as a link names it. A message can also be lost and doubled.
    #[serde(rename = "do")]
    pub words: Vec<String>,
}

/// Nodes are counted from 1 on pages and in scripts.
pub(super) fn shown(node: NodeId) -> u32 {
    node.0 + 1
}

impl NodeView {
    /// A node of a world.
    pub(super) fn of(world: &World, node: NodeId) -> Self {
        let member = world.nodes().member(node);
        let lives = world.live_in(member.phase()).contains(&node);
        let phase = match member.phase() {
            _ if !lives => "crashed",
            Phase::Outside => "outside",
            Phase::Waiting => "waiting",
            Phase::Inside => "inside",
        };
        let mode = member.waiting().unwrap_or(member.mode());
        let busy = member.phase() != Phase::Outside;
        Self {
            phase,
            held: if lives { member.held() } else { 0 },
            shared: busy && mode == Mode::Shared,
            fields: fields(&member.algorithm_text()).into_iter().map(|(_, value)| value).collect(),
        }
    }
}

/// The names of the fields of the states of a world.
pub(super) fn field_names(world: &World) -> Vec<String> {
    let text = world.nodes().member(NodeId(0)).algorithm_text();
    fields(&text).into_iter().map(|(name, _)| name).collect()
}

impl GroupView {
    /// The group of a world.
    pub(super) fn of(world: &World) -> Self {
        let (group, info) = (world.group(), world.info());
        let layout = match info.needs {
            Needs::Nothing if sends_round(info.name) => "ring",
            Needs::Nothing | Needs::Weights => "mesh",
            Needs::Quorums => group.quorums().map_or("quorums", construction),
            Needs::Tree => "tree",
            Needs::Graph => "graph",
            Needs::Wiring => match group.wiring() {
                Wiring::Mesh => "mesh",
                Wiring::Ring => "ring",
                Wiring::Tree => "tree",
            },
        };
        let (edges, parents) = links(group, layout);
        let quorum = |node| group.quorum(node, 0).iter().map(|node| shown(*node)).collect();
        let has_quorums = info.needs == Needs::Quorums;
        let claim = info.messages;
        let (least, most) = ((claim.least.of)(group), (claim.most.of)(group));
        let per = match claim.per {
            Per::Entry => "entry",
            Per::Run => "run",
        };
        let text = if claim.least.text == claim.most.text {
            claim.least.text.to_owned()
        } else {
            format!("{} to {}", claim.least.text, claim.most.text)
        };
        Self {
            n: group.size(),
            permits: group.permits(),
            channel: if world.channel() == Channel::Fifo { "fifo" } else { "unordered" },
            layout,
            rows: rows(group.size(), layout),
            edges,
            parents,
            quorums: if has_quorums { group.nodes().map(quorum).collect() } else { Vec::new() },
            claim: ClaimView { text, least, most: most.is_finite().then_some(most), per },
        }
    }
}

/// The construction by which quorums can be drawn, whether they were made by it or by hand.
fn construction(quorums: &Quorums) -> &'static str {
    let size = quorums.size();
    let is = |built: Result<Quorums, GroupError>| built.is_ok_and(|built| built == *quorums);
    let is_triangle = |scheme| is(Quorums::triangle(size, scheme));
    if is_plane(quorums) {
        "plane"
    } else if size > 3 && is(Quorums::build(Kind::Grid, size, None)) {
        "grid"
    } else if size > 2 && [Scheme::First, Scheme::Second, Scheme::Both].into_iter().any(is_triangle)
    {
        "triangle"
    } else {
        "quorums"
    }
}

/// Whether quorums are the lines of a projective plane of order 2 or more: any two of them share
/// one node, and there are as many lines as nodes.
fn is_plane(quorums: &Quorums) -> bool {
    let size = quorums.size();
    let lines: BTreeSet<&[NodeId]> =
        (0..size).map(|node| quorums.quorum(NodeId(node), 0)).collect();
    let order = quorums.largest().saturating_sub(1);
    let shared =
        |one: &[NodeId], other: &[NodeId]| one.iter().filter(|node| other.contains(node)).count();
    order >= 2
        && quorums.turns() == 1
        && quorums.smallest() == quorums.largest()
        && size == order * order + order + 1
        && lines.len() as u32 == size
        && lines.iter().all(|one| lines.iter().all(|other| one == other || shared(one, other) == 1))
}

/// The lengths of the rows in which the nodes of a grid or a triangle stand.
fn rows(size: u32, layout: &str) -> Vec<u32> {
    let columns = size.isqrt() + u32::from(size.isqrt().pow(2) < size);
    let full = |row: u32| match layout {
        "grid" => columns,
        "triangle" => row + 1,
        _ => size,
    };
    let (mut rows, mut left) = (Vec::new(), size);
    while left > 0 && matches!(layout, "grid" | "triangle") {
        let length = full(rows.len() as u32).min(left);
        rows.push(length);
        left -= length;
    }
    rows
}

type Edges = Vec<(u32, u32)>;

/// The links of a group, and the parent of each node if it is a tree.
fn links(group: &Group, layout: &str) -> (Edges, Vec<u32>) {
    match layout {
        "tree" => {
            let parent = |node| group.tree().parent(node).map_or(0, shown);
            let parents: Vec<u32> = group.nodes().map(parent).collect();
            let edges = group.nodes().map(shown).zip(parents.iter().copied());
            (edges.filter(|(_, parent)| *parent > 0).collect(), parents)
        }
        "ring" => {
            let next = |node| (shown(node), shown(group.successor(node)));
            (group.nodes().map(next).collect(), Vec::new())
        }
        "graph" => {
            let of = |node: NodeId| {
                let others = group.graph().neighbours(node).iter().map(|other| shown(*other));
                let me = shown(node);
                others.filter(move |other| *other > me).map(move |other| (me, other))
            };
            (group.nodes().flat_map(of).collect(), Vec::new())
        }
        _ => (Vec::new(), Vec::new()),
    }
}

impl ViolationView {
    /// The violation as a page shows it.
    pub fn of(violation: &Violation) -> Self {
        let nodes = match violation {
            Violation::Together(nodes) | Violation::Stuck(nodes) => nodes.clone(),
            Violation::Rejected { node, .. }
            | Violation::Breach { node, .. }
            | Violation::Starved(node) => vec![*node],
            Violation::Claim(_) => Vec::new(),
        };
        Self {
            property: Property::violated_by(violation).to_string(),
            text: violation.to_string(),
            nodes: nodes.into_iter().map(shown).collect(),
            waits: Vec::new(),
            circle: Vec::new(),
        }
    }
}
