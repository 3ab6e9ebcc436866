//! The contract between an algorithm and its driver.

use alloc::format;
use alloc::vec::Vec;
use core::fmt::Debug;
use core::hash::Hash;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{BEYOND_LIMIT, CLOCK_LIMIT, Group, GroupError, Info, NodeId, NodeSet, Snapshot};

/// A message that can cross the network. It is serialisable, and it has an order, so that a checker
/// can keep the messages under way in one canonical form.
pub trait Wire:
    Clone + Debug + Eq + Hash + Ord + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

impl<T> Wire for T where
    T: Clone + Debug + Eq + Hash + Ord + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

/// How a node wants to enter.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Mode {
    /// Alone. In a group with permits: with one permit.
    #[default]
    Exclusive,
    /// Together with any number of others that are in `Shared` mode.
    Shared,
}

/// A node that is inside when its group begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The node.
    pub node: NodeId,
    /// The mode in which it is inside.
    pub mode: Mode,
    /// The number of permits it holds: 1 unless the algorithm serves permits.
    pub permits: u32,
}

/// The state in which a group begins. A fresh group has no holders and floor zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// The nodes that are already inside, at most one entry per node.
    pub holders: Vec<Holder>,
    /// A lower bound for sequence numbers, itself below [`CLOCK_LIMIT`]. New requests get higher
    /// numbers, so they count as younger than any request that the node has forgotten.
    pub floor: u64,
}

impl Start {
    /// A start with one node inside, in exclusive mode.
    pub fn with_holder(node: NodeId) -> Self {
        let holder = Holder { node, mode: Mode::Exclusive, permits: 1 };
        Self { holders: alloc::vec![holder], floor: 0 }
    }

    /// Check that a group of this algorithm can begin this way. A lock service builds a start from
    /// what the members of a view say about themselves, so it must not be trusted unchecked.
    pub fn check(&self, info: &Info, group: &Group) -> Result<(), GroupError> {
        let mut seen = NodeSet::new();
        for Holder { node, mode, permits } in &self.holders {
            if !group.contains(*node) || !seen.insert(*node) {
                let reason =
                    format!("holder {node} is not a node of the group, or is listed twice");
                return Err(GroupError::new(reason));
            }
            if *permits == 0 || *permits > group.seats() {
                let reason = format!(
                    "node {node} cannot start with {permits} permits: it may hold 1 to {}",
                    group.seats()
                );
                return Err(GroupError::new(reason));
            }
            if *mode == Mode::Shared && !info.shared {
                return Err(GroupError::new(format!("{} does not serve shared mode", info.name)));
            }
        }
        let sum: u64 = self.holders.iter().map(|holder| u64::from(holder.permits)).sum();
        let shared = self.holders.iter().all(|holder| holder.mode == Mode::Shared);
        if !shared && sum > u64::from(group.permits()) {
            return Err(GroupError::new("the holders at the start may not be inside together"));
        }
        if self.floor >= CLOCK_LIMIT {
            return Err(GroupError::new(BEYOND_LIMIT));
        }
        Ok(())
    }

    /// The entry of `node`, or `None` if it does not start inside.
    pub fn holder(&self, node: NodeId) -> Option<&Holder> {
        self.holders.iter().find(|holder| holder.node == node)
    }

    /// The node that has the token when a token algorithm begins: the holder, or node 1 if there is
    /// none.
    pub fn token(&self) -> NodeId {
        self.holders.first().map_or(NodeId(0), |holder| holder.node)
    }
}

/// One algorithm as seen by one node: a state and a handler for each event.
///
/// Handlers are indivisible and cannot fail; what they want done goes into [`Effects`]. The group
/// is passed in, never kept, so that a state is only what changes.
pub trait Algorithm: Clone + Debug + Eq + Hash + Send + Sync + 'static {
    /// The messages, named as in the paper.
    type Message: Wire;

    /// The paper, assumptions and claims as data, so that they can be shown and tested.
    const INFO: Info;

    /// The state of node `me` when its group begins.
    fn new(me: NodeId, group: &Group, start: &Start) -> Self;

    /// Begin to act. [`crate::Member::begin`] calls this once, right after [`Algorithm::new`] and
    /// before anything else happens to the node: circulating tokens and waves begin here.
    ///
    /// This runs also where `new` was given holders or a floor, so it must suit every state that
    /// `new` builds. A lock service begins a lock at a node only when a client or a message first
    /// needs it there: an algorithm that waits for the `start` of an idle node can be
    /// served only if its nodes wake that node by a message.
    fn start(&mut self, _group: &Group, _out: &mut Effects<Self::Message>) {}

    /// A client of this node wants to enter. The algorithm calls `out.enter()` now or in a later
    /// step.
    fn acquire(&mut self, group: &Group, mode: Mode, out: &mut Effects<Self::Message>);

    /// A message from `from` has arrived. If no correct peer would send it, the algorithm rejects
    /// it and leaves its state unchanged.
    fn receive(
        &mut self,
        group: &Group,
        from: NodeId,
        message: Self::Message,
        out: &mut Effects<Self::Message>,
    );

    /// The client inside leaves. With permits, the node gives back one of them.
    fn release(&mut self, group: &Group, out: &mut Effects<Self::Message>);

    /// The waiting client has given up. Only algorithms that declare [`Info::withdraws`] are told.
    ///
    /// From now on the request must not keep any other node waiting, except until a message
    /// between nodes that work has arrived. Answers to the request may still be under way, and the
    /// client may ask again before they arrive: they must not count for the new request.
    fn withdraw(&mut self, _group: &Group, _out: &mut Effects<Self::Message>) {}

    /// `node` has crashed for good, and `heir` takes its place. A failure detector that makes no
    /// mistakes tells every survivor. Only algorithms that survive a crash by themselves react.
    fn failed(
        &mut self,
        _group: &Group,
        _node: NodeId,
        _heir: NodeId,
        _out: &mut Effects<Self::Message>,
    ) {
    }

    /// Whether some other node may be waiting. If the node cannot know, the answer is true.
    fn wanted(&self) -> bool;

    /// The floor with which the node must begin again if it forgets this state while outside;
    /// `None` if the state must not be forgotten.
    fn floor(&self) -> Option<u64>;

    /// The node whose request a message serves, if that is not the request whose step sent it. Only
    /// the counting of messages per entry asks: a deferred reply is charged to the request that
    /// waits for it, not to the node that leaves and sends it.
    fn serves(_message: &Self::Message, _from: NodeId, _to: NodeId) -> Option<NodeId> {
        None
    }

    /// Rewrite a whole group at one moment into the simplest group that behaves the same from here
    /// on. Only checkers call this: sequence numbers grow for ever, so without it no two worlds
    /// would ever be equal and a search would never end.
    ///
    /// The rewriting must be exact: the group before and the group after can take the same steps,
    /// now and later. The one exception is a message that would change nothing on arrival, or only
    /// cause other messages of this kind: it may be dropped. The messages that stay keep their
    /// order, over all channels. To settle a settled group changes nothing.
    fn settle(_group: &Group, _snapshot: &mut Snapshot<Self>) {}
}

/// What a node does in one step, in order: the messages it sends, and whether it enters.
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
    /// Send `message` to another node. A node never sends to itself; it acts at once instead.
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

    /// Let the waiting client of this node in.
    pub fn enter(&mut self) {
        self.entered = true;
    }

    /// Refuse a message that no correct peer sends; it has changed nothing. The reason is a noun
    /// phrase that describes the message, such as "a second token".
    pub fn reject(&mut self, reason: &'static str) {
        self.rejected = Some(reason);
    }

    /// Add the effects of an inner algorithm, with each of its messages wrapped into one of ours.
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

    /// Whether the client of this node went inside.
    pub fn entered(&self) -> bool {
        self.entered
    }

    /// Why the message was refused, or `None` if it was accepted.
    pub fn rejected(&self) -> Option<&'static str> {
        self.rejected
    }

    /// Remove all effects, keeping the buffer.
    pub fn clear(&mut self) {
        self.sends.clear();
        self.entered = false;
        self.rejected = None;
    }
}
