//! The receiving side of a link: it decides which message is the next.

use super::{Incarnation, ReceivedCount};

/// What has been received from a peer, and on which connection more may arrive.
///
/// Connections are numbered in the order in which their handshakes begin. A new handshake retires
/// every earlier connection. So the number of received messages that its hello names stays correct
/// until the other side has read the hello.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Inbox {
    received: ReceivedCount,
    /// The number of the newest connection.
    connection: u64,
    /// Is its handshake complete?
    open: bool,
}

/// What to do with a message that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The message is the next one. Count it with [`Inbox::delivered`] when it has been delivered.
    Deliver,
    /// The message has been delivered before.
    Duplicate,
    /// Earlier messages are missing, so the connection cannot be used any more.
    Gap,
    /// The connection has been replaced by a newer one.
    Stale,
}

impl Inbox {
    /// Begin a connection. Returns its number, and what its hello must say has been received.
    /// Earlier connections deliver nothing any more.
    pub fn greet(&mut self) -> (u64, ReceivedCount) {
        self.connection += 1;
        self.open = false;
        (self.connection, self.received)
    }

    /// The handshake of this connection is complete, with this incarnation of the peer. Returns
    /// `false` if the connection has been replaced in the meantime.
    ///
    /// The side that was dialled calls this only after it has received more than the hello. The
    /// hello alone may be old: the peer may have restarted while it was on its way.
    pub fn resume(&mut self, connection: u64, peer: Incarnation) -> bool {
        if connection != self.connection {
            return false;
        }
        self.open = true;
        if self.received.of != peer {
            self.received = ReceivedCount { of: peer, count: 0 };
        }
        true
    }

    /// Judge message `number`, which arrived on this connection.
    pub fn judge(&self, connection: u64, number: u64) -> Verdict {
        if !self.is_current(connection) {
            Verdict::Stale
        } else if number <= self.received.count {
            Verdict::Duplicate
        } else if number == self.received.count + 1 {
            Verdict::Deliver
        } else {
            Verdict::Gap
        }
    }

    /// Count the message that was judged the next one, after it has been delivered.
    pub fn delivered(&mut self) {
        self.received.count += 1;
    }

    /// Note that a connection has ended. Returns whether it was the one in use.
    pub fn close(&mut self, connection: u64) -> bool {
        let current = self.is_current(connection);
        self.open &= !current;
        current
    }

    /// Is this the connection in use?
    pub fn is_current(&self, connection: u64) -> bool {
        self.open && self.connection == connection
    }

    /// Is any connection in use?
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// How many messages of the current incarnation of the peer have been delivered.
    pub fn received(&self) -> u64 {
        self.received.count
    }
}
