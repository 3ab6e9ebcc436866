//! Raymond, "A Distributed Algorithm for Multiple Entries to a Critical Section", Information
//! Processing Letters 30(4), 1989.
//!
//! Ricart and Agrawala's algorithm for K entries at once. A node that wants to enter asks all
//! others, but need not wait for all replies: it enters as soon as at most K−1 seats can be taken.
//! In the paper each node has one seat; here it has S, so that one node may hold several permits
//! and K may exceed N.
//!
//! # Rules
//!
//! 1. To ask: take a sequence number above every number seen and send REQUEST to all others.
//! 2. On REQUEST: every permit held, and the node's own request if it is older, takes a seat. REPLY
//!    that the other seats are free, if there are any. A reply for each seat taken is deferred.
//! 3. On REPLY: count its seats, if it answers the present request and not an earlier one.
//! 4. To leave: one seat becomes free. Send a REPLY that says so to every node with a deferred
//!    reply.
//! 5. Enter when, after any of these, at least N×S−K seats are free, including the node's own.
//!
//! # Why it is right
//!
//! Suppose that more than K permits are held at once, and take the K+1st by age. Its node entered
//! knowing that at most K−1 seats were taken. But each of the K older permits was held or wanted
//! when its node received the request, since later claims have higher numbers, and has kept its
//! seat since: a contradiction. Only permits that are held keep the oldest waiting request out. The
//! order of delivery does not matter.
//!
//! # Departures from the text
//!
//! A node counts its own numbers as seen; the paper takes a number above those received. The
//! numbers then tell the requests of a node apart, which a REPLY needs here: in the paper it says
//! how many requests it answers, here it names the last one. Nodes have seats; the paper's nodes
//! have one.
//!
//! # Withdrawal
//!
//! To give up is to free the seat that the request took: send a REPLY that says so to every node
//! whose request is younger. A REPLY names its request, so one that comes later counts for nothing.
//!
//! # Flaws of the printed text
//!
//! The scanned text counts repliers with Z < me instead of Z ≠ me, so node 1 waits for ever; see
//! `raymond-k-scanned`. It tests for entry only on REPLY, though with K = N no reply is needed.
//! Section 7 calls the lower bound of 2N-K-1 messages not achievable. It is: while K-1 nodes stay
//! inside, each entry of another node costs just that (`doorway paper raymond-k-section-7`).
//!
//! # Variant raymond-k-scanned
//!
//! - Rule 3: a REPLY counts only if it comes from a node with a lower number.

use super::prelude::*;
use super::ricart_agrawala::COST;

/// The messages of Raymond's algorithm for K entries.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    /// May I enter? With the request's sequence number.
    Request(u64),
    /// As far as I am concerned, some more of my seats are free.
    Reply {
        /// The sequence number of the request.
        seq: u64,
        /// The number of seats.
        seats: u32,
    },
}

/// The state of one node in Raymond's algorithm for K entries. `SCANNED` selects the variant with
/// the misprint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Entries<const SCANNED: bool> {
    me: NodeId,
    /// The highest sequence number in any request sent or received (`Max_Seq`).
    highest: u64,
    /// The number of permits that our clients hold.
    held: u32,
    /// The sequence number of our request, while it waits (`Our_Seq`).
    request: Option<u64>,
    /// The number of free seats that each node has reported since; empty while no request waits.
    free: Vec<u32>,
    /// The sum of `free`.
    known: u64,
    /// The nodes that get replies when we leave, each with its request and the number of seats
    /// (`Defer_Count`).
    deferred: BTreeMap<NodeId, (u64, u32)>,
}

/// Raymond's algorithm for K entries at once.
pub type RaymondK = Entries<false>;

/// The refuted variant with the misprint: only replies of lower nodes count.
pub type RaymondKScanned = Entries<true>;

/// The lowest cost: a request to all others, and as many replies as it takes to learn of enough
/// seats.
fn least(group: &Group) -> f64 {
    let (others, seats) = (u64::from(group.size() - 1), u64::from(group.seats()));
    let needed = (others * seats + 1).saturating_sub(u64::from(group.permits()));
    (others + needed.div_ceil(seats)) as f64
}

/// The highest cost: a request to all others, and from each as many replies as it has seats.
fn most(group: &Group) -> f64 {
    f64::from(group.size() - 1) * f64::from(1 + group.seats())
}

const PRINTED: Info = Info {
    name: "raymond-k",
    summary: "K entries at once: ask every node, wait until at most K-1 can be inside",
    paper: "Raymond, A Distributed Algorithm for Multiple Entries to a Critical Section, IPL 30(4)",
    year: 1989,
    kind: Kind::Permission,
    permits: true,
    // With two or more permits: each fault takes away one of them.
    survives: &[Fault::Loss, Fault::CrashOutside, Fault::CrashInside],
    withdraws: true,
    served: true,
    messages: Claim {
        least: Formula { text: "2N-K-1 if S=1", of: least },
        most: Formula { text: "2(N-1) if S=1", of: most },
        per: Per::Run,
        light: Some(COST),
        heavy: None,
    },
    ..Info::BASE
};

impl<const SCANNED: bool> Algorithm for Entries<SCANNED> {
    type Message = Message;

    const INFO: Info = if SCANNED {
        Info {
            name: "raymond-k-scanned",
            summary: "raymond-k with the misprint Z < me: replies of higher nodes do not count",
            refuted: Some("node 1 alone asks and waits for ever: N=3, K=2, 5 steps"),
            survives: &[],
            withdraws: false,
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
            Message::Reply { seq, .. } if seq > self.highest => {
                out.reject("a reply to a request that was never made");
            }
            Message::Reply { seq, seats } if self.request == Some(seq) => {
                match self.free.get_mut(from.index()) {
                    Some(free) if seats <= group.seats() - *free => *free += seats,
                    _ => return out.reject("a reply with more free seats than the node has"),
                }
                if !SCANNED || from < self.me {
                    self.known += u64::from(seats);
                }
                self.enter_if_room(group, out);
            }
            Message::Reply { .. } => {} // To an earlier request, which did not need it.
        }
    }

    fn release(&mut self, group: &Group, out: &mut Effects<Message>) {
        self.held -= 1;
        self.deferred.retain(|node, (seq, seats)| {
            out.send(*node, Message::Reply { seq: *seq, seats: 1 });
            *seats -= 1;
            *seats > 0
        });
        self.enter_if_room(group, out); // Our request may have waited for this very seat.
    }

    fn withdraw(&mut self, _group: &Group, out: &mut Effects<Message>) {
        let Some(ours) = self.request.take() else { return };
        (self.known, self.free) = (0, Vec::new());
        let me = self.me;
        self.deferred.retain(|node, (seq, seats)| {
            if (ours, me) < (*seq, *node) {
                out.send(*node, Message::Reply { seq: *seq, seats: 1 });
                *seats -= 1;
            }
            *seats > 0
        });
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

    /// All sequence numbers are one family. A reply to an earlier request does nothing, now or
    /// later: no request will have that number again.
    fn settle(_group: &Group, snapshot: &mut Snapshot<Self>) {
        let nodes = &snapshot.nodes;
        snapshot.mail.retain(|mail| match mail.message {
            Message::Reply { seq, .. } => {
                nodes.iter().any(|node| node.me == mail.to && node.request == Some(seq))
            }
            Message::Request(_) => true,
        });
        let of_node = |node: &mut Self, each: NumberVisitor<'_>| {
            each(&mut node.highest);
            node.request.iter_mut().for_each(&mut *each);
            node.deferred.values_mut().for_each(|(seq, _)| each(seq));
        };
        snapshot.rebase(of_node, |mail, each| match &mut mail.message {
            Message::Request(seq) | Message::Reply { seq, .. } => each(seq),
        });
    }
}

impl<const SCANNED: bool> Entries<SCANNED> {
    fn answer(&mut self, group: &Group, from: NodeId, seq: u64, out: &mut Effects<Message>) {
        match self.deferred.get(&from) {
            Some((last, _)) if *last == seq => return out.reject("a request that has come before"),
            Some((last, _)) if *last > seq => return, // A newer one has overtaken it: it is done.
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
