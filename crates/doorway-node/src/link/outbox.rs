//! The sending half of a link: what the peer has not yet acknowledged.

use std::collections::VecDeque;

use super::frame::Frame;
use super::{Incarnation, ReceivedCount};

/// Messages for a peer, from when they are sent until it says that it has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Outbox {
    /// Which of the peer's lives they are for; nothing is kept for one that was never met.
    peer: Option<Incarnation>,
    /// The connection that is written to.
    connection: u64,
    /// How many messages the peer has.
    acknowledged: u64,
    /// Those after them.
    waiting: VecDeque<Vec<u8>>,
    /// How many have been written, on the present connection or known to have arrived before.
    written: u64,
    /// How many messages of the peer are here, to be told at the next opportunity.
    received: u64,
    /// How many the peer has been told of on this connection.
    ack_sent: u64,
}

/// A peer says what cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AckError {
    /// It acknowledges what it was never sent.
    #[error("it acknowledges {count} messages, and was sent {sent}")]
    NeverSent {
        /// How many it says it has.
        count: u64,
        /// How many it can have.
        sent: u64,
    },
    /// In one and the same life it has lost what it acknowledged.
    #[error("it knows of {count} messages, and has acknowledged {acknowledged}")]
    Forgotten {
        /// How many it says it has.
        count: u64,
        /// How many it has said it has.
        acknowledged: u64,
    },
}

impl Outbox {
    /// After so many messages the peer is told, if no message of ours tells it before.
    const ACK_AFTER: u64 = 32;

    /// Send a message. It is kept until the peer acknowledges it or starts anew. One for a peer
    /// that was never met is for nobody.
    pub fn push(&mut self, message: Vec<u8>) {
        if self.peer.is_some() {
            self.waiting.push_back(message);
        }
    }

    /// A connection is up, numbered as by [`Inbox::greet`](super::Inbox::greet). The peer has said
    /// which life it is in and what it has received of ours, `me`; the rest is written anew.
    pub fn resume(
        &mut self,
        connection: u64,
        me: Incarnation,
        peer: Incarnation,
        has: ReceivedCount,
    ) -> Result<(), AckError> {
        if self.peer == Some(peer) {
            // A peer that does not know this life of ours has received nothing of it.
            let count = if has.of == me { has.count } else { 0 };
            if count < self.acknowledged {
                let acknowledged = self.acknowledged;
                return Err(AckError::Forgotten { count, acknowledged });
            }
            self.acknowledge(count)?;
            self.written = count;
        } else {
            *self = Self { peer: Some(peer), ..Self::default() };
        }
        self.connection = connection;
        // The hello has told it.
        self.ack_sent = self.received;
        Ok(())
    }

    /// The peer has so many messages.
    pub fn acknowledge(&mut self, count: u64) -> Result<(), AckError> {
        if count > self.written {
            return Err(AckError::NeverSent { count, sent: self.written });
        }
        // An older word may come after a newer one.
        let news = count.saturating_sub(self.acknowledged);
        self.waiting.drain(..news as usize);
        self.acknowledged += news;
        Ok(())
    }

    /// So many messages of the peer have been delivered here. Is it time to tell it?
    pub fn set_received(&mut self, received: u64) -> bool {
        self.received = received;
        self.ack_due()
    }

    /// Append what is to be written on this connection: until `limit` bytes are there, for nobody
    /// gains from more at once. `false` if the connection has been replaced.
    pub fn fill(&mut self, connection: u64, limit: usize, out: &mut Vec<u8>) -> bool {
        if self.connection != connection {
            return false;
        }
        let begin = (self.written - self.acknowledged) as usize;
        for message in self.waiting.range(begin..) {
            if out.len() >= limit {
                break;
            }
            self.written += 1;
            self.ack_sent = self.received;
            let (number, received) = (self.written, self.received);
            Frame::Data { number, received, message }.encode(out);
        }
        if self.ack_due() {
            self.write_ack(out);
        }
        true
    }

    /// Append a sign of life. `false` if the connection has been replaced.
    pub fn heartbeat(&mut self, connection: u64, out: &mut Vec<u8>) -> bool {
        let current = self.connection == connection;
        if current {
            self.write_ack(out);
        }
        current
    }

    fn write_ack(&mut self, out: &mut Vec<u8>) {
        self.ack_sent = self.received;
        Frame::Ack(self.received).encode(out);
    }

    /// Has so much come that the peer should hear of it, though there is no message to tell it by?
    fn ack_due(&self) -> bool {
        self.received.saturating_sub(self.ack_sent) >= Self::ACK_AFTER
    }

    /// How many messages the peer has not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.waiting.len()
    }
}
