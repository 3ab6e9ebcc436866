//! Chang, "Echo Algorithms: Depth Parallel Operations on General Graphs", IEEE Transactions on
//! Software Engineering 8(4), 1982, to make the tree; then Raymond's algorithm of 1989 on it.
//!
//! Raymond's algorithm needs a tree, and the token at a known place. Here the nodes know only their
//! neighbours in some graph. A wave runs out from its initiator and echoes back, and the neighbour
//! from which it first came becomes a node's parent. If there are several waves, the one with the
//! smallest initiator displaces the others, and its initiator has the token first.
//!
//! # Rules
//!
//! 1. To ask: wait for GO. If no wave has come yet, send WAKE to the initiator with the smallest
//!    number.
//! 2. On WAKE: start the wave, unless it has started.
//! 3. To start a wave: send EXPLORE to all neighbours.
//! 4. On EXPLORE of a better wave than any before, one with a smaller initiator: forget the worse
//!    wave, make the sender the parent, and send EXPLORE to all other neighbours. Ignore messages
//!    of a worse wave.
//! 5. On EXPLORE or ECHO of the present wave: this neighbour has answered; if ECHO, it is a child.
//! 6. When all neighbours have answered: send ECHO to the parent. At the initiator the wave is
//!    over: the token is here, and GO is sent to all children.
//! 7. On GO: point at the parent, and send GO to all children. From then on REQUEST and PRIVILEGE
//!    as in `raymond-tree`. A node whose client has asked before asks now.
//!
//! If a node is inside when the group begins, it has the token, and it alone starts a wave.
//!
//! A lock service begins a lock at a node when a client or a message first needs it there. An
//! initiator that nobody has asked sleeps until then. WAKE makes it begin, and so it starts its
//! wave. Chang's nodes know only their neighbours. Here they know
//! the initiators too, so WAKE goes straight to one of them, along no edge of the graph.
//!
//! # Why it is right
//!
//! Every edge carries one message each way, so a single wave takes 2|E| messages, and GO takes N−1.
//! A wave is over only when every node has joined it and found no better one, so only the best wave
//! ends, and no node changes its parent after that. Hence there is one token, and all pointers lead
//! to it before any node sends REQUEST. A wave brings one message from each neighbour, so the order
//! of delivery does not matter. A node that no wave has reached knows that none is over, so its
//! WAKE comes in time; where a wave has begun already, WAKE changes nothing.

use super::prelude::*;
use super::raymond_tree::{self, RaymondTree};

/// The messages of the wave, which name its initiator, and those of Raymond's algorithm.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    /// A client has asked me, and no wave has come yet.
    Wake,
    /// The wave goes out.
    Explore(NodeId),
    /// The wave comes back: it has reached all nodes behind me.
    Echo(NodeId),
    /// The tree is complete.
    Go,
    /// A node on my side of the edge wants the token.
    Request,
    /// The token.
    Privilege,
}

impl From<raymond_tree::Message> for Message {
    fn from(message: raymond_tree::Message) -> Self {
        match message {
            raymond_tree::Message::Request => Self::Request,
            raymond_tree::Message::Privilege => Self::Privilege,
        }
    }
}

/// The state of one node in Raymond's tree algorithm on a tree that a wave builds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RaymondEcho {
    me: NodeId,
    /// The initiator of the best wave so far.
    wave: Option<NodeId>,
    /// The neighbour from which that wave came, or this node if the wave is its own. Before any
    /// wave: the initiator to wake.
    parent: NodeId,
    /// The neighbours that have not yet answered in that wave.
    awaited: NodeSet,
    /// The neighbours that echoed it to us.
    children: NodeSet,
    /// Whether the tree is complete here. For a node that starts inside, it counts as complete from
    /// the beginning.
    stands: bool,
    /// Raymond's algorithm. Until the tree is complete, its state says that the token is here and
    /// in use.
    tree: RaymondTree,
}

impl Algorithm for RaymondEcho {
    type Message = Message;

    const INFO: Info = Info {
        name: "raymond-echo",
        summary: "a wave over any graph builds the tree and places the token of raymond-tree",
        paper: "Chang, Echo Algorithms: Depth Parallel Operations on General Graphs, IEEE TSE 8(4)",
        year: 1982,
        kind: Kind::Token,
        needs: Needs::Graph,
        served: true,
        messages: Claim {
            least: Formula::ZERO,
            most: Formula { text: "2(N-1) after the wave", of: |g| 2.0 * f64::from(g.size() - 1) },
            per: Per::Run,
            light: None,
            heavy: Some(raymond_tree::SATURATED),
        },
        ..Info::BASE
    };

    fn new(me: NodeId, group: &Group, start: &Start) -> Self {
        let inside = start.holder(me).is_some();
        let alone = !start.holders.is_empty();
        let initiator = if alone { inside } else { group.initiators().contains(me) };
        let first = if alone { Some(start.token()) } else { group.initiators().iter().next() };
        Self {
            me,
            wave: initiator.then_some(me),
            parent: first.filter(|_| !initiator).unwrap_or(me),
            awaited: group.graph().neighbours(me).iter().copied().collect(),
            children: NodeSet::new(),
            stands: inside,
            tree: RaymondTree::pointing(me, me, true),
        }
    }

    fn start(&mut self, _group: &Group, out: &mut Effects<Message>) {
        if self.wave.is_some() {
            out.send_all(self.awaited.iter(), &Message::Explore(self.me));
            self.echo_if_complete(out);
        }
    }

    fn acquire(&mut self, _group: &Group, _mode: Mode, out: &mut Effects<Message>) {
        if self.wave.is_none() {
            out.send(self.parent, Message::Wake);
        }
        self.tree.ask(out);
    }

    fn receive(&mut self, group: &Group, from: NodeId, msg: Message, out: &mut Effects<Message>) {
        if msg == Message::Wake {
            if self.wave.is_none() {
                out.reject("a WAKE to a node that starts no wave");
            }
            return; // An initiator has started its wave as it began.
        }
        let neighbours = group.graph().neighbours(self.me);
        if neighbours.binary_search(&from).is_err() {
            return out.reject("a message from a node that is not a neighbour");
        }
        let better = |wave| self.wave.is_none_or(|best| wave < best);
        match msg {
            Message::Explore(wave) if better(wave) => {
                if self.stands || !group.contains(wave) {
                    return out.reject("a wave that is impossible");
                }
                (self.wave, self.parent) = (Some(wave), from);
                self.children.clear();
                self.awaited = neighbours.iter().copied().filter(|node| *node != from).collect();
                out.send_all(self.awaited.iter(), &Message::Explore(wave));
                self.echo_if_complete(out);
            }
            Message::Echo(wave) if better(wave) => {
                out.reject("an echo of a wave that was not sent");
            }
            Message::Explore(wave) | Message::Echo(wave) if self.wave == Some(wave) => {
                if !self.awaited.remove(from) {
                    return out.reject("a second answer of a neighbour in one wave");
                }
                if matches!(msg, Message::Echo(_)) {
                    self.children.insert(from);
                }
                self.echo_if_complete(out);
            }
            // Of a worse wave, or handled above.
            Message::Explore(_) | Message::Echo(_) | Message::Wake => {}
            Message::Go if self.stands || from != self.parent || !self.awaited.is_empty() => {
                out.reject("a GO before the echo, or a second GO");
            }
            Message::Go => self.go(out),
            Message::Request => self.handle(from, raymond_tree::Message::Request, out),
            Message::Privilege => self.handle(from, raymond_tree::Message::Privilege, out),
        }
    }

    fn release(&mut self, _group: &Group, out: &mut Effects<Message>) {
        self.tree.leave(out);
    }

    fn wanted(&self) -> bool {
        // While the wave runs, requests cannot reach us.
        !self.awaited.is_empty() || self.tree.wanted()
    }

    fn floor(&self) -> Option<u64> {
        None
    }
}

impl RaymondEcho {
    fn echo_if_complete(&mut self, out: &mut Effects<Message>) {
        match self.wave {
            Some(wave) if self.awaited.is_empty() && self.parent != self.me => {
                out.send(self.parent, Message::Echo(wave));
            }
            Some(_) if self.awaited.is_empty() => self.go(out),
            _ => {}
        }
    }

    fn go(&mut self, out: &mut Effects<Message>) {
        out.send_all(self.children.iter(), &Message::Go);
        if !core::mem::replace(&mut self.stands, true) {
            self.tree.begin(self.parent, out);
        }
    }

    fn handle(&mut self, from: NodeId, msg: raymond_tree::Message, out: &mut Effects<Message>) {
        if !self.stands || (from != self.parent && !self.children.contains(from)) {
            return out.reject("a request or privilege that does not follow the tree");
        }
        self.tree.handle(from, msg, out);
    }
}
