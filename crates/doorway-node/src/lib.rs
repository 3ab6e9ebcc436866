//! Named locks inside a Rust program, alone or in a group of nodes over a network.
//!
//! A node keeps any number of named locks and serves any number of clients. Among the nodes of a
//! group, classical algorithms of mutual exclusion decide who enters; each lock can have its own
//! algorithm. These are the state machines of `doorway-core`, the same ones that the laboratory
//! simulates, checks and draws.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use doorway_node::Node;
//!
//! let node = Node::alone(); // No peers, no configuration, no port.
//! let orders = node.open("orders")?; // Look it up once, acquire it often.
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
//! proves which member this node is. The certificate is issued for `NODE.GROUP.doorway` by an
//! authority that all members trust; the name of its subject does not matter. With `openssl`, an
//! authority and certificates for the nodes `a`, `b` and `c` of the group `shop` are made like
//! this:
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
//! Each node needs `ca.pem` and its own two files. Keep `ca.key` elsewhere: with it, anyone can
//! become a member. Then, in the program of `a`:
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
//! one machine, with the certificates in that directory.
//!
//! Every member must be configured with the same [`group`](Config::group), [`rules`](Config::rules)
//! and [`algorithm`](Config::algorithm), and with the same member names in the same order
//! ([`members`](Config::members)). Nodes whose configurations differ refuse each other and log why.
//! All other settings may differ, with two restrictions: an address must lead to its member from
//! where it is configured, and [`silence`](Config::silence) must be longer than the
//! [`heartbeat`](Config::heartbeat) of every other member.
//!
//! A node serves when it has met all other members; requests made before that wait. If nothing
//! happens, [`Node::away`] tells which members have not been met, and [`Handle::why`] what a
//! request waits for. The log, under the target `doorway_node`, tells which addresses do not answer
//! and which nodes were refused.
//!
//! A node may stop or be killed, and come back. Its clients lose what they held. When the node is
//! back, all members agree on a new *view*, in which the locks start again with the clients that
//! are still inside. Clients that wait keep waiting and need not do anything. While a member is
//! unreachable, the others go on. A lock then waits only if its algorithm needs that member:
//!
//! - `ricart-agrawala`, `ricart-agrawala-ring`, `lamport`, `readers-writers` and, in most cases,
//!   `raymond-k` need it at every entry;
//! - `carvalho-roucairol` needs it at the first entry in a view, and after that member has asked
//!   for the lock;
//! - `suzuki-kasami`, `ricart-agrawala-token`, `naimi-trehel` and `raymond-tree` need it if it has
//!   the token, or is on the way to the token;
//! - `maekawa` and its variants need it if it is in the quorum, `majority` only if half of all
//!   members are unreachable, and `central` if it is the first member.
//!
//! If the clients of a node live in other processes and hold locks through it, they survive when
//! the node is killed. For this case, [`Node::start_reclaiming`] starts a node that neither grants
//! a lock nor takes part in a view until [`Node::serve`]. Until then, each client that was inside
//! takes back its lock with [`Node::reclaim`], under the fence that it has. Meanwhile the other
//! members go on as long as they can without the node.
//!
//! # A group that outlives its machines
//!
//! In the group above, the list of members is fixed: a member that dies and stays dead is missed
//! until it comes back. A group can instead *agree* on its members. [`Node::start_agreed`] starts a
//! node of such a group with a [`ViewStore`](members::ViewStore). The crate `doorway-members` has
//! two: one replicates the list of members among the nodes themselves, by Raft, and the other keeps
//! it in etcd.
//!
//! Each node renews its membership all the time, and each renewal gives it a lease. If a node dies,
//! the others go on without it when its lease is over. If it is started again before that, it takes
//! the place of the process before it at once. A node that cannot renew its membership in time
//! loses its locks, [`LockGuard::is_lost`] says so, and it joins again as soon as it can.
//! [`Node::lease_left`] tells for how long a grant may be relied on without another renewal.
//!
//! # Which algorithm
//!
//! Locks are served by `carvalho-roucairol` unless a [`RuleConfig`] says otherwise: with it, the
//! node that was inside last enters again without a message. `readers-writers` lets clients that
//! ask for the lock [`shared`](Acquire::shared) enter together, and `raymond-k` as many clients as
//! there are permits. [`served`] names all algorithms that can be chosen; `doorway list` describes
//! them. A rule can also arrange the members for its locks: their quorums, votes, tree, links,
//! permits and coordinator ([`Arrangement`]).
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use doorway_node::{Config, Node, RuleConfig};
//!
//! let rule = |pattern: &str, algorithm: &str, permits| {
//!     RuleConfig::new(pattern, algorithm, permits)
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
//! The clients of one node pass a lock among themselves without a message. While another node waits
//! for it, each client that waits here enters once, or up to [`Config::handovers`] times if the
//! clients ask again at once; then the lock goes to that node.
//!
//! A program that takes the same lock again and again can keep it until somebody else wants it
//! ([`Handle::keep`]). Entering it again is then an atomic exchange.
//!
//! # Several locks, and locks that are lost
//!
//! A client that needs several locks acquires them with [`Node::lock_all`]; clients that do so
//! never deadlock with each other. If work can be cancelled, cancel it when its lock is lost:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let node = doorway_node::Node::alone();
//! # async fn move_stock() {}
//! let guards = node.lock_all(&["stock/1", "stock/2"]).await?; // Both, or neither.
//! tokio::select! {
//!     () = move_stock() => {}
//!     () = guards[0].lost() => println!("the lock is lost: another client may be inside"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What is promised
//!
//! - Mutual exclusion: no two clients are inside a lock that may not be inside together. Clients of
//!   a node that crashes do not count as inside any more.
//! - Every grant has a [`Fence`]. Fences grow from one exclusive grant to the next, also across
//!   restarts. A resource that remembers the highest fence that it has seen can refuse a client
//!   that comes too late. For a node without [`Config::data`], fences start again when its process
//!   does.
//! - Dropping a request at any time withdraws it, and dropping a guard releases the lock. An error
//!   means that nothing is held.
//! - A lock can be lost: when its node stops or the runtime in which the node was started ends,
//!   when another process takes the place of the node, or when the lock breaks because a member
//!   violates its algorithm. Then [`LockGuard::lost`] returns. No lock service, this one included,
//!   can undo what a paused holder does later.
//!
//! # Recording
//!
//! If [`Config::record`] names a file, the node writes to it what its locks do: requests, entries,
//! releases, and every message of the algorithms. `doorway diagram --recorded FILE...` takes the
//! files of all members, replays the recorded events through the algorithm to check them, and draws
//! them. Recording costs a little wherever something happens, and nothing when it is off. It never
//! delays a lock: if the disk is full or too slow, the recording ends with a line in the log.
//!
//! # Versions
//!
//! The minimum Rust version is 1.95. Raising it is not a breaking change, but the changelog says
//! so. Semantic versioning covers everything that can be named from the root of the crate. The
//! modules [`link`], [`locks`], [`messages`], [`net`] and [`views`] are public so that they can be
//! tested and studied; what else they contain may change in any release. Nodes agree on a version
//! of the protocol when they connect, so that a group can be upgraded node by node.

mod acquire;
mod agreed_group;
mod arrangement;
mod clock;
mod config;
mod counters;
mod error;
mod guard;
mod handle;
mod heard;
mod holds;
mod kept_lock;
mod lingers;
pub mod link;
mod lock_clients;
mod lock_recording;
mod lock_rules;
pub mod locks;
pub mod members;
pub mod messages;
mod mode;
pub mod net;
mod node;
mod patterns;
mod peer_events;
mod questions;
// The example of the README is tested with those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
mod reclaim;
mod recorder;
mod runtime;
mod seating;
mod seatings;
mod shell;
mod view_host;
pub mod views;
mod wait_report;
mod wait_span;

pub use acquire::Acquire;
pub use agreed_group::{MembershipCounts, MembershipReport};
pub use arrangement::{Arrangement, ArrangementError, QuorumChoice, TreeChoice};
pub use config::{Config, ConfigError, MemberConfig, Mistake, TlsConfig};
pub use counters::{NodeCounters, RuleCounters};
pub use doorway_protocol::{Fence, Mode, Name, NameError};
pub use error::{AcquireError, LostLock, StartError};
pub use guard::{Guard, LockGuard, OwnedGuard};
pub use handle::{Handle, Session};
pub use holds::{BreakError, ClosedLock, HoldError};
pub use kept_lock::{KeptGuard, KeptLock};
pub use lock_clients::{AnswerMembers, LockClients, OnLost, OnWanted, SessionDescriber};
pub use lock_recording::{LONGEST_RECORDING, LockRecording, RecordError};
pub use lock_rules::{LockRules, RuleConfig};
pub use locks::{Fault, LockCounters, RuleError, served};
pub use net::{IdentityError, LinkReport, Network, Traffic};
pub use node::Node;
pub use questions::MemberAnswers;
pub use reclaim::ReclaimError;
pub use views::{EndReason, StoreError};
pub use wait_report::{LockClient, WaitReport, Waiter};
