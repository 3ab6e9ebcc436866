//! The link between two nodes, without clock, network or threads.
//!
//! Messages arrive exactly once and in order, across any number of connections. When one of the two
//! nodes restarts, messages that have not arrived are dropped.

mod frame;
mod hello;
mod inbox;
mod outbox;

pub use frame::{Decoder, Frame, FrameError, Kind, MESSAGE_MAX};
pub use hello::{Hello, ReceivedCount, Refusal, Versions};
pub use inbox::{Inbox, Verdict};
pub use outbox::{AckError, Outbox};

use serde::{Deserialize, Serialize};

/// One start of a node: a number that differs from start to start.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Incarnation(pub u64);

impl Incarnation {
    /// What a node says in the hellos of one of its links. The first link to a peer has the number
    /// 0. If a link is made anew while both processes go on, it has another number: the node has
    /// forgotten what was sent and received over the link before, so the peer must count from the
    /// beginning too.
    #[must_use]
    pub fn of_link(self, number: u64) -> Self {
        Self(self.0.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }
}
