//! Readers and writers, after Ricart & Agrawala, "An Optimal Algorithm for Mutual Exclusion in
//! Computer Networks", Communications of the ACM 24(1), 1981.
//!
//! Their algorithm, except that a request says whether its node wants to read or to write, and two
//! readers never wait for each other: a reader replies to a reader at once. So readers are inside
//! together and a writer is alone. A reader that comes after a waiting writer waits for it, so
//! writers do not starve.
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
//! Of two nodes that wait or are inside, unless both read, the one with the older request defers
//! its reply to the other until it has left. Requests are totally ordered by number and node, so no
//! node defers its reply to the oldest request. The order of delivery does not matter.
//!
//! # Withdrawal
//!
//! 5. To give up, and on a REPLY to a request that was given up: as in `ricart-agrawala`. While
//!    such a request is open, its mode counts, not that of the request that comes after it.

use super::prelude::*;
use super::ricart_agrawala::{self, RicartAgrawala};

/// The messages of the paper, with a mode.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    /// May I enter? With the request's sequence number and mode.
    Request(u64, Mode),
    /// Yes, as far as I am concerned.
    Reply,
}

/// The state of one node in the algorithm for readers and writers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReadersWriters {
    /// The algorithm for every pair of nodes that do not both read.
    agreement: RicartAgrawala,
    /// The mode of our request, from `acquire` to `release`.
    mode: Option<Mode>,
    /// The mode of the request that our client makes after it gave up one that is still open.
    next: Option<Mode>,
}

impl Algorithm for ReadersWriters {
    type Message = Message;

    const INFO: Info = Info {
        name: "readers-writers",
        summary: "Ricart-Agrawala, but readers never wait for readers",
        paper: "after Ricart & Agrawala, An Optimal Algorithm for Mutual Exclusion in Computer Networks, CACM 24(1)",
        shared: true,
        ..RicartAgrawala::INFO
    };

    fn new(me: NodeId, group: &Group, start: &Start) -> Self {
        let agreement = RicartAgrawala::new(me, group, start);
        Self { agreement, mode: start.holder(me).map(|holder| holder.mode), next: None }
    }

    fn acquire(&mut self, group: &Group, mode: Mode, out: &mut Effects<Message>) {
        let mine = if self.agreement.withdrawn() { &mut self.next } else { &mut self.mode };
        *mine = Some(mode);
        self.agree(out, |agreement, inner| agreement.acquire(group, mode, inner));
    }

    fn receive(&mut self, group: &Group, from: NodeId, msg: Message, out: &mut Effects<Message>) {
        let msg = match msg {
            Message::Request(CLOCK_LIMIT.., _) => return out.reject(BEYOND_LIMIT),
            Message::Request(clock, Mode::Shared) if self.mode == Some(Mode::Shared) => {
                self.agreement.observe(clock);
                return out.send(from, Message::Reply);
            }
            Message::Request(clock, _) => ricart_agrawala::Message::Request(clock),
            Message::Reply => ricart_agrawala::Message::Reply,
        };
        self.agree(out, |agreement, inner| agreement.receive(group, from, msg, inner));
    }

    fn release(&mut self, group: &Group, out: &mut Effects<Message>) {
        self.mode = None;
        self.agree(out, |agreement, inner| agreement.release(group, inner));
    }

    fn withdraw(&mut self, group: &Group, out: &mut Effects<Message>) {
        self.next = None;
        self.agree(out, |agreement, inner| agreement.withdraw(group, inner));
    }

    fn wanted(&self) -> bool {
        self.agreement.wanted()
    }

    fn floor(&self) -> Option<u64> {
        self.agreement.floor()
    }

    fn serves(message: &Message, _from: NodeId, to: NodeId) -> Option<NodeId> {
        (*message == Message::Reply).then_some(to)
    }

    /// Readers do not wait for each other. So the number of a reader that waits for a writer falls
    /// behind while another reader asks again and again. But every node has seen the numbers of
    /// these requests, and none counts on from below.
    fn settle(_group: &Group, snapshot: &mut Snapshot<Self>) {
        let of_node = |node: &mut Self, each: NumberVisitor<'_>| node.agreement.numbers(each);
        let counter = |node: &Self| node.agreement.highest();
        snapshot.rebase_with_ranks(0, counter, of_node, |mail, each| {
            if let Message::Request(clock, _) = &mut mail.message {
                each(clock);
            }
        });
    }
}

impl ReadersWriters {
    /// Step the inner algorithm. A request that it sends carries our mode.
    fn agree(
        &mut self,
        out: &mut Effects<Message>,
        act: impl FnOnce(&mut RicartAgrawala, &mut Effects<ricart_agrawala::Message>),
    ) {
        let mut inner = Effects::default();
        let withdrawn = self.agreement.withdrawn();
        act(&mut self.agreement, &mut inner);
        if withdrawn && !self.agreement.withdrawn() {
            self.mode = self.next.take();
        }
        let mode = self.mode.unwrap_or_default();
        out.forward(inner, |message| match message {
            ricart_agrawala::Message::Request(clock) => Message::Request(clock, mode),
            ricart_agrawala::Message::Reply => Message::Reply,
        });
    }
}
