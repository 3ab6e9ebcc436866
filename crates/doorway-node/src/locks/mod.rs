//! Named locks at one node, without clock, network or threads: all of it can be checked.

mod clients;
mod counters;
mod kept;
mod lock;
mod machine;
mod reclaim;
mod record;
mod report;
mod rule;
mod shard;
mod table;
mod view;

pub use clients::Ended;
pub use counters::Counters;
pub use lock::{ClientId, Lock, Moves};
pub use machine::{Fault, Machine, Payload, Sends, Typed};
pub use reclaim::Unclaimed;
pub use record::{Did, Record};
pub use rule::{Rule, RuleError, served};
pub use shard::{Ask, LostBy, Out, Setup, Shard};
pub use table::Slot;
