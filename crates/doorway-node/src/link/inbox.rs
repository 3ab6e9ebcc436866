//! The receiving half of a link: which message is the next.

use super::{Incarnation, ReceivedCount};

/// What has been received of a peer, and on which connection more may come.
///
/// Connections are numbered in the order of their greetings. A greeting retires every earlier
/// connection, so that what its hello says has been received stays true until the other side has
/// read it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Inbox {
    received: ReceivedCount,
    /// The newest connection.
    connection: u64,
    /// Has it been resumed?
    open: bool,
}

/// What to do with a message that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is the next one: count it with [`Inbox::delivered`] when it is delivered.
    Deliver,
    /// It has been delivered before.
    Duplicate,
    /// Others are missing before it: the connection is of no more use.
    Gap,
    /// The connection has been replaced by a newer one.
    Stale,
}

impl Inbox {
    /// Begin a connection: its number, and what to say that has been received. No earlier
    /// connection delivers any more.
    pub fn greet(&mut self) -> (u64, ReceivedCount) {
        self.connection += 1;
        self.open = false;
        (self.connection, self.received)
    }

    /// Both sides have greeted each other on this connection, and this life of the peer speaks on
    /// it. `false` if the connection has been replaced meanwhile.
    ///
    /// A side that was greeted first calls this only on hearing more than the hello. The hello
    /// alone may have lain about while the peer started anew.
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

    /// What is to become of message `number`, which came on this connection?
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

    /// The message that was judged the next one has been delivered.
    pub fn delivered(&mut self) {
        self.received.count += 1;
    }

    /// The connection is gone. Was it the one in use?
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

    /// How many messages of the present life of the peer have been delivered.
    pub fn received(&self) -> u64 {
        self.received.count
    }
}
