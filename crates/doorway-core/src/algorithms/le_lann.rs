//! Le Lann, "Distributed Systems: Towards a Formal Approach", IFIP Congress, 1977.
//!
//! The nodes form a ring on which one token circulates for ever. A node that wants to enter waits
//! until the token comes by, keeps it while inside, and passes it on when it leaves. Any other node
//! passes it on at once. So the token moves also while no node wants to enter.
//!
//! # Rules
//!
//! 1. To ask: remember that the node waits.
//! 2. On TOKEN: enter if waiting; else send TOKEN to the successor.
//! 3. To leave: send TOKEN to the successor.
//! 4. To start: the node that has the token sends TOKEN to its successor.
//!
//! # Why it is right
//!
//! There is one token, and only the node that has it is inside. It visits every node in each round,
//! so a node waits for at most one entry of each other node.

use super::prelude::*;

/// The message of Le Lann's algorithm.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    /// The right to enter.
    Token,
}

/// The state of one node in Le Lann's algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeLann {
    me: NodeId,
    /// Whether our client waits for the token.
    want: bool,
    /// Whether we have the token: while inside, and always in a group of one.
    token: bool,
    /// Whether our client is inside.
    inside: bool,
}

impl Algorithm for LeLann {
    type Message = Message;

    const INFO: Info = Info {
        name: "le-lann",
        summary: "a token circulates on a ring for ever",
        paper: "Le Lann, Distributed Systems: Towards a Formal Approach, IFIP Congress",
        year: 1977,
        kind: Kind::Token,
        messages: Claim {
            least: Formula {
                text: "1 if all want to enter",
                of: |group| f64::from(group.size() > 1),
            },
            most: Formula { text: "unbounded", of: |_| f64::INFINITY },
            per: Per::Run,
            light: None,
            heavy: None,
        },
        ..Info::BASE
    };

    fn new(me: NodeId, _group: &Group, start: &Start) -> Self {
        let token = start.token() == me;
        Self { me, want: false, token, inside: start.holder(me).is_some() }
    }

    fn start(&mut self, group: &Group, out: &mut Effects<Message>) {
        if self.token && !self.inside {
            self.pass(group, out);
        }
    }

    fn acquire(&mut self, _group: &Group, _mode: Mode, out: &mut Effects<Message>) {
        self.want = !self.token;
        if self.token {
            self.enter(out);
        }
    }

    fn receive(
        &mut self,
        group: &Group,
        from: NodeId,
        _token: Message,
        out: &mut Effects<Message>,
    ) {
        if group.successor(from) != self.me {
            return out.reject("a token from a node that is not our predecessor");
        }
        if self.token {
            return out.reject("a second token");
        }
        self.token = true;
        if self.want {
            self.enter(out);
        } else {
            self.pass(group, out);
        }
    }

    fn release(&mut self, group: &Group, out: &mut Effects<Message>) {
        self.inside = false;
        self.pass(group, out);
    }

    fn wanted(&self) -> bool {
        true // A node does not learn which others wait.
    }

    fn floor(&self) -> Option<u64> {
        None // If node 1 began again, it would make a second token.
    }
}

impl LeLann {
    fn enter(&mut self, out: &mut Effects<Message>) {
        (self.want, self.inside) = (false, true);
        out.enter();
    }

    fn pass(&mut self, group: &Group, out: &mut Effects<Message>) {
        if group.size() > 1 {
            self.token = false;
            out.send(group.successor(self.me), Message::Token);
        }
    }
}
