//! Lamport, "Time, Clocks, and the Ordering of Events in a Distributed System", Communications of
//! the ACM 21(7), 1978.
//!
//! Every message carries its sender's logical clock, and every node keeps the same queue of
//! requests, ordered by clock and node. A node enters when its request is the first of its queue
//! and every other node has sent it a later message: then no older request can still be under way.
//!
//! # Rules
//!
//! 1. To ask: send REQUEST to all others and put it into the node's own queue.
//! 2. On REQUEST: put it into the queue and send ACK.
//! 3. To leave: take the request out of the queue and send RELEASE to all others.
//! 4. On RELEASE: take the sender's request out of the queue.
//! 5. Enter when the node's own request is the first of the queue and a message later than it has
//!    arrived from every other node.
//!
//! A node needs to know only whether its own request is the first of the queue. So the queue is
//! kept as two sets: the nodes whose requests are ahead of ours, and the nodes whose requests are
//! behind.
//!
//! # Why it is right
//!
//! Channels keep order. So once a message later than our request has come from a node, every older
//! request of that node has come before it, and stays ahead of ours until its RELEASE. If two nodes
//! were inside, each would have the older request. The oldest request is ahead of all others, and
//! all nodes acknowledge it, so its node enters.
//!
//! # Withdrawal
//!
//! To give up is to leave without having been inside: rules 3 and 4 take the request out of all
//! queues. An ACK that comes later does no harm, because rule 5 asks only for any later message.

use super::prelude::*;

/// The messages of the paper, each with its sender's clock.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    /// I want to enter.
    Request(u64),
    /// I have seen your request.
    Ack(u64),
    /// I have left.
    Release(u64),
}

impl Message {
    fn clock(&self) -> u64 {
        let (Self::Request(clock) | Self::Ack(clock) | Self::Release(clock)) = self;
        *clock
    }

    fn clock_mut(&mut self) -> &mut u64 {
        let (Self::Request(clock) | Self::Ack(clock) | Self::Release(clock)) = self;
        clock
    }

    fn is_request(&self) -> bool {
        matches!(self, Self::Request(_))
    }
}

/// The state of one node in Lamport's algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lamport {
    me: NodeId,
    /// The highest clock in any message sent or received.
    clock: u64,
    /// Our request, from `acquire` to `release`.
    request: Option<Timestamp>,
    /// The nodes that have not yet sent a message later than our request.
    awaited: NodeSet,
    /// The nodes whose requests come before ours, or before the one we would make now.
    ahead: NodeSet,
    /// The nodes whose requests come after ours.
    behind: NodeSet,
}

const COST: Formula = Formula { text: "3(N-1)", of: |group| 3.0 * f64::from(group.size() - 1) };

impl Algorithm for Lamport {
    type Message = Message;

    const INFO: Info = Info {
        name: "lamport",
        summary: "every node keeps the same queue of requests, ordered by logical clocks",
        paper: "Lamport, Time, Clocks, and the Ordering of Events in a Distributed System, CACM 21(7)",
        year: 1978,
        kind: Kind::Permission,
        channel: Channel::Fifo,
        withdraws: true,
        served: true,
        messages: Claim::exactly(COST),
        ..Info::BASE
    };

    fn new(me: NodeId, _group: &Group, start: &Start) -> Self {
        // The request of a node that starts inside counts as the oldest of all.
        let oldest = |holder: NodeId| Timestamp { clock: start.floor, node: holder };
        let request = start.holder(me).map(|holder| oldest(holder.node));
        let ahead = start.holders.iter().map(|holder| holder.node).filter(|node| *node != me);
        let (awaited, behind) = (NodeSet::new(), NodeSet::new());
        Self { me, clock: start.floor, request, awaited, ahead: ahead.collect(), behind }
    }

    fn acquire(&mut self, group: &Group, _mode: Mode, out: &mut Effects<Message>) {
        let clock = self.tick();
        self.request = Some(Timestamp { clock, node: self.me });
        self.awaited = NodeSet::full(group.size());
        self.awaited.remove(self.me);
        out.send_all(group.others(self.me), &Message::Request(clock));
        if self.awaited.is_empty() {
            out.enter(); // A group of one.
        }
    }

    fn receive(
        &mut self,
        _group: &Group,
        from: NodeId,
        message: Message,
        out: &mut Effects<Message>,
    ) {
        let clock = message.clock();
        let later = self.is_before(clock, from);
        let waiting = self.waiting();
        let settled = self.request.is_some() && !self.awaited.contains(from);
        let pending = self.ahead.contains(from) || self.behind.contains(from);
        match message {
            _ if clock >= CLOCK_LIMIT => return out.reject(BEYOND_LIMIT),
            Message::Request(_) if pending => {
                return out.reject("a second request before the release of the first");
            }
            Message::Request(_) if settled && !later => {
                return out.reject("a request older than a message that its sender sent before");
            }
            Message::Release(_) if !pending => return out.reject("a release without a request"),
            _ => self.clock = self.clock.max(clock),
        }
        match message {
            Message::Request(_) => {
                let side = if later { &mut self.behind } else { &mut self.ahead };
                side.insert(from);
                out.send(from, Message::Ack(self.tick()));
            }
            // An ACK only tells the sender's clock, so a surplus one does no harm.
            Message::Ack(_) => {}
            Message::Release(_) => {
                self.ahead.remove(from);
                self.behind.remove(from);
            }
        }
        if later {
            self.awaited.remove(from);
        }
        if waiting && !self.waiting() {
            out.enter();
        }
    }

    fn release(&mut self, group: &Group, out: &mut Effects<Message>) {
        self.request = None;
        // The nodes that asked meanwhile are ahead of our next request.
        let asked = core::mem::take(&mut self.behind);
        asked.iter().for_each(|node| _ = self.ahead.insert(node));
        let clock = self.tick();
        out.send_all(group.others(self.me), &Message::Release(clock));
    }

    fn withdraw(&mut self, group: &Group, out: &mut Effects<Message>) {
        self.awaited.clear();
        self.release(group, out);
    }

    fn wanted(&self) -> bool {
        !self.ahead.is_empty() || !self.behind.is_empty()
    }

    fn floor(&self) -> Option<u64> {
        self.ahead.is_empty().then_some(self.clock)
    }

    /// The number of a message matters only if it raises its receiver's clock, or compares with the
    /// receiver's request. It becomes 0 if it does neither, now or later, and then an ACK is
    /// dropped. If it only compares, it becomes the receiver's clock. The number of a request
    /// becomes 0 when every message that can still arrive is later.
    fn settle(_group: &Group, snapshot: &mut Snapshot<Self>) {
        let nodes = &snapshot.nodes;
        for mail in &mut snapshot.mail {
            let receiver = nodes.iter().find(|node| node.me == mail.to);
            if let Some(node) = receiver.filter(|node| mail.message.clock() <= node.clock) {
                let compares = node.awaited.contains(mail.from) || mail.message.is_request();
                let later = compares && node.is_before(mail.message.clock(), mail.from);
                *mail.message.clock_mut() = if later { node.clock } else { 0 };
            }
        }
        snapshot.mail.retain(|mail| mail.message != Message::Ack(0));
        let oldest: Vec<bool> = nodes.iter().map(|node| node.is_oldest(snapshot)).collect();
        for (node, _) in snapshot.nodes.iter_mut().zip(oldest).filter(|(_, oldest)| *oldest) {
            node.request = Some(Timestamp { clock: 0, node: node.me });
        }
        let of_node = |node: &mut Self, each: NumberVisitor<'_>| {
            each(&mut node.clock);
            let request = node.request.iter_mut().filter(|request| request.clock > 0);
            request.for_each(|request| each(&mut request.clock));
        };
        let counter = |node: &Self| node.clock;
        snapshot.rebase_with_ranks(1, counter, of_node, |mail, each| {
            if mail.message.clock() > 0 {
                each(mail.message.clock_mut());
            }
        });
    }
}

impl Lamport {
    /// Whether our request comes before a message with this clock and sender.
    fn is_before(&self, clock: u64, from: NodeId) -> bool {
        self.request.is_some_and(|ours| ours < Timestamp { clock, node: from })
    }

    /// Whether we await nothing, and our request is older than every request that can still arrive.
    fn is_oldest(&self, snapshot: &Snapshot<Self>) -> bool {
        let Some(ours) = self.request else { return false };
        let to_us = |mail: &&Mail<Message>| mail.to == self.me && mail.message.is_request();
        let mut mail = snapshot.mail.iter().filter(to_us);
        self.awaited.is_empty()
            && snapshot.nodes.iter().all(|node| node.clock >= ours.clock)
            && mail.all(|mail| self.is_before(mail.message.clock(), mail.from))
    }

    fn waiting(&self) -> bool {
        self.request.is_some() && !(self.awaited.is_empty() && self.ahead.is_empty())
    }

    /// The clock of the next message: later than every clock that we have seen.
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}
