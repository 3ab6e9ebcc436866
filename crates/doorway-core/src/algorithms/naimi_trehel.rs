//! Naimi, Trehel & Arnold, "A Log(N) Distributed Mutual Exclusion Algorithm Based on Path
//! Reversal", Journal of Parallel and Distributed Computing 34(1), 1996.
//!
//! Who has the token may enter. Those who wait form a queue, each knowing only who comes next.
//! Every node knows a father: whom it believes to be the last of that queue. A request climbs from
//! father to father until it finds the last one, and everyone it passes takes the requester for
//! their father, since that is now the last. So the paths stay short: log N messages an entry on
//! average.
//!
//! # Rules
//!
//! 1. To ask: without a father the token is here: enter. Else send REQUEST to the father and have
//!    none.
//! 2. On REQUEST with a father: pass it on to the father.
//! 3. On REQUEST without one: the requester is our next, if we wait or are inside; else send it
//!    TOKEN.
//! 4. After either: the requester is our father.
//! 5. On TOKEN: enter.
//! 6. To leave: send TOKEN to the next, if there is one.
//!
//! # Why it is right
//!
//! There is one token, and only who has it is inside. The fathers form a forest whose roots are the
//! last of the queue and those whose request is still climbing, and a request under way makes one
//! tree of two. So it meets a root after at most N−1 steps, which is then the last for good: the
//! queue never forks, and the token walks along it.

use super::prelude::*;

/// The messages of the paper.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    /// This node wants in.
    Request(NodeId),
    /// The right to enter.
    Token,
}

/// The state of one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NaimiTrehel {
    me: NodeId,
    /// Whom we believe to be the last in the queue; nobody if that is us.
    father: Option<NodeId>,
    /// Who comes after us, from its request to our `release`.
    next: Option<NodeId>,
    phase: Phase,
}

impl Algorithm for NaimiTrehel {
    type Message = Message;

    const INFO: Info = Info {
        name: "naimi-trehel",
        summary: "requests climb to the last of a queue, and paths shorten as they pass",
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
        // As after the root's entry in a fresh group, where node 1 is everyone's father.
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
                    return out.reject("a request of nobody else in the group");
                }
                match self.father {
                    Some(father) if father == node => {
                        return out.reject("a request that has passed here before");
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
        None // A node started anew would forget the end of the queue, or make a second token.
    }

    fn serves(message: &Message, _from: NodeId, to: NodeId) -> Option<NodeId> {
        (*message == Message::Token).then_some(to)
    }
}
