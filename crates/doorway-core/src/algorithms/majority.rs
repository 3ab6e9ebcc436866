//! Thomas, "A Majority Consensus Approach to Concurrency Control for Multiple Copy Databases", ACM
//! TODS 4(2), 1979; with weights Gifford, "Weighted Voting for Replicated Data", SOSP, 1979.
//!
//! A node that wants to enter asks all nodes for their votes, and enters with more than half of
//! them, so a minority may be silent. A vote is lent to one request at a time, and called back when
//! an older request comes: otherwise three requests with one vote each would wait for ever. Votes
//! may have different weights; if one node has all the weight, that node is a central coordinator.
//!
//! # Rules
//!
//! 1. To ask: take a number above every number seen and send REQUEST to all nodes whose weight is
//!    not zero.
//! 2. On REQUEST: YES if the vote is here. Else queue the request; if it is older than the one that
//!    has the vote, send INQUIRE to that one, once.
//! 3. On YES to the present request: count its weight. Enter with more than half of the total
//!    weight.
//! 4. On INQUIRE about the present request, not yet inside: discount the weight and RELINQUISH.
//! 5. On RELINQUISH: queue the request again, and send YES to the oldest of the queue.
//! 6. To leave: send RELEASE to all nodes whose votes are here. On YES to a past request: RELEASE.
//! 7. On RELEASE: drop the request; if it had the vote, send YES to the oldest of the queue.
//!
//! # Why it is right
//!
//! Two majorities share a voter, and a vote counts for at most one request: it is lent again only
//! after RELINQUISH, sent when it was discounted, or RELEASE. An INQUIRE that overtakes its YES
//! only makes the count too small for a while. Every YES is answered by one of the two, so the
//! oldest request gets all votes except those lent to a node inside, and enters, at the latest when
//! that node has left. Messages name their request, so their order does not matter.
//!
//! # Withdrawal
//!
//! 8. To give up: leave without having been inside. Rule 6 gives the votes back, also those that
//!    come later.
//!
//! A vote that is lent to a request that was given up comes back with the next message.

use self::voter::{Voter, VoterReply};
use super::prelude::*;

mod settle;
mod voter;

/// The messages; each begins with the number of the request that it speaks of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    /// Lend me your vote.
    Request(u64),
    /// You have my vote. The second number is the highest I have seen: a node without weight is
    /// asked by no other, and learns of high numbers only this way.
    Yes(u64, u64),
    /// An older request wants the vote.
    Inquire(u64),
    /// Take the vote back; I still want it.
    Relinquish(u64),
    /// I no longer need the vote.
    Release(u64),
}

/// The state of one node in the algorithm with votes, as requester and as voter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Voting<const WEIGHTED: bool> {
    me: NodeId,
    /// The highest number seen.
    clock: u64,
    /// Our request, from `acquire` to `release`.
    request: Option<Timestamp>,
    /// The weight that the request still lacks while it waits; 0 otherwise.
    lacking: i64,
    /// The nodes that have said YES to it and not inquired since. They get a RELEASE.
    lenders: NodeSet,
    /// The part that lends this node's own vote.
    voter: Voter,
}

/// The algorithm in which each node has one vote.
pub type Majority = Voting<false>;

/// The algorithm with the weights of the group.
pub type WeightedMajority = Voting<true>;

/// The nodes whose weight is not zero.
fn voters(group: &Group) -> impl Iterator<Item = NodeId> + '_ {
    group.nodes().filter(|node| group.weight(*node) > 0)
}

/// The number of nodes whose weight is not zero (V).
fn count(group: &Group) -> f64 {
    voters(group).count() as f64
}

/// The claim, with the texts of its formulas. A node with a vote asks one node fewer than a node
/// without. Calling a vote back costs up to three more messages. A REQUEST that arrives after the
/// next one of its node is not answered at all.
const fn claim(least: &'static str, most: &'static str, light: &'static str) -> Claim {
    let light = Formula { text: light, of: |g| 3.0 * count(g) * (1.0 - 1.0 / f64::from(g.size())) };
    Claim {
        least: Formula { text: least, of: |g| count(g) - 1.0 },
        most: Formula { text: most, of: |g| 6.0 * count(g).min(f64::from(g.size()) - 1.0) },
        per: Per::Run,
        light: Some(light),
        heavy: None,
    }
}

const EQUAL: Info = Info {
    name: "majority",
    summary: "ask every node for its vote; enter with more than half",
    paper: "Thomas, A Majority Consensus Approach to Concurrency Control, ACM TODS 4(2)",
    year: 1979,
    kind: Kind::Quorum,
    withdraws: true,
    served: true,
    messages: claim("N-1", "6(N-1)", "3(N-1)"),
    ..Info::BASE
};

impl<const WEIGHTED: bool> Algorithm for Voting<WEIGHTED> {
    type Message = Message;

    const INFO: Info = if WEIGHTED {
        Info {
            name: "weighted-majority",
            summary: "majority with votes of different weight, V of them above zero",
            paper: "Gifford, Weighted Voting for Replicated Data, SOSP",
            needs: Needs::Weights,
            messages: claim("V-1", "6V", "3V(1-1/N)"),
            ..EQUAL
        }
    } else {
        EQUAL
    };

    fn new(me: NodeId, group: &Group, start: &Start) -> Self {
        let clock = start.floor;
        let inside = start.holders.first().map(|holder| Timestamp { clock, node: holder.node });
        let request = inside.filter(|request| request.node == me);
        let voter = Voter::lent_to(inside.filter(|_| group.weight(me) > 0));
        let lenders = voters(group).filter(|_| request.is_some()).collect();
        Self { me, clock, request, lacking: 0, lenders, voter }
    }

    fn acquire(&mut self, group: &Group, _mode: Mode, out: &mut Effects<Message>) {
        self.clock += 1;
        self.request = Some(Timestamp { clock: self.clock, node: self.me });
        self.lacking = (group.total_weight() / 2 + 1).cast_signed();
        for voter in voters(group) {
            self.send(group, voter, Message::Request(self.clock), out);
        }
    }

    fn receive(&mut self, group: &Group, from: NodeId, msg: Message, out: &mut Effects<Message>) {
        let theirs = |clock| Timestamp { clock, node: from };
        let answer = match msg {
            Message::Request(CLOCK_LIMIT..) | Message::Yes(_, CLOCK_LIMIT..) => {
                return out.reject(BEYOND_LIMIT);
            }
            Message::Request(_) if group.weight(self.me) == 0 => {
                return out.reject("a request for the vote of a node that has none");
            }
            Message::Request(clock) => {
                self.clock = self.clock.max(clock);
                self.voter.request(theirs(clock))
            }
            Message::Relinquish(clock) => self.voter.relinquish(theirs(clock)),
            Message::Release(clock) => self.voter.release(theirs(clock)),
            Message::Yes(clock, _) | Message::Inquire(clock) if clock > self.clock => {
                return out.reject("an answer to a request that was never made");
            }
            Message::Yes(clock, seen) => {
                self.clock = self.clock.max(seen);
                if self.request.is_none_or(|ours| ours.clock != clock) {
                    return self.send(group, from, Message::Release(clock), out);
                }
                self.lenders.insert(from);
                if self.lacking > 0 {
                    self.lacking = (self.lacking - i64::from(group.weight(from))).max(0);
                    if self.lacking == 0 {
                        out.enter();
                    }
                }
                return;
            }
            Message::Inquire(clock) if self.waits_with(clock) => {
                self.lenders.remove(from);
                self.lacking += i64::from(group.weight(from));
                return self.send(group, from, Message::Relinquish(clock), out);
            }
            Message::Inquire(_) => return, // Inside or done: our RELEASE answers it.
        };
        match answer {
            Some(VoterReply::Yes(r)) => {
                self.send(group, r.node, Message::Yes(r.clock, self.clock), out);
            }
            Some(VoterReply::Inquire(r)) => {
                self.send(group, r.node, Message::Inquire(r.clock), out);
            }
            None => {}
        }
    }

    fn release(&mut self, group: &Group, out: &mut Effects<Message>) {
        let Some(request) = self.request.take() else { return };
        for voter in core::mem::take(&mut self.lenders).iter() {
            self.send(group, voter, Message::Release(request.clock), out);
        }
    }

    fn withdraw(&mut self, group: &Group, out: &mut Effects<Message>) {
        self.lacking = 0;
        self.release(group, out);
    }

    fn wanted(&self) -> bool {
        !self.voter.knows_only(self.request) // A node without a vote does not learn of requests.
    }

    fn floor(&self) -> Option<u64> {
        self.voter.idle().then_some(self.clock)
    }

    fn serves(message: &Message, _from: NodeId, to: NodeId) -> Option<NodeId> {
        matches!(message, Message::Yes(..)).then_some(to)
    }

    fn settle(group: &Group, snapshot: &mut Snapshot<Self>) {
        settle::settle(group, snapshot);
    }
}

impl<const WEIGHTED: bool> Voting<WEIGHTED> {
    fn waits_with(&self, clock: u64) -> bool {
        self.lacking > 0 && self.request.is_some_and(|request| request.clock == clock)
    }

    /// Send a message. What a node sends to itself takes effect at once and costs no message.
    fn send(&mut self, group: &Group, to: NodeId, message: Message, out: &mut Effects<Message>) {
        if to == self.me {
            self.receive(group, to, message, out);
        } else {
            out.send(to, message);
        }
    }
}
