//! The sending side of a link: messages that the peer has not yet acknowledged.

use std::collections::VecDeque;

use super::frame::Frame;
use super::{Incarnation, ReceivedCount};

/// Messages for a peer, from when they are sent until the peer acknowledges them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Outbox {
    /// For which incarnation of the peer they are. Nothing is kept for a peer that was never
    /// connected.
    peer: Option<Incarnation>,
    /// The number of the connection that is written to.
    connection: u64,
    /// How many messages the peer has acknowledged.
    acknowledged: u64,
    /// The messages after those.
    waiting: VecDeque<Vec<u8>>,
    /// How many messages have been written on this connection, or are known to have arrived before.
    written: u64,
    /// How many messages of the peer have been delivered here.
    received: u64,
    /// How many of those have been acknowledged on this connection.
    ack_sent: u64,
}

/// A peer acknowledges messages in an impossible way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AckError {
    /// The peer acknowledges messages that were never sent.
    #[error("it acknowledges {count} messages, but only {sent} were sent")]
    NeverSent {
        /// How many messages it says it has.
        count: u64,
        /// How many messages were sent to it.
        sent: u64,
    },
    /// The peer has lost messages that it had acknowledged, without a restart.
    #[error("it has {count} messages, but had acknowledged {acknowledged}")]
    Forgotten {
        /// How many messages it says it has.
        count: u64,
        /// How many messages it had acknowledged.
        acknowledged: u64,
    },
}

impl Outbox {
    /// After how many received messages an acknowledgement is sent, if no message carries it
    /// before.
    const ACK_AFTER: u64 = 32;

    /// Add a message. It is kept until the peer acknowledges it or restarts. A message for a peer
    /// that was never connected is dropped.
    pub fn push(&mut self, message: Vec<u8>) {
        if self.peer.is_some() {
            self.waiting.push_back(message);
        }
    }

    /// A connection is up, with the number that [`Inbox::greet`](super::Inbox::greet) returned. The
    /// peer has told its incarnation, and what it has received from ours, `me`. All later messages
    /// are written again.
    pub fn resume(
        &mut self,
        connection: u64,
        me: Incarnation,
        peer: Incarnation,
        has: ReceivedCount,
    ) -> Result<(), AckError> {
        if self.peer == Some(peer) {
            // A peer that does not know our incarnation has received nothing from it.
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
        // The hello has acknowledged these.
        self.ack_sent = self.received;
        Ok(())
    }

    /// The peer acknowledges that it has this many messages.
    pub fn acknowledge(&mut self, count: u64) -> Result<(), AckError> {
        if count > self.written {
            return Err(AckError::NeverSent { count, sent: self.written });
        }
        // An older acknowledgement may arrive after a newer one.
        let news = count.saturating_sub(self.acknowledged);
        self.waiting.drain(..news as usize);
        self.acknowledged += news;
        Ok(())
    }

    /// Set how many messages of the peer have been delivered here. Returns whether an
    /// acknowledgement should be sent now.
    pub fn set_received(&mut self, received: u64) -> bool {
        self.received = received;
        self.ack_due()
    }

    /// Append frames for this connection, until there are `limit` bytes: writing more at once gains
    /// nothing. Returns `false` if the connection has been replaced.
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

    /// Append a heartbeat. Returns `false` if the connection has been replaced.
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

    /// Have enough messages arrived that an acknowledgement should be sent of its own?
    fn ack_due(&self) -> bool {
        self.received.saturating_sub(self.ack_sent) >= Self::ACK_AFTER
    }

    /// How many messages the peer has not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.waiting.len()
    }
}
