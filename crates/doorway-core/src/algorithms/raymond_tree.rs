//! Raymond, "A Tree-Based Algorithm for Distributed Mutual Exclusion", ACM Transactions on Computer
//! Systems 7(1), 1989.
//!
//! The nodes form a tree on which one token moves. Each node knows only its neighbours, and which
//! of them lies towards the token. Requests climb along these pointers, and each node on the way
//! asks once on behalf of all neighbours that asked it. The token comes back along the same path
//! and turns every pointer that it passes, like a lift; lectures call it the lift algorithm.
//!
//! # Rules
//!
//! 1. To ask: append the node itself to its queue.
//! 2. On REQUEST: append the neighbour that sent it to the queue.
//! 3. On PRIVILEGE: the token is here.
//! 4. To leave: the token is here and no longer in use.
//! 5. After each of these, ASSIGN-PRIVILEGE: if the token is here and not in use, take the first
//!    node of the queue; enter if it is the node itself, else point at it and send it PRIVILEGE.
//! 6. Then MAKE-REQUEST: if the token is elsewhere and the queue is not empty, send REQUEST towards
//!    the token, once.
//!
//! # Why it is right
//!
//! There is one token, and only the node that has it is inside. The pointers of all nodes lead to
//! it, since it turns those that it passes. A tree has no cycles, so requests arrive. A queue is
//! served in order and contains each neighbour once, so no node waits for ever. A request that
//! overtakes the token sent before it is merely queued, so the order of delivery does not matter.

use super::prelude::*;

/// The messages of Raymond's tree algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    /// A node on my side of the edge wants the token.
    Request,
    /// The token.
    Privilege,
}

/// The state of one node in Raymond's tree algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RaymondTree {
    me: NodeId,
    /// The neighbour towards the token, or this node while the token is here (HOLDER).
    holder: NodeId,
    /// Whether our client is inside (USING).
    using: bool,
    /// Whether we have sent REQUEST to the holder (ASKED). False while the token is here.
    asked: bool,
    /// The neighbours that want the token, and this node if its client does (`REQUEST_Q`).
    queue: VecDeque<NodeId>,
    /// The nodes of the queue as a set, so that a node with a million neighbours need not search
    /// the queue.
    queued: BTreeSet<NodeId>,
}

impl Algorithm for RaymondTree {
    type Message = Message;

    const INFO: Info = Info {
        name: "raymond-tree",
        summary: "a token moves on a tree whose pointers lead to it",
        paper: "Raymond, A Tree-Based Algorithm for Distributed Mutual Exclusion, ACM TOCS 7(1)",
        year: 1989,
        kind: Kind::Token,
        needs: Needs::Tree,
        served: true,
        messages: Claim {
            least: Formula::ZERO,
            most: Formula { text: "2 x diameter", of: |g| 2.0 * f64::from(g.tree().diameter()) },
            per: Per::Run,
            light: Some(Formula {
                text: "2 x mean distance",
                of: |g| 2.0 * g.tree().mean_distance(),
            }),
            heavy: Some(SATURATED),
        },
        ..Info::BASE
    };

    fn new(me: NodeId, group: &Group, start: &Start) -> Self {
        let token = start.token();
        let holder = if token == me { me } else { group.tree().next_hop(me, token) };
        Self::pointing(me, holder, start.holder(me).is_some())
    }

    fn acquire(&mut self, _group: &Group, _mode: Mode, out: &mut Effects<Message>) {
        self.ask(out);
    }

    fn receive(&mut self, group: &Group, from: NodeId, msg: Message, out: &mut Effects<Message>) {
        if !group.tree().adjacent(self.me, from) {
            return out.reject("a message from a node that is not a neighbour");
        }
        self.handle(from, msg, out);
    }

    fn release(&mut self, _group: &Group, out: &mut Effects<Message>) {
        self.leave(out);
    }

    fn wanted(&self) -> bool {
        self.queue.iter().any(|node| *node != self.me)
    }

    fn floor(&self) -> Option<u64> {
        None // If a node began again, its pointer would lead to where the token once was.
    }
}

/// The mean cost when all nodes wait: N entries take one tour of the token over all edges, there
/// and back, and a request for each of its moves.
pub(super) const SATURATED: Formula =
    Formula { text: "4(1-1/N)", of: |group| 4.0 * (1.0 - 1.0 / f64::from(group.size())) };

/// The rules, for any message type into which the messages of the paper can be converted.
impl RaymondTree {
    /// A node without open requests that points at `holder`; `using` says whether its client is
    /// inside.
    pub(super) fn pointing(me: NodeId, holder: NodeId, using: bool) -> Self {
        let (queue, queued) = (VecDeque::new(), BTreeSet::new());
        Self { me, holder, using, asked: false, queue, queued }
    }

    /// Rule 1: the client of this node asks.
    pub(super) fn ask<M: From<Message>>(&mut self, out: &mut Effects<M>) {
        self.enqueue(self.me);
        self.assign_privilege(out);
        self.make_request(out);
    }

    /// Rules 2 and 3: handle a message from a neighbour.
    pub(super) fn handle<M: From<Message>>(
        &mut self,
        from: NodeId,
        msg: Message,
        out: &mut Effects<M>,
    ) {
        match msg {
            Message::Request => {
                if !self.enqueue(from) {
                    return out.reject("a second request before the privilege was sent");
                }
            }
            Message::Privilege => {
                if !self.asked || self.holder != from {
                    return out.reject("a privilege that was not asked for");
                }
                (self.holder, self.asked) = (self.me, false);
            }
        }
        self.assign_privilege(out);
        self.make_request(out);
    }

    /// Point at `holder` and begin. Until now the state says that the token is here and in use.
    pub(super) fn begin<M: From<Message>>(&mut self, holder: NodeId, out: &mut Effects<M>) {
        self.holder = holder;
        self.leave(out);
    }

    /// Rule 4: the client of this node leaves.
    pub(super) fn leave<M: From<Message>>(&mut self, out: &mut Effects<M>) {
        self.using = false;
        self.assign_privilege(out);
        self.make_request(out);
    }

    /// Append a node to the queue. Returns false if it is in the queue already.
    fn enqueue(&mut self, node: NodeId) -> bool {
        let added = self.queued.insert(node);
        if added {
            self.queue.push_back(node);
        }
        added
    }

    fn assign_privilege<M: From<Message>>(&mut self, out: &mut Effects<M>) {
        if self.holder != self.me || self.using {
            return;
        }
        let Some(first) = self.queue.pop_front() else { return };
        self.queued.remove(&first);
        if first == self.me {
            self.using = true;
            out.enter();
        } else {
            self.holder = first;
            out.send(first, Message::Privilege.into());
        }
    }

    fn make_request<M: From<Message>>(&mut self, out: &mut Effects<M>) {
        if self.holder != self.me && !self.queue.is_empty() && !self.asked {
            self.asked = true;
            out.send(self.holder, Message::Request.into());
        }
    }
}

/// The variables that the proofs of the paper use.
impl RaymondTree {
    /// The neighbour towards the token, or the node itself while it has the token (HOLDER).
    pub fn holder(&self) -> NodeId {
        self.holder
    }

    /// The nodes that want the token, in the order in which they will be served (`REQUEST_Q`).
    pub fn queue(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.queue.iter().copied()
    }
}
