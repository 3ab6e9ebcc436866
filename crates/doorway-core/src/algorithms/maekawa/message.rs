//! The messages of Maekawa's algorithm.

use super::arbiter::Answer;
use crate::algorithms::prelude::*;

/// The messages of the paper.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    /// Lock yourself for my request of this number.
    Request(u64),
    /// I am locked for you. With the highest number seen here.
    Locked(u64),
    /// An older request is before yours.
    Failed,
    /// An older request waits: will yours, of this number, succeed?
    Inquire(u64),
    /// It will not: take your lock back for now.
    Relinquish,
    /// I am done.
    Release,
}

impl Message {
    /// What an arbiter's answer about `request` is called, at a node with this clock.
    pub fn answer(request: Timestamp, answer: Answer, clock: u64) -> Self {
        match answer {
            Answer::Locked => Self::Locked(clock),
            Answer::Failed => Self::Failed,
            Answer::Inquire => Self::Inquire(request.clock),
        }
    }

    /// The number to learn from it: nobody's next request should seem older.
    pub fn clock(&self) -> u64 {
        if let Self::Request(clock) | Self::Locked(clock) = self { *clock } else { 0 }
    }

    /// The numbers in it.
    pub fn numbers(&mut self, each: Each<'_>) {
        if let Self::Request(clock) | Self::Locked(clock) | Self::Inquire(clock) = self {
            each(clock);
        }
    }

    /// Is it for the receiver's arbiter, and not for its requester?
    pub fn is_for_arbiter(&self) -> bool {
        matches!(self, Self::Request(_) | Self::Relinquish | Self::Release)
    }
}
