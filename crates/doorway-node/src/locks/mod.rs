//! Named locks at one node, without clock, network or threads, so that tests can explore them.

mod book;
mod clients;
mod counters;
mod door;
mod early;
mod effects;
mod event;
mod fingerprint;
mod kept;
mod lease;
mod lock;
mod machine;
mod reclaim;
mod report;
mod returns;
mod rule;
mod shard;
mod table;
mod view;

pub use crate::seating::Seating;
pub use book::RuleBook;
pub use clients::ClientEnd;
pub use counters::LockCounters;
pub use effects::{LostGrant, ShardEffects};
pub use event::{LockEvent, Record};
pub use kept::{AtomicByte, KeptWord};
pub use lock::{ClientId, Lock, LockEffects, Pace};
pub use machine::{AlgorithmMachine, Fault, Payload, Sends, TypedMachine};
pub use reclaim::ReclaimRefusal;
pub use report::BusyLock;
pub use returns::Patience;
pub use rule::{MachineConstructor, Rule, RuleError, served};
pub use shard::{LockRequest, Shard};
pub use table::Slot;
