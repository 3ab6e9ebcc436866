//! Raymond, "A Tree-Based Algorithm for Distributed Mutual Exclusion", ACM Transactions on Computer
//! Systems 7(1), 1989.
//!
//! The nodes form a tree on which one token moves. Each node knows only its neighbours, and which
//! of them lies towards the token. Requests climb along these pointers, and each node on the way
//! asks on behalf of all who asked it, so it asks once. The token comes back down the same way and
//! turns every pointer it passes, like a lift that carries its own call buttons.
//!
//! # Rules
//!
//! 1. To ask: queue up at oneself.
//! 2. On REQUEST: queue up the neighbour that sent it.
//! 3. On PRIVILEGE: the token is here.
//! 4. To leave: the token is here and no longer in use.
//! 5. After each of these, ASSIGN-PRIVILEGE: with the token here and not in use, take the first of
//!    the queue; enter if it is oneself, else point at it and send it PRIVILEGE.
//! 6. Then MAKE-REQUEST: with the token elsewhere and a queue, send REQUEST towards it, once.
//!
//! # Why it is right
//!
//! There is one token, and only who has it is inside. Pointers lead to it from everywhere, as it
//! turns those it passes. A tree has no cycles, so requests arrive; a queue serves in turn, with
//! each neighbour in it once, so nobody waits for ever. A request that overtakes the token it
//! follows is merely queued: order plays no part.

use super::prelude::*;

/// The messages of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    /// Someone on this side of the edge wants the token.
    Request,
    /// The token.
    Privilege,
}

/// The state of one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RaymondTree {
    me: NodeId,
    /// The neighbour towards the token, or ourselves while it is here (HOLDER).
    holder: NodeId,
    /// Is our client inside?
    using: bool,
    /// Has the holder been asked? False while the token is here.
    asked: bool,
    /// Neighbours that want the token, and ourselves if our client does (`REQUEST_Q`).
    queue: VecDeque<NodeId>,
    /// Those in the queue, so that a centre with a million neighbours need not search it.
    queued: BTreeSet<NodeId>,
}

impl Algorithm for RaymondTree {
    type Message = Message;

    const INFO: Info = Info {
        name: "raymond-tree",
        summary: "a token moves on a tree whose pointers lead to it (the lift)",
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
            return out.reject("a message of no neighbour");
        }
        self.hear(from, msg, out);
    }

    fn release(&mut self, _group: &Group, out: &mut Effects<Message>) {
        self.leave(out);
    }

    fn wanted(&self) -> bool {
        self.queue.iter().any(|node| *node != self.me)
    }

    fn floor(&self) -> Option<u64> {
        None // Started anew, the pointer would lead to where the token once was.
    }
}

/// With everyone waiting, N entries cost one tour of the token over all edges, there and back, and
/// a request for each of its moves.
pub(super) const SATURATED: Formula =
    Formula { text: "4(1-1/N)", of: |group| 4.0 * (1.0 - 1.0 / f64::from(group.size())) };

/// The rules, for whatever messages those of the paper are part of.
impl RaymondTree {
    /// A quiet node that points at `holder`, with its client inside or not.
    pub(super) fn pointing(me: NodeId, holder: NodeId, using: bool) -> Self {
        let (queue, queued) = (VecDeque::new(), BTreeSet::new());
        Self { me, holder, using, asked: false, queue, queued }
    }

    /// Rule 1.
    pub(super) fn ask<M: From<Message>>(&mut self, out: &mut Effects<M>) {
        self.enqueue(self.me);
        self.assign_privilege(out);
        self.make_request(out);
    }

    /// Rules 2 and 3: a message of a neighbour.
    pub(super) fn hear<M: From<Message>>(
        &mut self,
        from: NodeId,
        msg: Message,
        out: &mut Effects<M>,
    ) {
        match msg {
            Message::Request => {
                if !self.enqueue(from) {
                    return out.reject("a second request before the privilege");
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

    /// Point at `holder` and begin; until now the token seemed to be here and in use.
    pub(super) fn begin<M: From<Message>>(&mut self, holder: NodeId, out: &mut Effects<M>) {
        self.holder = holder;
        self.leave(out);
    }

    /// Rule 4.
    pub(super) fn leave<M: From<Message>>(&mut self, out: &mut Effects<M>) {
        self.using = false;
        self.assign_privilege(out);
        self.make_request(out);
    }

    /// Append to the queue; false if the node is in it already.
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

/// What the proofs of the paper speak of.
impl RaymondTree {
    /// The neighbour towards the token, or the node itself while it is there (HOLDER).
    pub fn holder(&self) -> NodeId {
        self.holder
    }

    /// Who wants the token, in the order of being served (`REQUEST_Q`).
    pub fn queue(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.queue.iter().copied()
    }
}
