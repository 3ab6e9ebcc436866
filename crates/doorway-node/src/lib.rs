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
//! [`Node::start`] takes a [`Config`] that names the members of the group, and a certificate that
//! proves which one this is. It is issued for `NODE.GROUP.doorway` by an authority that all of them
//! trust; the name of its subject plays no part. With `openssl`, an authority and certificates for
//! the nodes `a`, `b` and `c` of the group `shop`:
//!
//! ```sh
//! new="openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365"
//! $new -keyout ca.key -out ca.pem -subj /CN=shop
//! for n in a b c; do
//!   $new -CA ca.pem -CAkey ca.key -keyout $n.key -out $n.pem -subj /CN=$n \
//!     -addext subjectAltName=DNS:$n.shop.doorway -addext basicConstraints=critical,CA:FALSE
//! done
//! ```
//!
//! Each node gets `ca.pem` and its own two files; `ca.key` can make anyone a member, so none of
//! them needs it. Then, in the program of `a`:
//!
//! ```no_run
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use doorway_node::{Config, MemberConfig, Node, TlsConfig};
//! use std::fs::read;
//!
//! let member = |name: &str, address: &str| {
//!     MemberConfig { name: name.into(), address: address.into() }
//! };
//! let node = Node::start(Config {
//!     group: "shop".into(),
//!     me: "a".into(),
//!     members: vec![
//!         member("a", "10.0.0.1:7400"),
//!         member("b", "10.0.0.2:7400"),
//!         member("c", "10.0.0.3:7400"),
//!     ],
//!     data: Some("/var/lib/shop/locks".into()),
//!     tls: Some(TlsConfig {
//!         ca: read("ca.pem")?,
//!         certificate: read("a.pem")?,
//!         key: read("a.key")?,
//!     }),
//!     ..Config::default()
//! })
//! .await?;
//! let guard = node.lock("orders").await?; // Waits until all members have met.
//! # Ok(())
//! # }
//! ```
//!
//! `cargo run -p doorway-node --example group -- NAME DIRECTORY` runs one of three such nodes on
//! one machine, with the certificates of that directory.
//!
//! Alike at all members must be [`group`](Config::group), the names of the
//! [`members`](Config::members) and their order, [`rules`](Config::rules) and
//! [`algorithm`](Config::algorithm); nodes that differ refuse each other and say so. All else is a
//! node's own affair, but for two things: an address must lead to its member from where it is
//! written down, and [`silence`](Config::silence) must be longer than the
//! [`heartbeat`](Config::heartbeat) of every other member.
//!
//! A node serves when it has met all other members; requests made before that wait. If nothing
//! happens, [`Node::away`] tells who has not been met, [`Handle::why`] what a request waits for,
//! and the log, under the target `doorway_node`, which addresses do not answer and who was refused.
//!
//! A node may stop, be killed and come back. Whatever its clients held ends with it; when it is
//! back, all agree on a new *view* in which the locks begin anew with those still inside. Nobody
//! who waits has to do anything about that. While a member stays away, the others go on, and a lock
//! waits if its algorithm needs that member:
//!
//! - `ricart-agrawala`, `lamport`, `readers-writers` and mostly `raymond-k` at every entry;
//! - `carvalho-roucairol` at the first entry in a view, and after that member has asked for it;
//! - `suzuki-kasami`, `ricart-agrawala-token`, `naimi-trehel` and `raymond-tree` when it has the
//!   token, or is on the way to it;
//! - `maekawa` and its kin when it is in the quorum, `majority` only when half of all members are
//!   away, and `central` when it is the first one.
//!
//! Where the clients of a node live in other processes and hold locks through it, they outlive it
//! when it is killed. [`Node::start_reclaiming`] starts one that neither grants a lock nor takes
//! part in a view until [`Node::serve`]: meanwhile those who were inside [`Node::reclaim`] what
//! they hold, under the fence that they have. The others go on as long as they can without it.
//!
//! # Which algorithm
//!
//! Names are served by `carvalho-roucairol` unless a [`RuleConfig`] says otherwise: whoever was
//! inside last comes in again without a message. `readers-writers` lets those in together who ask
//! for the lock [`shared`](Acquire::shared), `raymond-k` as many as there are permits. All those
//! for which [`served`] has a name can be chosen; `doorway list` describes them.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use doorway_node::{Config, Node, RuleConfig};
//!
//! let rule = |pattern: &str, algorithm: &str, permits| {
//!     RuleConfig { pattern: pattern.into(), algorithm: algorithm.into(), permits }
//! };
//! let rules = vec![rule("files/*", "readers-writers", 1), rule("slots", "raymond-k", 3)];
//! let node = Node::start(Config { rules, ..Config::default() }).await?;
//!
//! let file = node.open("files/a")?;
//! let (one, two) = (file.lock().shared().await?, file.lock().shared().await?); // Two readers.
//! let three = [node.lock("slots").await?, node.lock("slots").await?, node.lock("slots").await?];
//! assert!(node.try_lock("slots")?.is_none()); // There is no fourth permit.
//! # Ok(())
//! # }
//! ```
//!
//! The clients of one node pass a lock among themselves without a message, at most
//! [`Config::handovers`] times while another node waits for it.
//!
//! # Several locks, and locks that are lost
//!
//! Whoever needs several locks takes them with [`Node::lock_all`], and nobody who does so waits in
//! a circle. Work that can be broken off should be when its lock is lost:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let node = doorway_node::Node::alone();
//! # async fn move_stock() {}
//! let guards = node.lock_all(&["stock/1", "stock/2"]).await?; // Both, or none.
//! tokio::select! {
//!     () = move_stock() => {}
//!     () = guards[0].lost() => println!("someone else may be inside"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What is promised
//!
//! - No two are inside who may not be. A node that crashes takes its clients with it.
//! - Every grant has a [`Fence`], which grows from one exclusive grant to the next, whatever stops
//!   and starts: a resource that remembers the highest one it has seen can turn away whoever comes
//!   too late. A node without [`Config::data`] begins anew when its process does.
//! - Dropping a request at any moment withdraws it, dropping a guard releases the lock. Errors say
//!   that nothing is held.
//! - A lock can be lost: when its node or the runtime in which it was started is stopped, when
//!   another process takes the place of the node, or when the lock breaks because a member does
//!   what its algorithm forbids. Then [`Held::lost`] returns. No lock, this one included, undoes
//!   what a paused holder does later.
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
//! Versions follow semantic versioning for all that can be named from the root of the crate;
//! [`link`], [`locks`], [`net`], [`views`] and [`wire`] are open so that they can be tested and
//! studied, and what else they hold may change in any release. Nodes agree on a version of the
//! protocol when they meet, so that a group can be upgraded node by node.

mod acquire;
mod clients;
mod config;
mod counters;
mod error;
mod guard;
mod handle;
mod inner;
pub mod link;
pub mod locks;
mod mode;
pub mod net;
mod node;
mod patterns;
mod questions;
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}
mod reclaim;
mod recorder;
mod running;
mod turnover;
mod upper;
pub mod views;
mod wait_span;
mod why;
pub mod wire;

pub use acquire::Acquire;
pub use clients::{Describe, LockClients, OnLost};
pub use config::{Config, ConfigError, MemberConfig, Mistake, RuleConfig, TlsConfig};
pub use counters::{NodeCounters, RuleCounters};
pub use doorway_protocol::{Fence, Mode, Name, NameError};
pub use error::{AcquireError, Lost, StartError};
pub use guard::{Guard, Held, OwnedGuard};
pub use handle::{Handle, Session};
pub use locks::{Counters, Fault, RuleError, served};
pub use net::{IdentityError, LinkReport, Network, Traffic};
pub use node::Node;
pub use reclaim::ReclaimError;
pub use views::StoreError;
pub use why::{Waiter, Who, Why};
