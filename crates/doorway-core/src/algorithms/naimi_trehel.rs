//! Naimi, Trehel & Arnold, "A Log(N) Distributed Mutual Exclusion Algorithm Based on Path
//! Reversal", Journal of Parallel and Distributed Computing 34(1), 1996.
//!
//! The node that has the token may enter. Waiting nodes form a queue, in which each node knows only
//! the next one. Every node has a father: the node that it believes to be the last of the queue. A
//! request climbs from father to father until it finds the last node, and every node that it passes
//! makes the requester its father, since the requester is now the last. So the paths stay short: an
//! entry takes about log N messages on average.
//!
//! # Rules
//!
//! 1. To ask: if there is no father, the token is here: enter. Else send REQUEST to the father and
//!    have no father from then on.
//! 2. On REQUEST with a father: pass it on to the father.
//! 3. On REQUEST without a father: if we wait or are inside, the requester is our next; else send
//!    it TOKEN.
//! 4. After 2 and 3: the requester is our father.
//! 5. On TOKEN: enter.
//! 6. To leave: send TOKEN to the next, if there is one.
//!
//! # Why it is right
//!
//! There is one token, and only the node that has it is inside. The fathers form a forest. Its
//! roots are the last node of the queue and the nodes whose request is still climbing, and a
//! request under way joins two trees. So a request meets a root after at most N−1 steps, and is
//! queued behind that root for good. Hence the queue never forks, and the token walks along it.

use super::prelude::*;

/// The messages of Naimi & Trehel's algorithm.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    /// This node wants to enter.
    Request(NodeId),
    /// The right to enter.
    Token,
}

/// The state of one node in Naimi & Trehel's algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NaimiTrehel {
    me: NodeId,
    /// The node that we believe to be the last of the queue; `None` if we are.
    father: Option<NodeId>,
    /// The node that comes after us, from its request to our `release`.
    next: Option<NodeId>,
    phase: Phase,
}

impl Algorithm for NaimiTrehel {
    type Message = Message;

    const INFO: Info = Info {
        name: "naimi-trehel",
        summary: "requests climb to the end of a queue, and shorten the paths that they take",
        paper: "Naimi, Trehel & Arnold, A Log(N) Distributed Mutual Exclusion Algorithm Based on Path Reversal, JPDC 34(1)",
        year: 1996,
        kind: Kind::Token,
        served: true,
        messages: Claim {
            least: Formula::ZERO,
            most: Formula {
                text: "N",
                of: |group| if group.size() > 1 { group.size().into() } else { 0.0 },
            },
            per: Per::Entry,
            light: Some(Formula {
                text: "H(N-1) = 1 + 1/2 + ... + 1/(N-1)",
                of: |group| (1..group.size()).map(|k| f64::from(k).recip()).sum(),
            }),
            heavy: None,
        },
        ..Info::BASE
    };

    fn new(me: NodeId, _group: &Group, start: &Start) -> Self {
        let root = start.token();
        // The state after the root has entered in a fresh group, where node 1 is the father of all.
        let father = if me == NodeId(0) { root } else { NodeId(0) };
        let phase = start.holder(me).map_or(Phase::Outside, |_| Phase::Inside);
        Self { me, father: (me != root).then_some(father), next: None, phase }
    }

    fn acquire(&mut self, _group: &Group, _mode: Mode, out: &mut Effects<Message>) {
        if let Some(father) = self.father.take() {
            self.phase = Phase::Waiting;
            out.send(father, Message::Request(self.me));
        } else {
            self.phase = Phase::Inside;
            out.enter();
        }
    }

    fn receive(
        &mut self,
        group: &Group,
        _from: NodeId,
        message: Message,
        out: &mut Effects<Message>,
    ) {
        match message {
            Message::Request(node) => {
                if node == self.me || !group.contains(node) {
                    return out.reject("a request that is not by another node of the group");
                }
                match self.father {
                    Some(father) if father == node => {
                        return out.reject("a request that has passed this node before");
                    }
                    Some(father) => out.send(father, Message::Request(node)),
                    None if self.phase == Phase::Outside => out.send(node, Message::Token),
                    None => self.next = Some(node),
                }
                self.father = Some(node);
            }
            Message::Token => {
                if self.phase != Phase::Waiting {
                    return out.reject("a token that was not asked for");
                }
                self.phase = Phase::Inside;
                out.enter();
            }
        }
    }

    fn release(&mut self, _group: &Group, out: &mut Effects<Message>) {
        self.phase = Phase::Outside;
        if let Some(next) = self.next.take() {
            out.send(next, Message::Token);
        }
    }

    fn wanted(&self) -> bool {
        self.next.is_some()
    }

    fn floor(&self) -> Option<u64> {
        None // A node that began again would lose the end of the queue, or make a second token.
    }

    fn serves(message: &Message, _from: NodeId, to: NodeId) -> Option<NodeId> {
        (*message == Message::Token).then_some(to)
    }
}
