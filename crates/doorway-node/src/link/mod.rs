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
