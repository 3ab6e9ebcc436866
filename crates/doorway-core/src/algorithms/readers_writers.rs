//! Readers and writers, after Ricart & Agrawala, "An Optimal Algorithm for Mutual Exclusion in
//! Computer Networks", Communications of the ACM 24(1), 1981.
//!
//! Their algorithm, except that a request says whether it is to read or to write, and two readers
//! never wait for each other: a reader answers a reader at once. So readers are inside together and
//! a writer is alone. A reader that comes after a waiting writer waits for it, so writers do not
//! starve. The text repeats that of `ricart-agrawala`, so that each can be read beside the paper.
//!
//! # Rules
//!
//! 1. To ask: take a sequence number above every number seen and send REQUEST with the mode to all
//!    others.
//! 2. On REQUEST: REPLY at once if both want to read. Else defer the reply while inside, or while
//!    waiting with an older request; else REPLY.
//! 3. On the last of the N−1 REPLYs: enter.
//! 4. To leave: send every deferred REPLY.
//!
//! # Why it is right
//!
//! Of two nodes that wait or are inside, and not both to read, the one with the older request
//! defers its reply to the other until it has left. Requests are totally ordered by number and
//! node, so the oldest is deferred by nobody. The order of delivery plays no part.

use super::prelude::*;
use super::ricart_agrawala::COST;

/// The messages of the paper.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    /// May I? With the request's sequence number and mode.
    Request(u64, Mode),
    /// As far as I am concerned, yes.
    Reply,
}

/// The state of one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReadersWriters {
    me: NodeId,
    /// The highest sequence number in any request sent or received.
    highest: u64,
    /// Our request, from `acquire` to `release`.
    request: Option<(Timestamp, Mode)>,
    /// Who has yet to reply to it.
    awaited: NodeSet,
    /// Whom we owe a reply on leaving.
    deferred: NodeSet,
}

impl Algorithm for ReadersWriters {
    type Message = Message;

    const INFO: Info = Info {
        name: "readers-writers",
        summary: "Ricart-Agrawala, but readers never wait for readers",
        paper: "after Ricart & Agrawala, An Optimal Algorithm for Mutual Exclusion in Computer Networks, CACM 24(1)",
        year: 1981,
        kind: Kind::Permission,
        channel: Channel::Unordered,
        shared: true,
        permits: false,
        needs: Needs::Nothing,
        refuted: None,
        served: true,
        messages: Claim {
            least: COST,
            most: COST,
            per: Per::Entry,
            light: Some(COST),
            heavy: Some(COST),
        },
    };

    fn new(me: NodeId, _group: &Group, start: &Start) -> Self {
        // The requests of holders count as the oldest of all.
        let oldest = Timestamp { clock: start.floor, node: me };
        let request = start.holder(me).map(|holder| (oldest, holder.mode));
        let (awaited, deferred) = (NodeSet::new(), NodeSet::new());
        Self { me, highest: start.floor, request, awaited, deferred }
    }

    fn acquire(&mut self, group: &Group, mode: Mode, out: &mut Effects<Message>) {
        self.highest += 1;
        self.request = Some((Timestamp { clock: self.highest, node: self.me }, mode));
        self.awaited = NodeSet::full(group.size());
        self.awaited.remove(self.me);
        out.send_all(group.others(self.me), &Message::Request(self.highest, mode));
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
        match message {
            Message::Request(CLOCK_LIMIT.., _) => out.reject(BEYOND_LIMIT),
            Message::Request(clock, mode) => {
                let theirs = Timestamp { clock, node: from };
                if self.deferred.contains(from) {
                    return out.reject("a second request before a reply to the first");
                }
                self.highest = self.highest.max(clock);
                let defer = self.request.is_some_and(|(ours, our_mode)| {
                    let conflict = (our_mode, mode) != (Mode::Shared, Mode::Shared);
                    conflict && (self.awaited.is_empty() || ours < theirs)
                });
                if defer {
                    self.deferred.insert(from);
                } else {
                    out.send(from, Message::Reply);
                }
            }
            Message::Reply => {
                if !self.awaited.remove(from) {
                    return out.reject("a reply to no request of ours");
                }
                if self.awaited.is_empty() {
                    out.enter();
                }
            }
        }
    }

    fn release(&mut self, _group: &Group, out: &mut Effects<Message>) {
        self.request = None;
        out.send_all(core::mem::take(&mut self.deferred).iter(), &Message::Reply);
    }

    fn wanted(&self) -> bool {
        !self.deferred.is_empty()
    }

    fn floor(&self) -> Option<u64> {
        Some(self.highest)
    }

    fn serves(message: &Message, _from: NodeId, to: NodeId) -> Option<NodeId> {
        (*message == Message::Reply).then_some(to)
    }
}
