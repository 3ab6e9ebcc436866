//! Suzuki & Kasami, "A Distributed Mutual Exclusion Algorithm", ACM Transactions on Computer
//! Systems 3(4), 1985; over a ring and over a tree after Mühl's lectures.
//!
//! The node that has the token may enter. A node without it numbers its request and sends it to all
//! nodes. The token carries the number of each node's last served request, and a queue of waiting
//! nodes; it goes to the first of them. On a ring it goes to the successor, on a tree to the
//! neighbour on the way; a waiting node that it passes uses it.
//!
//! # Rules
//!
//! 1. To ask: enter if the token is here; else send REQUEST with the node's name and next number:
//!    on a mesh to all others, on a ring to the successor, on a tree to the neighbours.
//! 2. On REQUEST: remember its number. On a tree, pass it on to the other neighbours; on a ring, to
//!    the successor, up to the token or once round. If the token is here and unused, do as in 4.
//! 3. On PRIVILEGE, the token: take the node out of its queue and write the node's number into it;
//!    enter if waiting, else do as in 4. (The paper writes the number on leaving. No node reads the
//!    token in between. Written on arrival, the number is right at once, so the node that has the
//!    token can tell from it which requests are served.)
//! 4. To leave: append to the queue all others that have asked with higher numbers than the
//!    token's; if the queue is not empty, send PRIVILEGE on towards its first node.
//!
//! # Why it is right
//!
//! There is one token, and only the node that has it is inside. A request reaches the node that has
//! the token, or the one that gets it next, and is in the queue from then on. The queue is served
//! in order. A late REQUEST has no higher number than the token and does nothing.
//!
//! # Departures from the text
//!
//! Nodes that are found waiting at the same time are appended to the queue in the order of the
//! ring, beginning with the successor of the node that has the token. The paper appends them in the
//! order of their names, Mühl's slides in the order of their sequence numbers. Any of these orders
//! is right. With the order of the ring, no node is preferred for its name, and numbers of
//! different nodes, which count their own requests only, need not be compared.

use super::prelude::*;

mod settle;

/// The messages of Suzuki & Kasami's algorithm.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    /// This node wants to enter, for the n-th time.
    Request(NodeId, u64),
    /// The right to enter.
    Privilege(Token),
}

/// The contents of the token.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Token {
    /// The nodes that wait for it, in the order in which they will be served (Q of the paper).
    pub queue: Vec<NodeId>,
    /// The number of each node's last served request (LN).
    pub served: Vec<u64>,
}

/// The state of one node in Suzuki & Kasami's algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SuzukiKasami {
    me: NodeId,
    phase: Phase,
    /// The highest number received from each node (RN); our own entry is the number of our last
    /// request.
    requests: Vec<u64>,
    /// The token, while it is here.
    token: Option<Token>,
}

/// The highest cost: the REQUEST goes everywhere, and the token the longest way.
fn most(group: &Group) -> f64 {
    f64::from(match group.wiring() {
        Wiring::Mesh => group.size(),
        Wiring::Ring => 2 * group.size() - 1,
        Wiring::Tree => group.size() - 1 + group.tree().diameter(),
    })
}

/// The mean cost under light load: with probability 1/N the token is here already.
fn light(group: &Group) -> f64 {
    let others = f64::from(group.size() - 1);
    match group.wiring() {
        Wiring::Mesh | Wiring::Ring => others,
        Wiring::Tree => others * others / (others + 1.0) + group.tree().mean_distance(),
    }
}

impl Algorithm for SuzukiKasami {
    type Message = Message;

    const INFO: Info = Info {
        name: "suzuki-kasami",
        summary: "tell every node; the token carries the queue: on a mesh, a ring or a tree",
        paper: "Suzuki & Kasami, A Distributed Mutual Exclusion Algorithm, ACM TOCS 3(4)",
        year: 1985,
        kind: Kind::Token,
        needs: Needs::Wiring,
        served: true,
        messages: Claim {
            least: Formula::ZERO,
            most: Formula { text: "N; ring 2N-1; tree N-1 + diameter", of: most },
            per: Per::Entry,
            light: Some(Formula { text: "N-1; tree (N-1)^2/N + mean distance", of: light }),
            heavy: None,
        },
        ..Info::BASE
    };

    fn new(me: NodeId, group: &Group, start: &Start) -> Self {
        let numbers = alloc::vec![start.floor; group.size() as usize];
        let token = Token { queue: Vec::new(), served: numbers.clone() };
        let phase = start.holder(me).map_or(Phase::Outside, |_| Phase::Inside);
        Self { me, phase, requests: numbers, token: (start.token() == me).then_some(token) }
    }

    fn acquire(&mut self, group: &Group, _mode: Mode, out: &mut Effects<Message>) {
        if self.token.is_some() {
            self.phase = Phase::Inside;
            return out.enter();
        }
        self.phase = Phase::Waiting;
        self.requests[self.me.index()] += 1;
        let request = Message::Request(self.me, self.requests[self.me.index()]);
        self.tell(group, self.me, request, out);
    }

    fn receive(&mut self, group: &Group, from: NodeId, msg: Message, out: &mut Effects<Message>) {
        match msg {
            _ if !group.wired(from, self.me) => {
                out.reject("a message from a node not linked to us");
            }
            Message::Request(node, number) => {
                let direct = group.wiring() != Wiring::Mesh || node == from;
                if node == self.me || !group.contains(node) || !direct {
                    return out.reject("a request that is not by another node of the group");
                }
                // Channels keep no order, so a request with a lower number may arrive late.
                self.requests[node.index()] = self.requests[node.index()].max(number);
                self.tell(group, from, msg, out);
                self.serve(group, out);
            }
            Message::Privilege(mut token) => {
                let known = token.queue.len() <= self.requests.len()
                    && token.queue.iter().all(|node| group.contains(*node));
                let passing = group.wiring() != Wiring::Mesh
                    && token.queue.first().is_some_and(|first| *first != self.me);
                let expected = self.phase == Phase::Waiting || (passing && self.token.is_none());
                if !known || !expected || token.served.len() != self.requests.len() {
                    return out.reject("a token for another group, or one that was not asked for");
                }
                token.served[self.me.index()] = self.requests[self.me.index()];
                token.queue.retain(|node| *node != self.me);
                self.token = Some(token);
                if self.phase == Phase::Waiting {
                    self.phase = Phase::Inside;
                    out.enter();
                }
                self.serve(group, out);
            }
        }
    }

    fn release(&mut self, group: &Group, out: &mut Effects<Message>) {
        self.phase = Phase::Outside;
        self.serve(group, out);
    }

    fn wanted(&self) -> bool {
        // Without the token we do not know which requests are served.
        self.token.as_ref().is_none_or(|Token { queue, served }| {
            !queue.is_empty() || self.requests.iter().zip(served).any(|(asked, last)| asked > last)
        })
    }

    fn floor(&self) -> Option<u64> {
        None // If node 1 began again, it would make a second token.
    }

    fn serves(message: &Message, _from: NodeId, _to: NodeId) -> Option<NodeId> {
        let Message::Privilege(token) = message else { return None };
        token.queue.first().copied()
    }

    fn settle(group: &Group, snapshot: &mut Snapshot<Self>) {
        settle::settle(group, snapshot);
    }
}

impl SuzukiKasami {
    /// Send a request of ours, or pass on that of another node if the topology requires it.
    fn tell(&self, group: &Group, from: NodeId, request: Message, out: &mut Effects<Message>) {
        let Message::Request(node, _) = request else { return };
        let next = group.successor(self.me);
        match group.wiring() {
            Wiring::Mesh if node == self.me => out.send_all(group.others(self.me), &request),
            Wiring::Ring if next != node && self.token.is_none() => out.send(next, request),
            Wiring::Mesh | Wiring::Ring => {}
            Wiring::Tree => {
                let onward = group.tree().neighbours(self.me).filter(|next| *next != from);
                out.send_all(onward, &request);
            }
        }
    }

    /// If the token is here and unused, bring its queue up to date and send it towards the first
    /// node of the queue.
    fn serve(&mut self, group: &Group, out: &mut Effects<Message>) {
        let unused = self.token.take_if(|_| self.phase != Phase::Inside);
        let Some(Token { mut queue, served }) = unused else { return };
        let queued: NodeSet = queue.iter().copied().collect();
        let open = |node: &NodeId| self.requests[node.index()] > served[node.index()];
        queue.extend(group.others_from(self.me).filter(open).filter(|n| !queued.contains(*n)));
        let Some(&first) = queue.first() else { return self.token = Some(Token { queue, served }) };
        let next = match group.wiring() {
            Wiring::Mesh => first,
            Wiring::Ring => group.successor(self.me),
            Wiring::Tree => group.tree().next_hop(self.me, first),
        };
        out.send(next, Message::Privilege(Token { queue, served }));
    }
}
