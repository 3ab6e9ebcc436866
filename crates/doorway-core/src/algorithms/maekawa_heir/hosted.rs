//! Arbiters that can be inherited, and which node runs which.

use crate::algorithms::maekawa::arbiter::{Answer, Arbiter, Reply};
use crate::algorithms::maekawa::{Message, Repaired, cost};
use crate::algorithms::prelude::*;
use crate::settle::each_of_queue;

/// Answers of arbiters, each with the request that it is about.
pub type Replies = Vec<(Timestamp, Answer)>;

/// The arbiters that run at a node, and where those of crashed nodes run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostedArbiters {
    /// The arbiters that run here, by the node to which they belong: this node's own, and those
    /// that it inherited.
    here: BTreeMap<NodeId, HostedArbiter>,
    /// The crashed nodes, each with the node that took its place.
    heirs: BTreeMap<NodeId, NodeId>,
}

impl HostedArbiters {
    /// Only the node's own arbiter, while no node has crashed.
    pub fn new(me: NodeId, arbiter: Arbiter) -> Self {
        Self { here: BTreeMap::from([(me, HostedArbiter::open(arbiter))]), heirs: BTreeMap::new() }
    }

    /// Whether this node has crashed.
    pub fn crashed(&self, node: NodeId) -> bool {
        self.heirs.contains_key(&node)
    }

    /// The node that now runs the arbiter of this node.
    pub fn host(&self, arbiter: NodeId) -> NodeId {
        self.heirs.get(&arbiter).map_or(arbiter, |heir| self.host(*heir))
    }

    /// Whether no node has crashed and all arbiters are unlocked, as in the beginning.
    pub fn are_fresh(&self) -> bool {
        self.heirs.is_empty() && self.here.values().all(HostedArbiter::is_free)
    }

    /// Call `each` with the sequence numbers of all requests known here.
    pub fn numbers(&mut self, each: NumberVisitor<'_>) {
        for hosted in self.here.values_mut() {
            hosted.arbiter.numbers(each);
            each_of_queue(&mut hosted.early, each);
        }
    }

    /// Handle a message for an arbiter.
    pub fn handle(
        &mut self,
        from: NodeId,
        arbiter: NodeId,
        message: &Message,
    ) -> Result<Reply, &'static str> {
        let hosted =
            self.here.get_mut(&arbiter).ok_or("a message for an arbiter that does not run here")?;
        hosted.handle(from, message)
    }

    /// Handle RECOVER: what `from` knows about a lost arbiter.
    pub fn recover(
        &mut self,
        group: &Group,
        from: NodeId,
        arbiter: NodeId,
        request: Option<(u64, bool)>,
    ) -> Result<Replies, &'static str> {
        let asks = |node| cost::asks(group, node, arbiter);
        if !self.here.contains_key(&arbiter) && from != arbiter {
            let live = group.others(arbiter).filter(|node| !self.crashed(*node));
            let hosted = HostedArbiter::inherited(live.filter(|node| asks(*node)).collect());
            self.here.insert(arbiter, hosted);
        }
        let hosted = self.here.get_mut(&arbiter).ok_or("knowledge that we did not wait for")?;
        hosted.recover(from, request)
    }

    /// The arbiters in the quorums of `me` that are lost when `node` crashes.
    pub fn lost(&self, group: &Group, me: NodeId, node: NodeId) -> BTreeSet<NodeId> {
        let ours = cost::quorums(group, me).flatten().copied();
        ours.filter(|arbiter| self.host(*arbiter) == node).collect()
    }

    /// Record that `node` has crashed and `heir` takes its place. Returns the answers that each
    /// arbiter gives as a result.
    pub fn succeed(&mut self, node: NodeId, heir: NodeId) -> Vec<(NodeId, Replies)> {
        self.heirs.insert(node, heir);
        self.here.iter_mut().map(|(arbiter, hosted)| (*arbiter, hosted.remove(node))).collect()
    }
}

/// An arbiter that runs here. If it was inherited, it is closed until every node that may know
/// something about the lost arbiter has told it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct HostedArbiter {
    arbiter: Arbiter,
    /// The nodes that have not yet told what they know; empty once the arbiter is open.
    awaited: NodeSet,
    /// The requests that came before it opened.
    early: BTreeSet<Timestamp>,
}

impl HostedArbiter {
    /// An arbiter that is open from the beginning.
    fn open(arbiter: Arbiter) -> Self {
        Self { arbiter, awaited: NodeSet::new(), early: BTreeSet::new() }
    }

    /// An arbiter that opens when all of `awaited` have said what they know.
    fn inherited(awaited: NodeSet) -> Self {
        Self { awaited, ..Self::open(Arbiter::default()) }
    }

    /// Whether it is open and unlocked.
    fn is_free(&self) -> bool {
        self.awaited.is_empty() && self.arbiter.is_free()
    }

    /// Handle a message for this arbiter.
    fn handle(&mut self, from: NodeId, message: &Message) -> Result<Reply, &'static str> {
        match message {
            Message::Request(_) if self.early.iter().any(|early| early.node == from) => {
                Err("a second request before the release of the first")
            }
            Message::Request(clock) if !self.awaited.is_empty() => {
                self.early.insert(Timestamp { clock: *clock, node: from });
                Ok(None)
            }
            _ => self.arbiter.handle::<Repaired>(from, message),
        }
    }

    /// Handle RECOVER: the number of the sender's request, and whether it has the lock.
    fn recover(
        &mut self,
        from: NodeId,
        request: Option<(u64, bool)>,
    ) -> Result<Replies, &'static str> {
        if !self.awaited.contains(from) {
            return Err("knowledge that we did not wait for");
        }
        if let Some((clock, has_lock)) = request {
            let request = Timestamp { clock, node: from };
            if !has_lock {
                self.early.insert(request);
            } else if self.arbiter.is_free() {
                self.arbiter = Arbiter::locked_for(Some(request));
            } else {
                return Err("a second node that claims to have the lock");
            }
        }
        self.awaited.remove(from);
        Ok(self.admit())
    }

    /// Drop the request of `node`, which has crashed, and expect nothing from it.
    fn remove(&mut self, node: NodeId) -> Replies {
        self.awaited.remove(node);
        self.early.retain(|request| request.node != node);
        let next = self.arbiter.remove(node);
        next.into_iter().chain(self.admit()).collect()
    }

    /// If the arbiter is open, handle the early requests as if they came now, the oldest first.
    fn admit(&mut self) -> Replies {
        if !self.awaited.is_empty() {
            return Vec::new();
        }
        let early = core::mem::take(&mut self.early).into_iter();
        early
            .filter_map(|request| self.arbiter.request::<Repaired>(request).ok().flatten())
            .collect()
    }
}
