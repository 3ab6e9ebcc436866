//! Carvalho & Roucairol, "On Mutual Exclusion in Computer Networks", Communications of the ACM
//! 26(2), 1983.
//!
//! Ricart & Agrawala's algorithm, except that a reply is kept: it is a permission for any number of
//! entries, until the node that gave it asks for it back. Each pair of nodes shares one permission,
//! and the one of the two that was inside last has it. So a node asks only the nodes that have been
//! inside since its own last entry, and enters again without a message if there are none.
//!
//! # Rules
//!
//! 1. To ask: take a sequence number above every number received and send REQUEST to the nodes
//!    whose permission is missing; enter if none is.
//! 2. On REQUEST: defer the reply while inside, or while waiting with an older request.
//! 3. Else REPLY, and with it goes the permission.
//! 4. If we had the permission and are waiting, we need it back: send REQUEST after the REPLY.
//! 5. On REPLY: the permission is ours. If it was the last one missing: enter, in the same step.
//! 6. To leave: send every deferred REPLY, and with each goes a permission.
//!
//! # Why it is right
//!
//! A permission is with one node of its pair or on its way, so only one of the two nodes can have
//! it and be inside. Of two nodes that wait, the one with the older request gets it and keeps it.
//! The order of delivery does not matter: if a REQUEST overtakes the REPLY sent before it, its
//! receiver is waiting with an older request, and defers.
//!
//! # Withdrawal
//!
//! The paper has no way to give a request up. Here a client may, and a node that is alive then
//! waits for it no longer:
//!
//! 7. To give up: keep the permissions that are here, except that the deferred REPLYs go to all
//!    nodes whose permission is here. Towards a node that has not replied yet, the request stays
//!    open, and rule 2 holds. Towards all others there is no request.
//! 8. On a REPLY to a request that was given up: the permission is ours. Send the deferred REPLY to
//!    its sender, if there is one. With the last REPLY the request is over. If the client has asked
//!    again meanwhile, take a new number now and ask.
//!
//! If a node gave its REPLY while one to it is under way, both would have the permission. It does
//! not: it replies to such a node only where rule 3 says so, by the numbers of both requests. And a
//! node has at most one request under way to each other node, so a REPLY never counts for a later
//! request.
//!
//! # Flaws of the printed text
//!
//! In RELEASE, `Reply_Deferred[i]` must be `Reply_Deferred[j]`. The three tests on REQUEST exclude
//! each other only if they are made in the printed order; in another order, two replies are sent.

use super::prelude::*;
use super::ricart_agrawala::COST;

/// The messages of Carvalho & Roucairol's algorithm.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    /// May I enter? With the request's sequence number.
    Request(u64),
    /// Yes, until I ask you for it back.
    Reply,
}

/// The state of one node in Carvalho & Roucairol's algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CarvalhoRoucairol {
    me: NodeId,
    /// The highest sequence number in any request received. Our own need not count: we use a number
    /// again only while no other node can have entered.
    highest: u64,
    /// Our request, from `acquire` to `release`.
    request: Option<Timestamp>,
    /// The nodes whose permission we do not have (the paper's A is the complement).
    missing: NodeSet,
    /// The nodes that get our reply when we leave.
    deferred: NodeSet,
    /// The nodes that have not replied to the request that our client gave up. While there are any,
    /// that request is open.
    owing: NodeSet,
    /// Whether our client has asked again since it gave up.
    again: bool,
}

impl Algorithm for CarvalhoRoucairol {
    type Message = Message;

    const INFO: Info = Info {
        name: "carvalho-roucairol",
        summary: "Ricart-Agrawala, but a reply stays valid until it is asked back",
        paper: "Carvalho & Roucairol, On Mutual Exclusion in Computer Networks, CACM 26(2)",
        year: 1983,
        kind: Kind::Permission,
        withdraws: true,
        served: true,
        messages: Claim {
            least: Formula::ZERO,
            most: COST,
            per: Per::Entry,
            // Each other node has been inside since our last entry with probability 1/2.
            light: Some(Formula { text: "N-1", of: |group| f64::from(group.size() - 1) }),
            heavy: None,
        },
        ..Info::BASE
    };

    fn new(me: NodeId, group: &Group, start: &Start) -> Self {
        let request = start.holder(me).map(|_| Timestamp { clock: start.floor, node: me });
        // At first no node has a permission, but a node that starts inside has them all.
        let missing = group.others(me).filter(|_| request.is_none()).collect();
        let (deferred, owing) = (NodeSet::new(), NodeSet::new());
        Self { me, highest: start.floor, request, missing, deferred, owing, again: false }
    }

    fn acquire(&mut self, _group: &Group, _mode: Mode, out: &mut Effects<Message>) {
        if self.withdrawn() {
            self.again = true;
            return;
        }
        let request = Timestamp { clock: self.highest + 1, node: self.me };
        self.request = Some(request);
        out.send_all(self.missing.iter(), &Message::Request(request.clock));
        if self.missing.is_empty() {
            out.enter();
        }
    }

    fn receive(
        &mut self,
        group: &Group,
        from: NodeId,
        message: Message,
        out: &mut Effects<Message>,
    ) {
        match message {
            Message::Request(CLOCK_LIMIT..) => out.reject(BEYOND_LIMIT),
            Message::Request(clock) => {
                let theirs = Timestamp { clock, node: from };
                if self.deferred.contains(from) {
                    return out.reject("a second request before a reply to the first");
                }
                self.highest = self.highest.max(clock);
                let open = !self.withdrawn() || self.owing.contains(from);
                match self.request.filter(|_| open) {
                    Some(ours) if self.missing.is_empty() || ours < theirs => {
                        self.deferred.insert(from);
                    }
                    Some(ours) => {
                        out.send(from, Message::Reply);
                        if self.missing.insert(from) {
                            out.send(from, Message::Request(ours.clock));
                        }
                    }
                    None => self.give(from, out),
                }
            }
            Message::Reply => {
                let asked = if self.withdrawn() { &self.owing } else { &self.missing };
                if self.request.is_none() || !asked.contains(from) {
                    return out.reject("a reply that answers no request of ours");
                }
                self.missing.remove(from);
                if self.withdrawn() {
                    self.conclude(group, from, out);
                } else if self.missing.is_empty() {
                    out.enter();
                }
            }
        }
    }

    fn release(&mut self, _group: &Group, out: &mut Effects<Message>) {
        self.request = None;
        // Inside, no permission is missing; now those that we give away are.
        self.missing = core::mem::take(&mut self.deferred);
        out.send_all(self.missing.iter(), &Message::Reply);
    }

    fn withdraw(&mut self, _group: &Group, out: &mut Effects<Message>) {
        if !self.withdrawn() {
            self.owing = self.missing.clone();
        }
        self.again = false;
        let (kept, given) = core::mem::take(&mut self.deferred).split(&self.owing);
        self.deferred = kept;
        given.iter().for_each(|node| self.give(node, out));
    }

    fn wanted(&self) -> bool {
        !self.deferred.is_empty()
    }

    fn floor(&self) -> Option<u64> {
        (!self.withdrawn()).then_some(self.highest)
    }

    fn serves(message: &Message, from: NodeId, to: NodeId) -> Option<NodeId> {
        // A request sent after a reply serves its sender, not the node that got the reply.
        Some(if *message == Message::Reply { to } else { from })
    }

    /// A new number is one above a number that was received, so two nodes are always near the
    /// highest number. Of three nodes, the last may lag behind without bound, and it does not
    /// matter how far: its requests are one above what it has received, however often it enters.
    /// If two nodes lagged behind together, they would receive each other's numbers and catch up.
    /// The number of a request that was given up may lag behind too, but nothing counts on from it.
    fn settle(group: &Group, snapshot: &mut Snapshot<Self>) {
        let gap = if group.size() <= 3 { 3 } else { u64::MAX };
        let of_node = |node: &mut Self, each: NumberVisitor<'_>| {
            each(&mut node.highest);
            node.request.iter_mut().for_each(|request| each(&mut request.clock));
        };
        snapshot.rebase_with_gap(gap, of_node, |mail, each| {
            if let Message::Request(clock) = &mut mail.message {
                each(clock);
            }
        });
    }
}

impl CarvalhoRoucairol {
    /// Whether we have the permission that we share with `node` (A of the paper).
    pub fn permitted_by(&self, node: NodeId) -> bool {
        node != self.me && !self.missing.contains(node)
    }

    /// Whether our client gave up the request that is still open.
    fn withdrawn(&self) -> bool {
        !self.owing.is_empty()
    }

    /// Reply to `node`, and give it the permission.
    fn give(&mut self, node: NodeId, out: &mut Effects<Message>) {
        self.missing.insert(node);
        out.send(node, Message::Reply);
    }

    /// A node has replied to the request that our client gave up.
    fn conclude(&mut self, group: &Group, from: NodeId, out: &mut Effects<Message>) {
        self.owing.remove(from);
        if self.deferred.remove(from) {
            self.give(from, out);
        }
        if !self.withdrawn() {
            self.request = None;
            if core::mem::take(&mut self.again) {
                self.acquire(group, Mode::Exclusive, out);
            }
        }
    }
}
