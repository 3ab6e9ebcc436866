//! Singhal, "A Dynamic Information-Structure Mutual Exclusion Algorithm for Distributed Systems",
//! IEEE Transactions on Parallel and Distributed Systems 3(1), 1992.
//!
//! Each node keeps a request set, whom it must ask, and an inform set, whom it must answer on
//! leaving. Of every two nodes one has the other in its request set, which is enough for them to
//! meet. The sets change as the lock moves: who has been inside lately is asked, and need not ask.
//! At first they form a staircase: node i asks the i−1 nodes before it. Where permissions have
//! moved once, this is Carvalho and Roucairol's algorithm.
//!
//! # Rules
//!
//! 1. To ask: take a number above every number seen and send REQUEST to the request set; enter when
//!    the set is empty.
//! 2. On REQUEST while inside, or while waiting with an older request: add the sender to the inform
//!    set.
//! 3. On REQUEST while waiting with a younger request: REPLY. A sender that was not in the request
//!    set comes into it, and is sent a REQUEST too.
//! 4. On REQUEST otherwise: REPLY, and add the sender to the request set.
//! 5. On REPLY: remove the sender from the request set; enter when it was the last.
//! 6. To leave: REPLY to the inform set, and move its nodes to the request set.
//!
//! # Why it is right
//!
//! Node j leaves the request set of i only by a REPLY, and with that REPLY i came into the request
//! set of j. So of two nodes that want in, one waits for the other's REPLY, which the older defers
//! until it has left. The oldest request is deferred only by someone inside. The order of delivery
//! plays no part.

use super::prelude::*;

/// The messages of the paper. Both carry the sender's clock.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    /// May I? With the number of the request.
    Request(u64),
    /// Yes, until I ask you.
    Reply(u64),
}

/// The state of one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Singhal {
    me: NodeId,
    /// The highest number seen (C).
    clock: u64,
    /// Our request, from `acquire` to `release`.
    request: Option<Timestamp>,
    /// Whom we must ask; while waiting, who has not replied (R).
    ask: NodeSet,
    /// Whom we must answer on leaving (I).
    inform: NodeSet,
}

/// Also when everyone waits: then all others have been inside since.
const BROADCAST: Formula =
    Formula { text: "2(N-1)", of: |group| 2.0 * f64::from(group.size() - 1) };

impl Algorithm for Singhal {
    type Message = Message;

    const INFO: Info = Info {
        name: "singhal",
        summary: "ask only those who were inside since; the sets begin as a staircase",
        paper: "Singhal, A Dynamic Information-Structure Mutual Exclusion Algorithm, IEEE TPDS 3(1)",
        year: 1992,
        kind: Kind::Permission,
        channel: Channel::Unordered,
        shared: false,
        permits: false,
        needs: Needs::Nothing,
        refuted: None,
        served: true,
        messages: Claim {
            least: Formula { text: "0", of: |_| 0.0 },
            most: BROADCAST,
            per: Per::Entry,
            // Each of the others has been inside since our last entry with even odds.
            light: Some(Formula { text: "N-1", of: |group| f64::from(group.size() - 1) }),
            heavy: Some(BROADCAST),
        },
    };

    fn new(me: NodeId, group: &Group, start: &Start) -> Self {
        let inside = start.holder(me).is_some();
        let request = inside.then_some(Timestamp { clock: start.floor, node: me });
        // A holder has just been answered by everyone, so everyone asks it.
        let asked = |node: &NodeId| !inside && (*node < me || start.holder(*node).is_some());
        let ask = group.others(me).filter(asked).collect();
        Self { me, clock: start.floor, request, ask, inform: NodeSet::new() }
    }

    fn acquire(&mut self, _group: &Group, _mode: Mode, out: &mut Effects<Message>) {
        self.clock = self.clock.saturating_add(1);
        self.request = Some(Timestamp { clock: self.clock, node: self.me });
        out.send_all(self.ask.iter(), &Message::Request(self.clock));
        if self.ask.is_empty() {
            out.enter();
        }
    }

    fn receive(&mut self, _: &Group, from: NodeId, msg: Message, out: &mut Effects<Message>) {
        match msg {
            Message::Request(_) if self.inform.contains(from) => {
                out.reject("a second request before a reply to the first");
            }
            Message::Request(clock) => {
                self.clock = self.clock.max(clock);
                let theirs = Timestamp { clock, node: from };
                match self.request {
                    Some(ours) if self.ask.is_empty() || ours < theirs => {
                        self.inform.insert(from);
                    }
                    request => {
                        out.send(from, Message::Reply(self.clock));
                        let added = self.ask.insert(from);
                        if let Some(ours) = request.filter(|_| added) {
                            out.send(from, Message::Request(ours.clock));
                        }
                    }
                }
            }
            Message::Reply(clock) => {
                if self.request.is_none() || !self.ask.remove(from) {
                    return out.reject("a reply to no request of ours");
                }
                self.clock = self.clock.max(clock);
                if self.ask.is_empty() {
                    out.enter();
                }
            }
        }
    }

    fn release(&mut self, _group: &Group, out: &mut Effects<Message>) {
        self.request = None;
        // Inside, there is nobody to ask: those whom we answer now are all.
        self.ask = core::mem::take(&mut self.inform);
        out.send_all(self.ask.iter(), &Message::Reply(self.clock));
    }

    fn wanted(&self) -> bool {
        !self.inform.is_empty()
    }

    fn floor(&self) -> Option<u64> {
        None // Back on its stair, a node would not ask those who have been inside since.
    }

    fn serves(message: &Message, from: NodeId, to: NodeId) -> Option<NodeId> {
        // A request sent after a reply serves its sender, not the node replied to.
        Some(if matches!(message, Message::Reply(_)) { to } else { from })
    }
}
