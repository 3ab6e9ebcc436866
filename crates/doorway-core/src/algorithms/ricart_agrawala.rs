//! Ricart & Agrawala, "An Optimal Algorithm for Mutual Exclusion in Computer Networks",
//! Communications of the ACM 24(1), 1981.
//!
//! A node that wants to enter asks every other node. A node that is asked replies at once, unless
//! it is inside or its own request is older; then it replies when it leaves. When all replies have
//! arrived, the node enters. A reply that is deferred until the exit does the work of Lamport's
//! RELEASE.
//!
//! # Rules
//!
//! 1. To ask: take a sequence number above every number seen and send REQUEST to all others.
//! 2. On REQUEST: defer the reply while inside, or while waiting with an older request; else REPLY.
//! 3. On the last of the N−1 REPLYs: enter.
//! 4. To leave: send every deferred REPLY.
//!
//! # Why it is right
//!
//! Of two nodes that wait or are inside, the one with the older request defers its reply to the
//! other until it has left. Requests are totally ordered by number and node, so two nodes cannot
//! defer each other, and no node defers its reply to the oldest request. The order of delivery does
//! not matter.
//!
//! # Departures from the text
//!
//! A node counts its own numbers as seen, so its next request has a higher one even if it has
//! received none since. The texts take a number above those *received*. Nothing depends on it:
//! with their rule a number repeats only while no other node can have entered.
//!
//! # Withdrawal
//!
//! The paper has no way to give a request up. Here a client may, and a node that is alive then
//! waits for it no longer:
//!
//! 5. To give up: send the deferred REPLYs to all nodes whose own REPLY has arrived. Towards a node
//!    that has not replied yet, the request stays open, and rule 2 holds.
//! 6. On a REPLY to a request that was given up: send the deferred REPLY to its sender, if there is
//!    one. With the last REPLY the request is over. If the client has asked again meanwhile, take a
//!    new number now and ask.
//!
//! A REPLY does not say to which request it belongs. It need not: a node has at most one request
//! under way to each other node, so a REPLY never counts for a later request. And of two nodes,
//! both still decide by the same two numbers.

use super::prelude::*;

/// The messages of Ricart & Agrawala's algorithm.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    /// May I enter? With the request's sequence number.
    Request(u64),
    /// Yes, as far as I am concerned.
    Reply,
}

/// The state of one node in Ricart & Agrawala's algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RicartAgrawala {
    me: NodeId,
    /// The highest sequence number in any request sent or received.
    highest: u64,
    /// Our request, from `acquire` to `release`.
    request: Option<Timestamp>,
    /// The nodes that have not yet replied to it.
    awaited: NodeSet,
    /// The nodes that get our reply when we leave.
    deferred: NodeSet,
    /// Whether our client gave the request up. It stays open until all replies have arrived.
    withdrawn: bool,
    /// Whether our client has asked again since it gave up.
    again: bool,
}

/// A REQUEST to each other node and a REPLY from each.
pub const COST: Formula = Formula { text: "2(N-1)", of: |group| 2.0 * f64::from(group.size() - 1) };

impl Algorithm for RicartAgrawala {
    type Message = Message;

    const INFO: Info = Info {
        name: "ricart-agrawala",
        summary: "ask every node; a node inside or with an older request defers its reply",
        paper: "Ricart & Agrawala, An Optimal Algorithm for Mutual Exclusion in Computer Networks, CACM 24(1)",
        year: 1981,
        kind: Kind::Permission,
        withdraws: true,
        served: true,
        messages: Claim::exactly(COST),
        ..Info::BASE
    };

    fn new(me: NodeId, _group: &Group, start: &Start) -> Self {
        // The request of a node that starts inside counts as the oldest of all.
        let request = start.holder(me).map(|_| Timestamp { clock: start.floor, node: me });
        let (awaited, deferred) = (NodeSet::new(), NodeSet::new());
        let highest = start.floor;
        Self { me, highest, request, awaited, deferred, withdrawn: false, again: false }
    }

    fn acquire(&mut self, group: &Group, _mode: Mode, out: &mut Effects<Message>) {
        if self.withdrawn {
            self.again = true;
            return;
        }
        self.highest += 1;
        self.request = Some(Timestamp { clock: self.highest, node: self.me });
        self.awaited = NodeSet::full(group.size());
        self.awaited.remove(self.me);
        out.send_all(group.others(self.me), &Message::Request(self.highest));
        if self.awaited.is_empty() {
            out.enter(); // A group of one.
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
                self.observe(clock);
                // Inside, our request is always the older one: we have not replied to theirs.
                let open = !self.withdrawn || self.awaited.contains(from);
                if self.inside() || open && self.request.is_some_and(|ours| ours < theirs) {
                    self.deferred.insert(from);
                } else {
                    out.send(from, Message::Reply);
                }
            }
            Message::Reply => {
                if !self.awaited.remove(from) {
                    return out.reject("a reply that answers no request of ours");
                }
                if self.withdrawn {
                    self.conclude(group, from, out);
                } else if self.awaited.is_empty() {
                    out.enter();
                }
            }
        }
    }

    fn release(&mut self, _group: &Group, out: &mut Effects<Message>) {
        self.request = None;
        out.send_all(core::mem::take(&mut self.deferred).iter(), &Message::Reply);
    }

    fn withdraw(&mut self, _group: &Group, out: &mut Effects<Message>) {
        (self.withdrawn, self.again) = (true, false);
        let (kept, given) = core::mem::take(&mut self.deferred).split(&self.awaited);
        self.deferred = kept;
        out.send_all(given.iter(), &Message::Reply);
    }

    fn wanted(&self) -> bool {
        !self.deferred.is_empty()
    }

    fn floor(&self) -> Option<u64> {
        (!self.withdrawn).then_some(self.highest)
    }

    fn serves(message: &Message, _from: NodeId, to: NodeId) -> Option<NodeId> {
        (*message == Message::Reply).then_some(to)
    }

    fn settle(group: &Group, snapshot: &mut Snapshot<Self>) {
        snapshot.rebase_with_gap(gap(group, snapshot.withdrawals), Self::numbers, |mail, each| {
            if let Message::Request(clock) = &mut mail.message {
                each(clock);
            }
        });
    }
}

/// How far the numbers of a group may be apart before it no longer matters how far.
///
/// A request that was given up may stay open while others ask again and again, so its number may
/// fall behind without bound. The highest number that a node has seen does not: of N+1 numbers in a
/// row, two are by the same node, which took the second one when all nodes had answered the first.
/// So no node counts on from a number more than N below the highest.
pub(super) fn gap(group: &Group, withdrawals: bool) -> u64 {
    if withdrawals { u64::from(group.size()) + 1 } else { u64::MAX }
}

impl RicartAgrawala {
    /// Take notice of a request with this number, so that our next request is younger.
    pub(super) fn observe(&mut self, clock: u64) {
        self.highest = self.highest.max(clock);
    }

    /// The highest sequence number that we have seen.
    pub(super) fn highest(&self) -> u64 {
        self.highest
    }

    /// Call `each` with the sequence numbers of this node. They form one family with those of all
    /// requests under way.
    pub(super) fn numbers(&mut self, each: NumberVisitor<'_>) {
        each(&mut self.highest);
        self.request.iter_mut().for_each(|request| each(&mut request.clock));
    }

    /// Whether our client gave up the request that is still open.
    pub(super) fn withdrawn(&self) -> bool {
        self.withdrawn
    }

    /// A node has replied to the request that our client gave up.
    fn conclude(&mut self, group: &Group, from: NodeId, out: &mut Effects<Message>) {
        if self.deferred.remove(from) {
            out.send(from, Message::Reply);
        }
        if self.awaited.is_empty() {
            (self.request, self.withdrawn) = (None, false);
            if core::mem::take(&mut self.again) {
                self.acquire(group, Mode::Exclusive, out);
            }
        }
    }

    fn inside(&self) -> bool {
        self.request.is_some() && self.awaited.is_empty()
    }
}
