//! The messages of `majority`.

use crate::algorithms::prelude::*;

/// The messages; each begins with the number of the request that it speaks of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    /// Lend me your vote.
    Request(u64),
    /// You have my vote. The second number is the highest I have seen, for those that nobody asks.
    Yes(u64, u64),
    /// An older request would like the vote.
    Inquire(u64),
    /// Here is the vote back, but I still want it.
    Relinquish(u64),
    /// I need the vote no longer.
    Release(u64),
}
