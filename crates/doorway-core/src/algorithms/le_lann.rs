//! Le Lann, "Distributed Systems: Towards a Formal Approach", IFIP Congress, 1977.
//!
//! The nodes form a ring on which one token circulates for ever. A node that wants in waits until
//! the token comes by, keeps it while inside, and passes it on when it leaves; a node that does not
//! want in passes it on at once. The token is always on its way, useful or not.
//!
//! # Rules
//!
//! 1. To ask: remember it.
//! 2. On TOKEN: enter if waiting; else send TOKEN to the successor.
//! 3. To leave: send TOKEN to the successor.
//!
//! # Why it is right
//!
//! There is one token, and only who has it is inside. It visits every node in each round, so nobody
//! waits for more than one entry of each of the others.

use super::prelude::*;

/// The only message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    /// The right to enter.
    Token,
}

/// The state of one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeLann {
    me: NodeId,
    /// Does our client wait for the token?
    want: bool,
    /// Do we have the token: while inside, and in a group of one always.
    token: bool,
    /// Is our client inside?
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
            least: Formula { text: "1 when all want in", of: |group| f64::from(group.size() > 1) },
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
            return out.reject("a token of another than our predecessor");
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
        true // The token knows nobody's wishes.
    }

    fn floor(&self) -> Option<u64> {
        None // Node 1, started anew, would make a second token.
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
