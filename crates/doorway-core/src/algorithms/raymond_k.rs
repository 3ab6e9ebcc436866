//! Raymond, "A Distributed Algorithm for Multiple Entries to a Critical Section", Information
//! Processing Letters 30(4), 1989.
//!
//! Ricart and Agrawala's algorithm for K entries at once. A node that wants in asks all others, but
//! need not hear from all: it enters as soon as at most K−1 seats can be taken. The paper gives
//! each node one seat; here it has S, so that one node may hold several permits and K may exceed N.
//!
//! # Rules
//!
//! 1. To ask: take a sequence number above every number seen and send REQUEST to all others.
//! 2. On REQUEST: every permit held, and one's own request if it is older, takes a seat. REPLY that
//!    the other seats are free, if there are any; a reply for each of those taken is deferred.
//! 3. On REPLY: count its seats, if it answers the present request and not an earlier one.
//! 4. To leave: one seat becomes free. REPLY so to everyone with a deferred reply.
//! 5. Enter when, after any of these, at least N×S−K seats are free, one's own among them.
//!
//! # Why it is right
//!
//! Of more than K permits held at once, take the K+1st by age. Its node entered knowing that at
//! most K−1 seats were taken. But each of the K older permits was held or wanted when its node
//! received the request, for later claims have higher numbers, and has kept its seat since: a
//! contradiction. The oldest waiting request is kept out only by permits held. Order plays no part.
//!
//! # Flaws of the printed text
//!
//! The scanned text counts repliers Z < me for Z ≠ me, so node 1 waits for ever; see
//! `raymond-k-scanned`. It tests for entry only on REPLY, though with K = N none is needed. A REPLY
//! of the paper says how many requests it answers; here it names the last, which is as good.
//!
//! # Variant raymond-k-scanned
//!
//! - Rule 3: a REPLY counts only if it comes from a node with a lower number.

use super::prelude::*;
use super::ricart_agrawala::COST;

mod cost;
mod settle;

/// The messages of the paper.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    /// May I? With the request's sequence number.
    Request(u64),
    /// As far as I am concerned, so many more of my seats are free.
    Reply {
        /// The sequence number of the request.
        seq: u64,
        /// How many seats.
        seats: u32,
    },
}

/// The state of one node; `SCANNED` marks the misprinted variant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Entries<const SCANNED: bool> {
    me: NodeId,
    /// The highest sequence number in any request sent or received (`Max_Seq`).
    highest: u64,
    /// How many permits our clients hold.
    held: u32,
    /// The sequence number of our request, while it waits (`Our_Seq`).
    request: Option<u64>,
    /// How many free seats each node has told us of since; empty when nobody waits.
    free: Vec<u32>,
    /// The sum of `free`.
    known: u64,
    /// Whom we owe replies: the request, and for how many seats (`Defer_Count`).
    deferred: BTreeMap<NodeId, (u64, u32)>,
}

/// The algorithm.
pub type RaymondK = Entries<false>;

/// With the misprint: only replies of lower nodes count.
pub type RaymondKScanned = Entries<true>;

const PRINTED: Info = Info {
    name: "raymond-k",
    summary: "K entries at once: ask everyone, wait until at most K-1 can be inside",
    paper: "Raymond, A Distributed Algorithm for Multiple Entries to a Critical Section, IPL 30(4)",
    year: 1989,
    kind: Kind::Permission,
    channel: Channel::Unordered,
    shared: false,
    permits: true,
    needs: Needs::Nothing,
    refuted: None,
    // With two permits or more: each fault takes one away.
    survives: &[Fault::Loss, Fault::CrashOutside, Fault::CrashInside],
    served: true,
    messages: Claim {
        least: Formula { text: "2N-K-1 if S=1", of: cost::least },
        most: Formula { text: "2(N-1) if S=1", of: cost::most },
        per: Per::Run,
        light: Some(COST),
        heavy: None,
    },
};

impl<const SCANNED: bool> Algorithm for Entries<SCANNED> {
    type Message = Message;

    const INFO: Info = if SCANNED {
        Info {
            name: "raymond-k-scanned",
            summary: "raymond-k with the misprint Z < me: replies of higher nodes do not count",
            refuted: Some("node 1 alone asks and waits for ever: N=3, K=2, 5 steps"),
            survives: &[],
            served: false,
            ..PRINTED
        }
    } else {
        PRINTED
    };

    fn new(me: NodeId, _group: &Group, start: &Start) -> Self {
        let held = start.holder(me).map_or(0, |holder| holder.permits);
        Self { me, highest: start.floor, held, ..Self::default() }
    }

    fn acquire(&mut self, group: &Group, _mode: Mode, out: &mut Effects<Message>) {
        self.highest += 1;
        self.request = Some(self.highest);
        self.free = alloc::vec![0; group.size() as usize];
        out.send_all(group.others(self.me), &Message::Request(self.highest));
        self.enter_if_room(group, out);
    }

    fn receive(&mut self, group: &Group, from: NodeId, msg: Message, out: &mut Effects<Message>) {
        match msg {
            Message::Request(CLOCK_LIMIT..) => out.reject(BEYOND_LIMIT),
            Message::Request(seq) => self.answer(group, from, seq, out),
            Message::Reply { seq, .. } if seq > self.highest => out.reject("a reply to nothing"),
            Message::Reply { seq, seats } if self.request == Some(seq) => {
                match self.free.get_mut(from.index()) {
                    Some(free) if seats <= group.seats() - *free => *free += seats,
                    _ => return out.reject("more free seats than the node has"),
                }
                if !SCANNED || from < self.me {
                    self.known += u64::from(seats);
                }
                self.enter_if_room(group, out);
            }
            Message::Reply { .. } => {} // To an earlier request, which could do without it.
        }
    }

    fn release(&mut self, group: &Group, out: &mut Effects<Message>) {
        self.held -= 1;
        self.deferred.retain(|node, (seq, seats)| {
            out.send(*node, Message::Reply { seq: *seq, seats: 1 });
            *seats -= 1;
            *seats > 0
        });
        self.enter_if_room(group, out); // Our own seat may be the one that our request waits for.
    }

    fn wanted(&self) -> bool {
        !self.deferred.is_empty()
    }

    fn floor(&self) -> Option<u64> {
        Some(self.highest)
    }

    fn serves(message: &Message, _from: NodeId, to: NodeId) -> Option<NodeId> {
        matches!(message, Message::Reply { .. }).then_some(to)
    }

    fn settle(_group: &Group, moment: &mut Moment<Self>) {
        settle::settle(moment);
    }
}

impl<const SCANNED: bool> Entries<SCANNED> {
    fn answer(&mut self, group: &Group, from: NodeId, seq: u64, out: &mut Effects<Message>) {
        match self.deferred.get(&from) {
            Some((last, _)) if *last == seq => return out.reject("the same request again"),
            Some((last, _)) if *last > seq => return, // Overtaken by a newer one: long satisfied.
            _ => self.highest = self.highest.max(seq),
        }
        let older = self.request.is_some_and(|ours| (ours, self.me) < (seq, from));
        let taken = self.held + u32::from(older);
        let seats = group.seats().saturating_sub(taken);
        if seats > 0 {
            out.send(from, Message::Reply { seq, seats });
        }
        if taken > 0 {
            self.deferred.insert(from, (seq, taken));
        }
    }

    fn enter_if_room(&mut self, group: &Group, out: &mut Effects<Message>) {
        let (size, seats) = (u64::from(group.size()), u64::from(group.seats()));
        let own = seats.saturating_sub(1 + u64::from(self.held));
        let enough = size * seats - u64::from(group.permits());
        if self.request.is_some() && self.known + own >= enough {
            (self.request, self.known, self.free) = (None, 0, Vec::new());
            self.held += 1;
            out.enter();
        }
    }
}
