//! All nodes of a group, watched: every step of every driver goes through here, and exclusion and
//! the contract are checked at each of them.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use doorway_core::{
    Algorithm, Breach, Effects, Group, Input, Member, Mode, NodeId, NodeSet, Phase, Start,
};

/// Something that must never happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// More nodes are inside than may be.
    Together(Vec<NodeId>),
    /// A node refused a message, though all its peers are correct.
    Rejected {
        /// Who refused.
        node: NodeId,
        /// Why.
        reason: &'static str,
    },
    /// An algorithm broke its contract.
    Breach {
        /// The node that did.
        node: NodeId,
        /// How.
        breach: Breach,
    },
    /// Someone waits and nothing can happen any more.
    Stuck(Vec<NodeId>),
    /// A node can wait for ever, though every message arrives and everyone inside leaves.
    Starved(NodeId),
    /// Something that is claimed of every world is not true of this one.
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
                write!(f, "node {node} broke the contract: {breach:?}")
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

/// May so many be inside together, of whom so many are readers?
pub(crate) fn compatible(group: &Group, inside: u32, readers: u32) -> bool {
    inside <= group.permits() || readers == inside
}

/// What each node of a group did as it began, in the order of the nodes.
pub type Opening<A> = Vec<Effects<<A as Algorithm>::Message>>;

/// All members of a group, and who of them is inside.
#[derive(Clone, Debug)]
pub struct Nodes<A: Algorithm> {
    group: Arc<Group>,
    members: Vec<Member<A>>,
    /// How many permits are held, readers among them.
    inside: u32,
    /// How many of them are held in shared mode.
    readers: u32,
}

impl<A: Algorithm> PartialEq for Nodes<A> {
    fn eq(&self, other: &Self) -> bool {
        self.members == other.members
    }
}

impl<A: Algorithm> Eq for Nodes<A> {}

/// Who is inside follows from the members, and the group is the same for all.
impl<A: Algorithm> Hash for Nodes<A> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.members.hash(state);
    }
}

impl<A: Algorithm> Nodes<A> {
    /// Begin all nodes of `group`.
    pub fn begin(group: Arc<Group>, start: &Start) -> Result<(Self, Opening<A>), Violation> {
        let (mut members, mut opening) = (Vec::new(), Vec::new());
        for node in group.nodes() {
            let mut out = Effects::default();
            let member = Member::begin(node, &group, start, &mut out);
            members.push(member.map_err(|breach| Violation::Breach { node, breach })?);
            opening.push(out);
        }
        let held = |mode: Option<Mode>| {
            let holders = start.holders.iter().filter(|h| mode.is_none_or(|mode| h.mode == mode));
            holders.map(|holder| holder.permits).sum()
        };
        let (inside, readers) = (held(None), held(Some(Mode::Shared)));
        Ok((Self { group, members, inside, readers }, opening))
    }

    /// These members; what the crashed ones held, they hold no more.
    pub(crate) fn from_members(
        group: Arc<Group>,
        members: Vec<Member<A>>,
        crashed: &NodeSet,
    ) -> Self {
        let mut nodes = Self { group, members, inside: 0, readers: 0 };
        for member in nodes.members.iter().filter(|member| !crashed.contains(member.me())) {
            nodes.inside += member.held();
            nodes.readers += if member.mode() == Mode::Shared { member.held() } else { 0 };
        }
        nodes
    }

    /// Let one thing happen to `node`; what it did is in `out`.
    pub fn step(
        &mut self,
        node: NodeId,
        input: Input<A::Message>,
        out: &mut Effects<A::Message>,
    ) -> Result<(), Violation> {
        if matches!(input, Input::Release) {
            self.leave(node);
        }
        let stepped = self.members[node.index()].step(&self.group, input, out);
        stepped.map_err(|breach| Violation::Breach { node, breach })?;
        if let Some(reason) = out.rejected() {
            return Err(Violation::Rejected { node, reason });
        }
        if out.entered() { self.enter(node) } else { Ok(()) }
    }

    fn enter(&mut self, node: NodeId) -> Result<(), Violation> {
        self.inside += 1;
        let shared = self.members[node.index()].mode() == Mode::Shared;
        self.readers += u32::from(shared);
        if compatible(&self.group, self.inside, self.readers) {
            return Ok(());
        }
        Err(Violation::Together(self.who(|member| member.held() > 0)))
    }

    fn leave(&mut self, node: NodeId) {
        self.inside -= 1;
        self.readers -= u32::from(self.members[node.index()].mode() == Mode::Shared);
    }

    /// A node has crashed: what it held, it holds no more.
    pub fn crash(&mut self, node: NodeId) {
        for _ in 0..self.members[node.index()].held() {
            self.leave(node);
        }
    }

    /// Forget the lock at a node, which a service does to save memory, and begin it again from the
    /// node's floor. What the node did as it began is in `out`.
    pub fn forget(&mut self, node: NodeId, out: &mut Effects<A::Message>) -> Result<(), Violation> {
        let floor = self.members[node.index()].floor().expect("only what has a floor is forgotten");
        let start = Start { holders: Vec::new(), floor };
        self.begin_again(node, &start, out)
    }

    /// Begin the lock again at a node that is outside. What the node did as it began is in `out`.
    pub(crate) fn begin_again(
        &mut self,
        node: NodeId,
        start: &Start,
        out: &mut Effects<A::Message>,
    ) -> Result<(), Violation> {
        let member = Member::begin(node, &self.group, start, out);
        let member = member.map_err(|breach| Violation::Breach { node, breach })?;
        self.members[node.index()] = member;
        Ok(())
    }

    /// Put another state of the algorithm in the place of a node's own.
    pub(crate) fn replace(&mut self, node: NodeId, algorithm: A) {
        let member = &mut self.members[node.index()];
        *member = member.with_algorithm(algorithm);
    }

    /// The nodes for which `test` holds.
    pub fn who(&self, test: impl Fn(&Member<A>) -> bool) -> Vec<NodeId> {
        self.members.iter().filter(|member| test(member)).map(Member::me).collect()
    }

    /// The nodes in a phase.
    pub fn in_phase(&self, phase: Phase) -> Vec<NodeId> {
        self.who(|member| member.phase() == phase)
    }

    /// How many permits are held.
    pub fn inside(&self) -> u32 {
        self.inside
    }

    /// One member.
    pub fn member(&self, node: NodeId) -> &Member<A> {
        &self.members[node.index()]
    }

    /// The group.
    pub fn group(&self) -> &Arc<Group> {
        &self.group
    }
}
