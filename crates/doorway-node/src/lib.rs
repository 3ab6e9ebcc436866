//! Named locks inside a Rust program, alone or in a group of nodes over a network.
//!
//! A node keeps any number of named locks and serves any number of clients. Among the nodes of a
//! group the classical algorithms of mutual exclusion decide, each lock by its own: the very state
//! machines of `doorway-core` that the laboratory simulates, checks and draws.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use doorway_node::Node;
//!
//! let node = Node::alone(); // No peers, no configuration, no port.
//! let orders = node.open("orders")?; // Looked up once, asked for often.
//! let guard = orders.lock().await?;
//! assert!(orders.try_lock()?.is_none());
//! println!("inside, with fence {}", guard.fence());
//! drop(guard); // Released.
//! # Ok(())
//! # }
//! ```
//!
//! # Groups
//!
//! [`Node::start`] takes a [`Config`] with the members of the group, which is the same at all of
//! them, and a certificate that proves which one this is: it is issued for `NODE.GROUP.doorway` by
//! an authority that all of them trust. Every start of a node is durably counted, so a node with
//! peers needs a directory of its own.
//!
//! A node may stop, be killed and come back. Whatever its clients held ends with it; the others
//! then agree on a new *view* in which the locks begin anew with those still inside. Nobody who
//! waits has to do anything about that. While a member stays away, locks that need it wait: with
//! most algorithms those are the ones that it was asked for last. [`Handle::why`] says who is away.
//!
//! # Which algorithm
//!
//! Names are served by `carvalho-roucairol` unless a [`RuleConfig`] says otherwise: whoever was
//! inside last comes in again without a message. `readers-writers` lets those in together who ask
//! for the lock [`shared`](Acquire::shared), `raymond-k` as many as there are permits. All those
//! for which [`locks::served`] has a name can be chosen; `doorway list` describes them.
//!
//! The clients of one node pass a lock among themselves without a message, at most
//! [`Config::handovers`] times while another node waits for it.
//!
//! # What is promised
//!
//! - No two are inside who may not be. A node that crashes takes its clients with it.
//! - Every grant has a [`Fence`], which grows from one exclusive grant to the next, whatever stops
//!   and starts: a resource that remembers the highest one it has seen can turn away whoever comes
//!   too late. A node without [`Config::data`] begins anew when its process does.
//! - Dropping a request at any moment withdraws it, dropping a guard releases the lock. Errors say
//!   that nothing is held.
//! - A lock can be lost: when its node or the runtime in which it was started is stopped, or when
//!   another process takes its place. Then [`Held::lost`] returns. No lock, this one included,
//!   undoes what a paused holder does later.
//!
//! # Recording
//!
//! A node whose [`Config::record`] names a file writes down what its locks do: who asks, enters and
//! leaves, and every message of their algorithms. `doorway diagram --recorded FILE...` takes the
//! files of all members, steps the algorithm through what happened to see that it was right, and
//! draws it. Recording costs a little wherever something happens, and nothing when it is off. It
//! never holds up a lock: it ends, with a line in the log, when the disk is full or too slow.
//!
//! # Versions
//!
//! The minimum Rust version is 1.95; raising it is no breaking change but is said in the changelog.
//! Versions follow semantic versioning for all that is documented here; [`link`], [`locks`],
//! [`net`], [`views`] and [`wire`] are open so that they can be tested and studied, and may change
//! in any release. Nodes agree on a version of the protocol when they meet, so that a group can be
//! upgraded node by node.

mod acquire;
mod config;
mod counters;
mod error;
mod guard;
mod handle;
mod inner;
pub mod link;
pub mod locks;
pub mod net;
mod node;
mod questions;
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}
mod recorder;
mod running;
mod turnover;
mod upper;
pub mod views;
mod wait_span;
mod why;
pub mod wire;

pub use acquire::Acquire;
pub use config::{Config, ConfigError, MemberConfig, Mistake, RuleConfig, TlsConfig};
pub use counters::{NodeCounters, RuleCounters};
pub use doorway_core::Mode;
pub use doorway_protocol::{Fence, Name, NameError};
pub use error::{AcquireError, Lost, StartError};
pub use guard::{Guard, Held, OwnedGuard};
pub use handle::{Handle, Session};
pub use node::Node;
pub use why::{Waiter, Who, Why};
