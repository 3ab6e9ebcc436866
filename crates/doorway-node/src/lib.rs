//! Named locks over a network, inside a Rust program.

mod acquire;
mod config;
mod counters;
mod error;
mod fence;
mod guard;
mod handle;
mod inner;
pub mod link;
pub mod locks;
mod name;
pub mod net;
mod node;
mod questions;
mod running;
mod turnover;
mod upper;
pub mod views;
mod why;
pub mod wire;

pub use acquire::Acquire;
pub use config::{Config, ConfigError, MemberConfig, Mistake, RuleConfig, TlsConfig};
pub use counters::{NodeCounters, RuleCounters};
pub use doorway_core::Mode;
pub use error::{AcquireError, Lost, StartError};
pub use fence::Fence;
pub use guard::{Guard, Held, OwnedGuard};
pub use handle::{Handle, Session};
pub use name::{Name, NameError};
pub use node::Node;
pub use why::{Waiter, Who, Why};
