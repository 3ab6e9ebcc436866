//! The contract between an algorithm and whatever drives it.

use alloc::format;
use alloc::vec::Vec;
use core::fmt::Debug;
use core::hash::Hash;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{BEYOND_LIMIT, CLOCK_LIMIT, Group, GroupError, Info, Moment, NodeId, NodeSet};

/// What crosses the network: comparable, so that worlds have one canonical form, and serialisable.
pub trait Wire:
    Clone + Debug + Eq + Hash + Ord + Serialize + DeserializeOwned + Send + Sync
{
}

impl<T> Wire for T where
    T: Clone + Debug + Eq + Hash + Ord + Serialize + DeserializeOwned + Send + Sync
{
}

/// How a node wants in.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Mode {
    /// Alone; with permits, holding one of them.
    #[default]
    Exclusive,
    /// Together with others that asked for `Shared`.
    Shared,
}

/// A node that is inside when its group begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Who is inside.
    pub node: NodeId,
    /// In which mode.
    pub mode: Mode,
    /// How many permits it holds: 1 unless the algorithm serves permits.
    pub permits: u32,
}

/// How a group begins. A fresh one has no holders and floor zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// Those already inside, at most one entry per node.
    pub holders: Vec<Holder>,
    /// A lower bound for every sequence number, so that requests of a forgotten past stay older;
    /// itself below [`CLOCK_LIMIT`].
    pub floor: u64,
}

impl Start {
    /// A start with one node inside, alone.
    pub fn with_holder(node: NodeId) -> Self {
        let holder = Holder { node, mode: Mode::Exclusive, permits: 1 };
        Self { holders: alloc::vec![holder], floor: 0 }
    }

    /// Can a group of this algorithm begin like this? A view puts it together from what its members
    /// say of themselves, so it is not taken on trust.
    pub fn check(&self, info: &Info, group: &Group) -> Result<(), GroupError> {
        let mut seen = NodeSet::new();
        for Holder { node, mode, permits } in &self.holders {
            if !group.contains(*node) || !seen.insert(*node) {
                let reason = format!("holder {node} is no node of the group, or named twice");
                return Err(GroupError::new(reason));
            }
            if *permits == 0 || *permits > group.seats() {
                let reason = format!("node {node} cannot start with {permits} permits");
                return Err(GroupError::new(reason));
            }
            if *mode == Mode::Shared && !info.shared {
                return Err(GroupError::new(format!("{} does not serve shared mode", info.name)));
            }
        }
        let sum: u64 = self.holders.iter().map(|holder| u64::from(holder.permits)).sum();
        let shared = self.holders.iter().all(|holder| holder.mode == Mode::Shared);
        if !shared && sum > u64::from(group.permits()) {
            return Err(GroupError::new("more start inside than may be inside together"));
        }
        if self.floor >= CLOCK_LIMIT {
            return Err(GroupError::new(BEYOND_LIMIT));
        }
        Ok(())
    }

    /// The entry of `node`, if it starts inside.
    pub fn holder(&self, node: NodeId) -> Option<&Holder> {
        self.holders.iter().find(|holder| holder.node == node)
    }

    /// Where the one token of a group lies at first: with the holder, else with node 1.
    pub fn token(&self) -> NodeId {
        self.holders.first().map_or(NodeId(0), |holder| holder.node)
    }
}

/// One algorithm as seen by one node: a state and a handler for each event.
///
/// Handlers are indivisible and cannot fail; what they want done goes into [`Effects`]. The group
/// is passed in, never kept, so that a state is only what changes.
pub trait Algorithm: Clone + Debug + Eq + Hash + Send + Sync {
    /// The messages, named as in the paper.
    type Message: Wire;

    /// Paper, assumptions and claims as data, so that they are shown and tested.
    const INFO: Info;

    /// The state of node `me` when its group begins.
    fn new(me: NodeId, group: &Group, start: &Start) -> Self;

    /// Begin to act. [`crate::Member::begin`] calls this once, right after [`Algorithm::new`] and
    /// before anything else happens to the node: circulating tokens and waves begin here.
    ///
    /// This runs also where `new` was given holders or a floor, so it must suit whatever state
    /// `new` built. A lock service begins a lock at a node only when a client or a message first
    /// needs it there: an algorithm that waits for the `start` of an idle node cannot be served.
    fn start(&mut self, _group: &Group, _out: &mut Effects<Self::Message>) {}

    /// A client of this node wants in. Enters at once or later, through `out.enter()`.
    fn acquire(&mut self, group: &Group, mode: Mode, out: &mut Effects<Self::Message>);

    /// A message of `from` has arrived. One that no correct peer sends is rejected, with the state
    /// left as it was.
    fn receive(
        &mut self,
        group: &Group,
        from: NodeId,
        message: Self::Message,
        out: &mut Effects<Self::Message>,
    );

    /// The client inside leaves (with permits: one of them).
    fn release(&mut self, group: &Group, out: &mut Effects<Self::Message>);

    /// `node` has stopped for ever, as a detector that makes no mistakes has told every survivor,
    /// and `heir` takes its place. Only algorithms that survive a crash by themselves listen.
    fn failed(
        &mut self,
        _group: &Group,
        _node: NodeId,
        _heir: NodeId,
        _out: &mut Effects<Self::Message>,
    ) {
    }

    /// May some other node be waiting? When in doubt, yes.
    fn wanted(&self) -> bool;

    /// The floor from which this state, forgotten while outside, must start again; `None` if it
    /// must not be forgotten.
    fn floor(&self) -> Option<u64>;

    /// Whose request a message serves, where that is not the request whose event sent it. Only the
    /// accounts ask: a deferred reply is paid by the node that waits for it, not by the leaver.
    fn serves(_message: &Self::Message, _from: NodeId, _to: NodeId) -> Option<NodeId> {
        None
    }

    /// Rewrite a whole group at one moment into the simplest one that behaves the same from here
    /// on. Only checkers ask: numbers that grow with every request would make all their worlds new.
    ///
    /// Nothing but the exact will do: whatever the group can do before, it can do after, step by
    /// step, save that messages which change nothing need not be under way.
    fn settle(_group: &Group, _moment: &mut Moment<Self>) {}
}

/// What one event made a node do, in the order in which it did it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effects<M> {
    sends: Vec<(NodeId, M)>,
    entered: bool,
    rejected: Option<&'static str>,
}

impl<M> Default for Effects<M> {
    fn default() -> Self {
        Self { sends: Vec::new(), entered: false, rejected: None }
    }
}

impl<M> Effects<M> {
    /// Send `message` to another node. A node never sends to itself: it acts at once instead.
    pub fn send(&mut self, to: NodeId, message: M) {
        self.sends.push((to, message));
    }

    /// Send a copy of `message` to each of `nodes`.
    pub fn send_all(&mut self, nodes: impl IntoIterator<Item = NodeId>, message: &M)
    where
        M: Clone,
    {
        self.sends.extend(nodes.into_iter().map(|to| (to, message.clone())));
    }

    /// The waiting client of this node is now inside.
    pub fn enter(&mut self) {
        self.entered = true;
    }

    /// No correct peer sends this message: it changed nothing.
    pub fn reject(&mut self, reason: &'static str) {
        self.rejected = Some(reason);
    }

    /// Do what an algorithm inside this one did, with its messages put into ours.
    pub fn forward<N>(&mut self, inner: Effects<N>, wrap: impl Fn(N) -> M) {
        self.sends.extend(inner.sends.into_iter().map(|(to, message)| (to, wrap(message))));
        self.entered |= inner.entered;
        self.rejected = self.rejected.or(inner.rejected);
    }

    /// The messages sent, in order.
    pub fn sends(&self) -> &[(NodeId, M)] {
        &self.sends
    }

    /// Take the messages out, keeping the buffer.
    pub fn drain(&mut self) -> impl Iterator<Item = (NodeId, M)> + '_ {
        self.sends.drain(..)
    }

    /// Whether the client went inside.
    pub fn entered(&self) -> bool {
        self.entered
    }

    /// Why the message was refused, if it was.
    pub fn rejected(&self) -> Option<&'static str> {
        self.rejected
    }

    /// Forget everything, keeping the buffer.
    pub fn clear(&mut self) {
        self.sends.clear();
        self.entered = false;
        self.rejected = None;
    }
}
