//! Ricart & Agrawala, reply to Carvalho & Roucairol, Communications of the ACM 26(2), 1983,
//! appendix: one pass of the mutual exclusion algorithm of 1981, which is `ricart-agrawala`, can
//! make the token.
//!
//! A token algorithm usually begins with the token at a known node. Here no node has it in the
//! beginning, and all nodes are alike. The first nodes that want to enter ask all others, as in
//! `ricart-agrawala`. One of them gets all replies first, enters, and makes the token. It never
//! replies to another node from then on, so no second node gets all replies: there is one token.
//! Every node learns from the first message after that where the token was made, and goes on with
//! the token algorithm.
//!
//! # Rules
//!
//! 1. To ask, while no token is known: do as in `ricart-agrawala`.
//! 2. On the last REPLY: make the token and enter. Send MADE, with the node's name, in place of
//!    every REPLY that was deferred.
//! 3. On REQUEST of `ricart-agrawala`, when the token is known to be made: send MADE, with the name
//!    of the node that made it. On a REPLY: do nothing.
//! 4. On MADE: begin the token algorithm, with the token at the node named. If the client waits,
//!    ask for the token.
//! 5. Every message of the token algorithm carries the name of the node that made the token. A node
//!    that does not know it yet learns it from there, and does as on MADE.
//!
//! # Why it is right
//!
//! `ricart-agrawala` lets one node in at a time, and the first node that it lets in never leaves as
//! far as `ricart-agrawala` is concerned: it does not reply any more. So at most one node makes a
//! token. The REQUEST of every other node reaches the node that made the token, which answers it
//! with MADE. So each node that waits learns of the token, and asks for it.

use super::prelude::*;
use super::ricart_agrawala::{self, RicartAgrawala};

/// The messages of the pass, and those of the token algorithm.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message<M> {
    /// A message of the pass.
    Pass(ricart_agrawala::Message),
    /// This node has made the token.
    Made(NodeId),
    /// A message of the token algorithm, whose token this node has made.
    Token(NodeId, M),
}

/// How far a node is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Stage<A> {
    /// The node knows of no token.
    Passing(RicartAgrawala),
    /// The node knows which node made the token.
    Begun(NodeId, A),
}

/// The state of one node in the token algorithm `A`, whose token one pass of Ricart & Agrawala's
/// algorithm makes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OnePass<A> {
    me: NodeId,
    /// Whether our client waits, and we know of no token.
    waiting: bool,
    stage: Stage<A>,
}

impl<A: Algorithm> Algorithm for OnePass<A> {
    type Message = Message<A::Message>;

    const INFO: Info = Info {
        // The bounds of a single entry do not hold for the first ones, which make the token.
        messages: Claim { per: Per::Run, light: None, ..A::INFO.messages },
        // A service knows its members, so it can do without the pass.
        served: false,
        ..A::INFO
    };

    fn new(me: NodeId, group: &Group, start: &Start) -> Self {
        let stage = match start.holders.first() {
            Some(holder) => Stage::Begun(holder.node, A::new(me, group, start)),
            None => Stage::Passing(RicartAgrawala::new(me, group, start)),
        };
        Self { me, waiting: false, stage }
    }

    fn start(&mut self, group: &Group, out: &mut Effects<Self::Message>) {
        if let Stage::Begun(maker, token) = &mut self.stage {
            let mut inner = Effects::default();
            token.start(group, &mut inner);
            out.forward(inner, |message| Message::Token(*maker, message));
        }
    }

    fn acquire(&mut self, group: &Group, mode: Mode, out: &mut Effects<Self::Message>) {
        self.waiting = matches!(self.stage, Stage::Passing(_));
        self.pass(out, |pass, inner| pass.acquire(group, mode, inner));
        self.token(out, |token, inner| token.acquire(group, mode, inner));
        self.make(group, out);
    }

    fn receive(
        &mut self,
        group: &Group,
        from: NodeId,
        message: Self::Message,
        out: &mut Effects<Self::Message>,
    ) {
        match (message, &self.stage) {
            (Message::Pass(message), Stage::Passing(_)) => {
                self.pass(out, |pass, inner| pass.receive(group, from, message, inner));
                self.make(group, out);
            }
            (Message::Pass(ricart_agrawala::Message::Request(_)), Stage::Begun(maker, _)) => {
                out.send(from, Message::Made(*maker));
            }
            (Message::Pass(ricart_agrawala::Message::Reply), Stage::Begun(..)) => {}
            (Message::Made(maker), Stage::Begun(known, _)) => {
                if maker != *known {
                    out.reject("a second token");
                }
            }
            (Message::Made(maker), Stage::Passing(_)) => {
                if !self.waiting || maker == self.me || !group.contains(maker) {
                    return out.reject("a token that was not asked for, or of a stranger");
                }
                self.begin(group, maker, out);
                self.ask(group, out);
            }
            (Message::Token(maker, message), Stage::Begun(known, _)) => {
                if maker != *known {
                    return out.reject("a message of a second token");
                }
                self.token(out, |token, inner| token.receive(group, from, message, inner));
            }
            (Message::Token(maker, message), Stage::Passing(_)) => {
                if maker == self.me || !group.contains(maker) {
                    return out.reject("a message of a token that we did not make");
                }
                // A message that is refused leaves the state as it was.
                let before = self.clone();
                self.begin(group, maker, out);
                self.token(out, |token, inner| token.receive(group, from, message, inner));
                if let Some(reason) = out.rejected() {
                    *self = before;
                    out.clear();
                    return out.reject(reason);
                }
                self.ask(group, out);
            }
        }
    }

    fn release(&mut self, group: &Group, out: &mut Effects<Self::Message>) {
        self.token(out, |token, inner| token.release(group, inner));
    }

    fn wanted(&self) -> bool {
        match &self.stage {
            Stage::Passing(pass) => pass.wanted(),
            Stage::Begun(_, token) => token.wanted(),
        }
    }

    fn floor(&self) -> Option<u64> {
        match &self.stage {
            Stage::Passing(pass) => pass.floor(),
            Stage::Begun(_, token) => token.floor(),
        }
    }

    fn serves(message: &Self::Message, from: NodeId, to: NodeId) -> Option<NodeId> {
        match message {
            Message::Pass(message) => RicartAgrawala::serves(message, from, to),
            Message::Made(_) => Some(to),
            Message::Token(_, message) => A::serves(message, from, to),
        }
    }

    /// The numbers of the pass are few: every node asks once in it. The token algorithm is settled
    /// when all nodes know of the token. No message of the pass and no MADE changes anything then:
    /// a REQUEST is answered with MADE, and the others do nothing.
    fn settle(group: &Group, snapshot: &mut Snapshot<Self>) {
        let token = |node: &Self| match &node.stage {
            Stage::Begun(maker, token) => Some((*maker, token.clone())),
            Stage::Passing(_) => None,
        };
        let Some(tokens) = snapshot.nodes.iter().map(token).collect::<Option<Vec<_>>>() else {
            return;
        };
        let Some(maker) = tokens.first().map(|(maker, _)| *maker) else { return };
        let of_token = |Mail { id, from, to, message }| match message {
            Message::Token(_, message) => Some(Mail { id, from, to, message }),
            Message::Pass(_) | Message::Made(_) => None,
        };
        let mut settled = Snapshot {
            nodes: tokens.into_iter().map(|(_, token)| token).collect(),
            mail: core::mem::take(&mut snapshot.mail).into_iter().filter_map(of_token).collect(),
            crashes: snapshot.crashes,
            withdrawals: snapshot.withdrawals,
        };
        A::settle(group, &mut settled);
        for (node, token) in snapshot.nodes.iter_mut().zip(settled.nodes) {
            node.stage = Stage::Begun(maker, token);
        }
        let wrap = |mail: Mail<A::Message>| mail.map(|message| Message::Token(maker, message));
        snapshot.mail = settled.mail.into_iter().map(wrap).collect();
    }
}

impl<A: Algorithm> OnePass<A> {
    /// Let the pass do something, if it is still going on.
    fn pass(
        &mut self,
        out: &mut Effects<Message<A::Message>>,
        act: impl FnOnce(&mut RicartAgrawala, &mut Effects<ricart_agrawala::Message>),
    ) {
        let Stage::Passing(pass) = &mut self.stage else { return };
        let mut inner = Effects::default();
        act(pass, &mut inner);
        out.forward(inner, Message::Pass);
    }

    /// Let the token algorithm do something, if it has begun.
    fn token(
        &mut self,
        out: &mut Effects<Message<A::Message>>,
        act: impl FnOnce(&mut A, &mut Effects<A::Message>),
    ) {
        let Stage::Begun(maker, token) = &mut self.stage else { return };
        let mut inner = Effects::default();
        act(token, &mut inner);
        out.forward(inner, |message| Message::Token(*maker, message));
    }

    /// If the pass has just let us in: make the token, and tell the nodes that wait for us.
    fn make(&mut self, group: &Group, out: &mut Effects<Message<A::Message>>) {
        let Stage::Passing(pass) = &mut self.stage else { return };
        if !out.entered() {
            return;
        }
        let mut deferred = Effects::default();
        pass.release(group, &mut deferred);
        let maker = self.me;
        out.forward(deferred, |_| Message::Made(maker));
        self.waiting = false;
        self.begin(group, maker, out);
    }

    /// Begin the token algorithm, with the token at `maker`, whose client is inside.
    fn begin(&mut self, group: &Group, maker: NodeId, out: &mut Effects<Message<A::Message>>) {
        self.stage = Stage::Begun(maker, A::new(self.me, group, &Start::with_holder(maker)));
        self.token(out, |token, inner| token.start(group, inner));
    }

    /// Ask for the token if our client waits.
    fn ask(&mut self, group: &Group, out: &mut Effects<Message<A::Message>>) {
        if core::mem::take(&mut self.waiting) {
            self.token(out, |token, inner| token.acquire(group, Mode::Exclusive, inner));
        }
    }
}
