//! Named locks at one node, without clock, network or threads: all of it can be checked.

mod lock;
mod machine;
mod rule;

pub use lock::{ClientId, Lock, Moves};
pub use machine::{Fault, Machine, Payload, Sends, Typed};
pub use rule::{Rule, RuleError, served};
