//! Ricart & Agrawala, reply to Carvalho & Roucairol, Communications of the ACM 26(2), 1983: the
//! algorithm of the appendix.
//!
//! The node that has the token may enter. A node without it numbers its request and sends it to all
//! nodes, since it does not know where the token is. The token remembers the number of each node's
//! last served request; if a higher number has been received from a node, its request is open. A
//! node that leaves passes the token to the next node on the ring with an open request, or keeps it
//! until there is one.
//!
//! # Rules
//!
//! 1. To ask: enter if the token is here; else send REQUEST with the next number to all others.
//! 2. On TOKEN: enter.
//! 3. To leave: write the node's own number into the token and send TOKEN to the first node, going
//!    round the ring from the successor, whose request is open.
//! 4. On REQUEST: remember its number; if the token is here and unused, do as in 3.
//!
//! # Why it is right
//!
//! There is one token, and only the node that has it is inside. Every request reaches every node,
//! so it is known wherever the token comes to rest, and the scan goes round the ring, so at most
//! N−1 others go first. A REQUEST that arrives after it was served has no higher number than the
//! token and does nothing.
//!
//! # Flaws of the printed text
//!
//! Misprints only: `release_resource` declares `i` and scans with `j`, and the second parameter of
//! `treat_request_message` is `i` and used as `j`. The scan ends by its test of `have_token`, which
//! is false after the first TOKEN sent. A reader who leaves that test out gets two tokens
//! (`doorway story token-loop`).

use super::prelude::*;

mod settle;

/// The messages of Ricart & Agrawala's token algorithm.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    /// I want to enter: my n-th request.
    Request(u64),
    /// The right to enter, with the number of each node's last served request.
    Token(Vec<u64>),
}

/// The state of one node in Ricart & Agrawala's token algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RicartAgrawalaToken {
    me: NodeId,
    phase: Phase,
    /// The highest number received from each node; our own entry is the number of our last request.
    requests: Vec<u64>,
    /// The token, while it is here.
    token: Option<Vec<u64>>,
}

const BROADCAST: Formula =
    Formula { text: "N", of: |group| if group.size() > 1 { group.size().into() } else { 0.0 } };

impl Algorithm for RicartAgrawalaToken {
    type Message = Message;

    const INFO: Info = Info {
        name: "ricart-agrawala-token",
        summary: "ask every node for the token, which goes round to the next open request",
        paper: "Ricart & Agrawala, reply to Carvalho & Roucairol, appendix, CACM 26(2)",
        year: 1983,
        kind: Kind::Token,
        served: true,
        messages: Claim {
            least: Formula::ZERO,
            most: BROADCAST,
            per: Per::Entry,
            // With probability 1/N the token is here already, and the entry costs nothing.
            light: Some(Formula { text: "N-1", of: |group| f64::from(group.size() - 1) }),
            heavy: Some(BROADCAST),
        },
        ..Info::BASE
    };

    fn new(me: NodeId, group: &Group, start: &Start) -> Self {
        let numbers = alloc::vec![start.floor; group.size() as usize];
        let token = (start.token() == me).then(|| numbers.clone());
        let phase = start.holder(me).map_or(Phase::Outside, |_| Phase::Inside);
        Self { me, phase, requests: numbers, token }
    }

    fn acquire(&mut self, group: &Group, _mode: Mode, out: &mut Effects<Message>) {
        if self.token.is_some() {
            self.phase = Phase::Inside;
            return out.enter();
        }
        self.phase = Phase::Waiting;
        let number = &mut self.requests[self.me.index()];
        *number += 1;
        out.send_all(group.others(self.me), &Message::Request(*number));
    }

    fn receive(
        &mut self,
        group: &Group,
        from: NodeId,
        message: Message,
        out: &mut Effects<Message>,
    ) {
        match message {
            Message::Token(served) => {
                if self.phase != Phase::Waiting {
                    return out.reject("a token that was not asked for");
                }
                if served.len() != self.requests.len() {
                    return out.reject("a token for a group of another size");
                }
                self.token = Some(served);
                self.phase = Phase::Inside;
                out.enter();
            }
            Message::Request(number) => {
                // Channels keep no order, so a request with a lower number may arrive late.
                self.requests[from.index()] = self.requests[from.index()].max(number);
                if self.phase != Phase::Inside {
                    self.pass(group, out);
                }
            }
        }
    }

    fn release(&mut self, group: &Group, out: &mut Effects<Message>) {
        self.phase = Phase::Outside;
        self.pass(group, out);
    }

    fn wanted(&self) -> bool {
        // Without the token we do not know which requests are served.
        self.token.as_ref().is_none_or(|served| {
            let mut numbers = self.requests.iter().zip(served).enumerate();
            numbers.any(|(node, (asked, last))| node != self.me.index() && asked > last)
        })
    }

    fn floor(&self) -> Option<u64> {
        None // If node 1 began again, it would make a second token.
    }

    fn serves(message: &Message, _from: NodeId, to: NodeId) -> Option<NodeId> {
        matches!(message, Message::Token(_)).then_some(to)
    }

    fn settle(group: &Group, snapshot: &mut Snapshot<Self>) {
        settle::settle(group, snapshot);
    }
}

impl RicartAgrawalaToken {
    /// Send the token, if it is here, to the next node that has an open request.
    fn pass(&mut self, group: &Group, out: &mut Effects<Message>) {
        let Some(mut served) = self.token.take() else { return };
        served[self.me.index()] = self.requests[self.me.index()];
        let open = |node: &NodeId| self.requests[node.index()] > served[node.index()];
        match group.others_from(self.me).find(open) {
            Some(next) => out.send(next, Message::Token(served)),
            None => self.token = Some(served),
        }
    }
}
