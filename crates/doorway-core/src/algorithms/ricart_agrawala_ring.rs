//! Ricart & Agrawala, "An Optimal Algorithm for Mutual Exclusion in Computer Networks",
//! Communications of the ACM 24(1), 1981, section 6.3, node by node: the authors name this version
//! in their reply to Carvalho & Roucairol, CACM 26(2), 1983.
//!
//! The nodes form a ring. A REQUEST is not sent to all nodes at once: it travels from node to node
//! and comes home. A node that would reply in `ricart-agrawala` passes the REQUEST on; a node that
//! would defer its reply keeps the REQUEST until it leaves. A node whose REQUEST has come home has
//! the permission of all others, and enters. This takes N messages instead of 2(N−1), but one after
//! the other: N message delays instead of two. While no node wants to enter, no node is
//! distinguished, unlike in the algorithms with a token.
//!
//! # Rules
//!
//! 1. To ask: take a sequence number above every number seen and send REQUEST, with the node's name
//!    and this number, to the successor.
//! 2. On a REQUEST of another node: keep it while inside, or while waiting with an older request;
//!    else send it to the successor.
//! 3. On the node's own REQUEST: enter.
//! 4. To leave: send every REQUEST that was kept to the successor.
//!
//! # Why it is right
//!
//! A node passes a REQUEST on exactly where it would reply in `ricart-agrawala`, so the argument is
//! that of the original. If a node passed a REQUEST on before it took its own number, its own
//! request is the younger one, and the other node keeps it. Of two nodes that wait, the one with
//! the older request keeps the other's. A REQUEST is kept only for the sake of an older one, so no
//! node keeps the oldest, and it comes home. A node has at most one REQUEST under way, so the order
//! of delivery does not matter.
//!
//! # Withdrawal
//!
//! The text has no way to give a request up. Here a client may:
//!
//! 5. To give up: send every REQUEST that was kept to the successor, and keep none from now on. The
//!    node's own REQUEST goes on, and ends when it comes home. If the client has asked again
//!    meanwhile, take a new number then and ask.
//!
//! A REQUEST that was given up keeps no other node waiting, because only the node that made it
//! could keep other REQUESTs for its sake. It must come home before the next one is sent: a node
//! that counted the old one for the new would enter without the permission of nodes that have taken
//! numbers in between.

use super::prelude::*;
use super::ricart_agrawala;
use crate::settle::each_of_queue;

/// The message of Ricart & Agrawala's algorithm, node by node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    /// May this node enter? With the request's sequence number.
    Request(NodeId, u64),
}

/// What has become of the node's own request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Own {
    /// There is none.
    Absent,
    /// The request travels, and our client waits for it.
    Travels(u64),
    /// The request has come home, and our client is inside.
    Home,
    /// The request travels, but our client gave it up. The flag says whether the client has asked
    /// again.
    GivenUp(u64, bool),
}

/// The state of one node in Ricart & Agrawala's algorithm, node by node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RicartAgrawalaRing {
    me: NodeId,
    /// The highest sequence number in any request sent or received.
    highest: u64,
    /// Our own request.
    own: Own,
    /// The requests of others that we keep until we leave, oldest first.
    kept: BTreeSet<Timestamp>,
}

/// One message from each node to its successor.
const ROUND: Formula =
    Formula { text: "N", of: |group| if group.size() > 1 { group.size().into() } else { 0.0 } };

impl Algorithm for RicartAgrawalaRing {
    type Message = Message;

    const INFO: Info = Info {
        name: "ricart-agrawala-ring",
        summary: "a request travels from node to node; a node that would defer its reply keeps it",
        paper: "Ricart & Agrawala, An Optimal Algorithm for Mutual Exclusion in Computer Networks, section 6.3, CACM 24(1)",
        year: 1981,
        kind: Kind::Permission,
        withdraws: true,
        served: true,
        messages: Claim::exactly(ROUND),
        ..Info::BASE
    };

    fn new(me: NodeId, _group: &Group, start: &Start) -> Self {
        let own = if start.holder(me).is_some() { Own::Home } else { Own::Absent };
        Self { me, highest: start.floor, own, kept: BTreeSet::new() }
    }

    fn acquire(&mut self, group: &Group, _mode: Mode, out: &mut Effects<Message>) {
        match &mut self.own {
            Own::GivenUp(_, again) => *again = true,
            Own::Absent | Own::Travels(_) | Own::Home => self.ask(group, out),
        }
    }

    fn receive(
        &mut self,
        group: &Group,
        from: NodeId,
        message: Message,
        out: &mut Effects<Message>,
    ) {
        let Message::Request(node, clock) = message;
        if group.successor(from) != self.me {
            return out.reject("a request from a node that is not our predecessor");
        }
        if clock >= CLOCK_LIMIT {
            return out.reject(BEYOND_LIMIT);
        }
        if node == self.me {
            return self.come_home(group, clock, out);
        }
        if !group.contains(node) || self.kept.iter().any(|kept| kept.node == node) {
            return out.reject("a request of a stranger, or a second one of a node");
        }
        self.highest = self.highest.max(clock);
        let theirs = Timestamp { clock, node };
        let keeps = match self.own {
            Own::Home => true,
            Own::Travels(clock) => Timestamp { clock, node: self.me } < theirs,
            Own::Absent | Own::GivenUp(..) => false,
        };
        if keeps {
            self.kept.insert(theirs);
        } else {
            out.send(group.successor(self.me), message);
        }
    }

    fn release(&mut self, group: &Group, out: &mut Effects<Message>) {
        self.own = Own::Absent;
        self.pass_on(group, out);
    }

    fn withdraw(&mut self, group: &Group, out: &mut Effects<Message>) {
        self.own = match self.own {
            Own::Travels(clock) | Own::GivenUp(clock, _) => Own::GivenUp(clock, false),
            own @ (Own::Absent | Own::Home) => own,
        };
        self.pass_on(group, out);
    }

    fn wanted(&self) -> bool {
        !self.kept.is_empty()
    }

    fn floor(&self) -> Option<u64> {
        (self.own == Own::Absent).then_some(self.highest)
    }

    fn serves(message: &Message, _from: NodeId, _to: NodeId) -> Option<NodeId> {
        let Message::Request(node, _) = message;
        Some(*node)
    }

    fn settle(group: &Group, snapshot: &mut Snapshot<Self>) {
        // A request that was given up may fall behind without bound. No other number does: a node
        // takes its next number when all nodes have seen the one before.
        let gap = ricart_agrawala::gap(group, snapshot.withdrawals);
        snapshot.rebase_with_gap(gap, Self::numbers, |mail, each| {
            let Message::Request(_, clock) = &mut mail.message;
            each(clock);
        });
    }
}

impl RicartAgrawalaRing {
    /// Send a REQUEST of our own round the ring.
    fn ask(&mut self, group: &Group, out: &mut Effects<Message>) {
        self.highest += 1;
        if group.size() == 1 {
            self.own = Own::Home;
            return out.enter();
        }
        self.own = Own::Travels(self.highest);
        out.send(group.successor(self.me), Message::Request(self.me, self.highest));
    }

    /// Our own REQUEST has come home.
    fn come_home(&mut self, group: &Group, clock: u64, out: &mut Effects<Message>) {
        match self.own {
            Own::Travels(ours) if ours == clock => {
                self.own = Own::Home;
                out.enter();
            }
            Own::GivenUp(ours, again) if ours == clock => {
                self.own = Own::Absent;
                if again {
                    self.ask(group, out);
                }
            }
            _ => out.reject("a request of ours that we did not send"),
        }
    }

    /// Send every REQUEST that we kept to the successor.
    fn pass_on(&mut self, group: &Group, out: &mut Effects<Message>) {
        for Timestamp { clock, node } in core::mem::take(&mut self.kept) {
            out.send(group.successor(self.me), Message::Request(node, clock));
        }
    }

    /// Call `each` with the sequence numbers of this node. They form one family with those of all
    /// requests under way.
    fn numbers(&mut self, each: NumberVisitor<'_>) {
        each(&mut self.highest);
        if let Own::Travels(clock) | Own::GivenUp(clock, _) = &mut self.own {
            each(clock);
        }
        each_of_queue(&mut self.kept, each);
    }
}
