//! All nodes of a group.
//!
//! Every step of every driver goes through [`Nodes::step`], which checks mutual exclusion and the
//! contract of the algorithm.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use doorway_core::{Breach, Effects, Group, Input, Mail, Mode, NodeId, NodeSet, Phase, Start};

use crate::Limits;
use crate::erased::{
    AnyAlgorithm, AnyMember, AnyMessage, AnySnapshot, Catalogue, SettledGroup, UnlistedPart,
};

/// Something that must never happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// More nodes are inside the critical section than the group allows.
    Together(Vec<NodeId>),
    /// A node rejected a message, although all its peers are correct.
    Rejected {
        /// The node that rejected it.
        node: NodeId,
        /// The reason that the node gives.
        reason: &'static str,
    },
    /// An algorithm broke its contract.
    Breach {
        /// The node that runs the algorithm.
        node: NodeId,
        /// What the algorithm did.
        breach: Breach,
    },
    /// These nodes wait and nothing can happen any more: a deadlock.
    Stuck(Vec<NodeId>),
    /// A node can wait forever, although every message arrives and every node inside leaves:
    /// starvation.
    Starved(NodeId),
    /// A claim about every world is not true of this one. The text says what is wrong.
    Claim(String),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list =
            |nodes: &[NodeId]| nodes.iter().map(NodeId::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Self::Together(nodes) => write!(f, "nodes {} are inside together", list(nodes)),
            Self::Rejected { node, reason } => write!(f, "node {node} rejected {reason}"),
            Self::Breach { node, breach } => {
                write!(f, "node {node} broke the contract: {breach}")
            }
            Self::Stuck(nodes) => {
                let one = nodes.len() == 1;
                let (of, wait) = if one { ("node", "waits") } else { ("nodes", "wait") };
                write!(f, "{of} {} {wait} and nothing can happen any more", list(nodes))
            }
            Self::Starved(node) => {
                write!(f, "node {node} waits for ever, though messages arrive and nodes leave")
            }
            Self::Claim(what) => f.write_str(what),
        }
    }
}

/// May `inside` permits be held at once, of which `readers` are held in shared mode?
pub(crate) fn compatible(group: &Group, inside: u32, readers: u32) -> bool {
    inside <= group.permits() || readers == inside
}

/// The members of a group in the form that a driver wants: [`AnyMember`]s for worlds, a
/// `Troupe` for the simulator.
pub trait Members {
    /// How a message is named that arrives.
    type Message;

    /// How a message is named that was just sent.
    type SentMessage;

    /// Let one event happen to `node`. `out` then holds what the node did about it.
    fn step(
        &mut self,
        group: &Group,
        node: NodeId,
        input: Input<Self::Message>,
        out: &mut Effects<Self::SentMessage>,
    ) -> Result<(), Breach>;

    /// How many permits the node holds.
    fn held(&self, node: NodeId) -> u32;

    /// The mode of what it holds.
    fn mode(&self, node: NodeId) -> Mode;
}

impl Members for Vec<AnyMember> {
    type Message = AnyMessage;
    type SentMessage = AnyMessage;

    fn step(
        &mut self,
        group: &Group,
        node: NodeId,
        input: Input<AnyMessage>,
        out: &mut Effects<AnyMessage>,
    ) -> Result<(), Breach> {
        self[node.index()].step(group, input, out)
    }

    fn held(&self, node: NodeId) -> u32 {
        self[node.index()].held()
    }

    fn mode(&self, node: NodeId) -> Mode {
        self[node.index()].mode()
    }
}

/// All members of a group, and how many permits they hold together.
#[derive(Clone, Debug)]
pub struct Nodes<M = Vec<AnyMember>> {
    group: Arc<Group>,
    /// How many permits are held, in both modes.
    inside: u32,
    /// How many of them are held in shared mode.
    readers: u32,
    members: M,
}

/// How many permits are held at a start: all, and those in shared mode.
fn held_at(start: &Start) -> (u32, u32) {
    let shared = start.holders.iter().filter(|holder| holder.mode == Mode::Shared);
    let readers = shared.map(|holder| holder.permits).sum();
    (start.holders.iter().map(|holder| holder.permits).sum(), readers)
}

impl<M: Members> Nodes<M> {
    /// The nodes of a group that have begun with `start`.
    pub(crate) fn new(group: Arc<Group>, start: &Start, members: M) -> Self {
        let (inside, readers) = held_at(start);
        Self { group, inside, readers, members }
    }

    /// Let one event happen to `node`. `out` then holds what the node did about it.
    pub fn step(
        &mut self,
        node: NodeId,
        input: Input<M::Message>,
        out: &mut Effects<M::SentMessage>,
    ) -> Result<(), Violation> {
        if matches!(input, Input::Release) {
            self.leave(node);
        }
        let stepped = self.members.step(&self.group, node, input, out);
        stepped.map_err(|breach| Violation::Breach { node, breach })?;
        if let Some(reason) = out.rejected() {
            return Err(Violation::Rejected { node, reason });
        }
        if out.entered() { self.enter(node) } else { Ok(()) }
    }

    fn enter(&mut self, node: NodeId) -> Result<(), Violation> {
        self.inside += 1;
        self.readers += u32::from(self.members.mode(node) == Mode::Shared);
        if compatible(&self.group, self.inside, self.readers) {
            return Ok(());
        }
        let inside = self.group.nodes().filter(|node| self.members.held(*node) > 0);
        Err(Violation::Together(inside.collect()))
    }

    fn leave(&mut self, node: NodeId) {
        self.inside -= 1;
        self.readers -= u32::from(self.members.mode(node) == Mode::Shared);
    }

    /// Crash a node. Its permits are no longer held.
    pub fn crash(&mut self, node: NodeId) {
        for _ in 0..self.members.held(node) {
            self.leave(node);
        }
    }

    /// How many permits are held.
    pub fn inside(&self) -> u32 {
        self.inside
    }

    /// The group.
    pub fn group(&self) -> &Arc<Group> {
        &self.group
    }

    /// The members.
    pub(crate) fn members(&self) -> &M {
        &self.members
    }

    /// The members, for changes other than steps.
    pub(crate) fn members_mut(&mut self) -> &mut M {
        &mut self.members
    }
}

impl PartialEq for Nodes {
    fn eq(&self, other: &Self) -> bool {
        self.members == other.members
    }
}

impl Eq for Nodes {}

/// The counts follow from the members, and the group never changes, so neither is hashed.
impl Hash for Nodes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.members.hash(state);
    }
}

impl Nodes {
    /// Begin all nodes of `group`. Returned beside them is what each node did as it began, in the
    /// order of the nodes.
    pub fn begin(
        algorithm: AnyAlgorithm,
        group: Arc<Group>,
        start: &Start,
    ) -> Result<(Self, Vec<Effects<AnyMessage>>), Violation> {
        let (mut members, mut opening) = (Vec::new(), Vec::new());
        for node in group.nodes() {
            let mut out = Effects::default();
            let member = algorithm.begin(node, &group, start, &mut out);
            members.push(member.map_err(|breach| Violation::Breach { node, breach })?);
            opening.push(out);
        }
        Ok((Self::new(group, start, members), opening))
    }

    /// A group of these members. A crashed member holds nothing.
    pub(crate) fn from_members(
        group: Arc<Group>,
        members: Vec<AnyMember>,
        crashed: &NodeSet,
    ) -> Self {
        let mut nodes = Self { group, inside: 0, readers: 0, members };
        for member in nodes.members.iter().filter(|member| !crashed.contains(member.me())) {
            nodes.inside += member.held();
            nodes.readers += if member.mode() == Mode::Shared { member.held() } else { 0 };
        }
        nodes
    }

    /// Forget the lock at a node, as a service does to save memory, and begin it again from the
    /// node's floor. `out` then holds what the node did as it began.
    pub fn forget(&mut self, node: NodeId, out: &mut Effects<AnyMessage>) -> Result<(), Violation> {
        let floor =
            self.members[node.index()].floor().expect("only a node with a floor is forgotten");
        let start = Start { holders: Vec::new(), floor };
        self.begin_again(node, &start, out)
    }

    /// Begin the lock again at a node that is outside. `out` then holds what the node did as it
    /// began.
    pub(crate) fn begin_again(
        &mut self,
        node: NodeId,
        start: &Start,
        out: &mut Effects<AnyMessage>,
    ) -> Result<(), Violation> {
        let member = &mut self.members[node.index()];
        let begun = member.state().begin(&self.group, start, out);
        *member = begun.map_err(|breach| Violation::Breach { node, breach })?;
        Ok(())
    }

    /// Replace all nodes and messages by the simplest ones that behave the same from here on; see
    /// [`Algorithm::settle`](doorway_core::Algorithm::settle). A crashed node never does anything
    /// again, so it gets the state of a node that has just begun. Returns the messages that are
    /// left, if any was dropped or changed.
    pub(crate) fn settle(
        &mut self,
        crashed: &NodeSet,
        mail: &[Mail<&AnyMessage>],
        limits: &Limits,
    ) -> Option<Vec<Mail<AnyMessage>>> {
        let (dead, live): (Vec<NodeId>, Vec<NodeId>) =
            self.group.nodes().partition(|node| crashed.contains(*node));
        for node in dead {
            self.members[node.index()] = self.members[node.index()].state().forgotten(&self.group);
        }
        let mut listed = ListCatalogue {
            members: self.members.clone(),
            messages: mail.iter().map(|mail| mail.message.clone()).collect(),
        };
        let numbered = mail.iter().zip(0..).map(|(mail, number)| mail.clone().map(|_| number));
        let snapshot = AnySnapshot {
            nodes: &live.iter().map(|node| node.0).collect::<Vec<_>>(),
            mail: &numbered.collect::<Vec<_>>(),
            crashes: limits.crashes,
            withdrawals: limits.withdrawing,
        };
        let mut settler = self.members[0].state().settler()?;
        let settled = settler.settle(&self.group, &snapshot, &mut listed);
        let SettledGroup { nodes, mail } = settled.expect("every form is listed")?;
        for (node, number) in live.iter().zip(nodes) {
            self.members[node.index()] = listed.member(number).clone();
        }
        let message = |mail: Mail<u32>| mail.map(|number| listed.message(number).clone());
        mail.map(|mail| mail.into_iter().map(message).collect())
    }

    /// The nodes for which `test` holds.
    pub fn who(&self, test: impl Fn(&AnyMember) -> bool) -> Vec<NodeId> {
        self.members.iter().filter(|member| test(member)).map(AnyMember::me).collect()
    }

    /// The nodes in a phase.
    pub fn in_phase(&self, phase: Phase) -> Vec<NodeId> {
        self.who(|member| member.phase() == phase)
    }

    /// One member.
    pub fn member(&self, node: NodeId) -> &AnyMember {
        &self.members[node.index()]
    }
}

/// Nodes and messages by their positions in two lists. Settled forms are added.
struct ListCatalogue {
    members: Vec<AnyMember>,
    messages: Vec<AnyMessage>,
}

impl Catalogue for ListCatalogue {
    fn member(&self, number: u32) -> &AnyMember {
        &self.members[number as usize]
    }

    fn message(&self, number: u32) -> &AnyMessage {
        &self.messages[number as usize]
    }

    fn settled_member(&mut self, _: u32, settled: AnyMember) -> Result<u32, UnlistedPart> {
        self.members.push(settled);
        Ok(self.members.len() as u32 - 1)
    }

    fn settled_message(&mut self, _: u32, settled: AnyMessage) -> Result<u32, UnlistedPart> {
        self.messages.push(settled);
        Ok(self.messages.len() as u32 - 1)
    }
}
