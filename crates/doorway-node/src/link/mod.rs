//! The link between two nodes, without clock, network or threads.
//!
//! Messages arrive exactly once and in order, across any number of connections; or, when one of the
//! two has started anew, not at all.

mod frame;
mod hello;
mod inbox;
mod outbox;

pub use frame::{Decoder, Frame, FrameError, Kind, MESSAGE_MAX};
pub use hello::{Hello, ReceivedCount, Refusal, Versions};
pub use inbox::{Inbox, Verdict};
pub use outbox::{AckError, Outbox};

use serde::{Deserialize, Serialize};

/// One life of a node: a number drawn at its start, so that no two starts have the same one.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Incarnation(pub u64);
