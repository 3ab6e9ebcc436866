//! Named locks for programs: a client for the nodes of Doorway, blocking or async.
//!
//! A client opens a *session* at a node, and acquires locks by their names. Over TCP, or with a
//! time to live in [`Options`], locks are leases: the client renews them in the background, and
//! finds out by itself when it has lost one. On a Unix socket without a time to live, a lock is
//! held until the client releases it or its process ends. Linux only.
//!
//! # With an async runtime
//!
//! [`Client`] needs tokio, and the feature `tokio`, which is on by default.
//!
//! ```no_run
//! # #[cfg(feature = "tokio")]
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//!
//! use doorway_client::{Client, Endpoint, Error, Options};
//!
//! let client = Client::connect(&Endpoint::resolve(None)?, &Options::default()).await?;
//!
//! let grant = match client.acquire("deploy").within(Duration::from_secs(5)).enter().await {
//!     Ok(grant) => grant,
//!     Err(Error::NotFree(_)) => return Ok(()), // Another client deploys.
//!     Err(other) => return Err(other.into()),
//! };
//! println!("deploying with fence {}", grant.fence());
//! grant.release().await?; // An error if the lock was lost before.
//! # Ok(())
//! # }
//! ```
//!
//! # With threads
//!
//! [`blocking::Client`] has the same methods and needs no runtime.
//!
//! ```no_run
//! use doorway_client::{Endpoint, Options, blocking::Client};
//!
//! let client = Client::connect(&Endpoint::resolve(None)?, &Options::default())?;
//!
//! let reader = client.acquire("config").shared().enter()?; // Together with other readers.
//! let worker = client.acquire("workers").permits(4).enter()?; // One of four.
//! let both = client.lock_all(["accounts/1", "accounts/2"])?; // Never a deadlock.
//! drop((reader, worker, both)); // Dropping a grant releases its lock.
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When a lock is lost
//!
//! On a Unix socket, a session lives as long as the process that opened it, as with `flock`, unless
//! it asks for a TTL ([`Options::ttl`]). Over a network there is always a TTL.
//!
//! A session with a TTL lives for that time after the last message that the node received;
//! heartbeats keep it alive. The client counts from when it *sent* a message that was answered, so
//! it knows before the node that the session has expired. Its clock also runs while the machine is
//! suspended.
//!
//! A grant is [`State::Held`] at first. It is [`State::Unsure`] when half of the TTL has passed
//! without an answer, and [`State::Lost`] a twentieth of the TTL before the node gives the lock to
//! another client. A lost grant stays lost. If someone breaks the lock, or if the node gives up the
//! session, the client is told as soon as the node can say so; another client may hold the lock by
//! then.
//!
//! ```no_run
//! use doorway_client::{Endpoint, Options, State, blocking::Client};
//!
//! # fn next_step() -> Option<()> { None }
//! let client = Client::connect(&Endpoint::resolve(None)?, &Options::default())?;
//! client.on_lost(|lost| eprintln!("{lost}")); // Called at once, on a thread of its own.
//!
//! let grant = client.acquire("migration").enter()?;
//! while let Some(step) = next_step() {
//!     match grant.state() {
//!         State::Held => {} // Do the step.
//!         State::Unsure => {} // The node is silent: do nothing that takes long.
//!         State::Lost => return Err("the lock is lost: stop here".into()),
//!     }
//! }
//! grant.release()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! If the connection breaks, the client reconnects. Within the TTL it resumes its session, and
//! loses nothing, if the connection was over TCP or if the node itself was killed and started
//! again.
//!
//! # Several nodes
//!
//! A client of a group of nodes may name several of them: see [`Endpoints`]. It connects to the
//! first one that serves it. If that node is gone later, requests that wait are sent to the next
//! node. Locks that the client holds stay with the session at the first node, which no other node
//! knows of: the client tries to resume it until its TTL has passed, and then reports its locks as
//! lost.
//!
//! # Fences
//!
//! No lock can stop a holder that is paused in the middle of a write and goes on after it has lost
//! the lock. So every grant has a [`Fence`], which is higher than those of earlier grants, and a
//! resource that must stay consistent refuses lower ones. [`gate`] has this for a resource in
//! memory and for one in files.
//!
//! ```
//! use doorway_client::{Fence, Gate};
//!
//! let gate = Gate::default(); // At the resource.
//! let (paused, newer) = (Fence::new(1, 33), Fence::new(1, 34));
//! assert!(gate.pass(paused).is_ok());
//! assert!(gate.pass(newer).is_ok());
//! assert!(gate.pass(paused).is_err()); // Its lock was given to the newer holder meanwhile.
//! ```
//!
//! # With an event loop of your own
//!
//! Both clients drive one [`SessionMachine`], the client's half of a session, which opens no socket
//! and reads no clock. A program can drive it directly: see [`machine`]. A [`Line`] puts TLS
//! between the machine and the connection.
//!
//! # Features
//!
//! - `tokio` (default): the async client.
//! - `tls`: sessions over TCP, for both clients.

mod acquire;
#[cfg(feature = "tokio")]
mod asynchronous;
pub mod blocking;
pub mod endpoint;
mod endpoints;
mod error;
#[cfg(doctest)]
#[doc = include_str!("../../../docs/fences.md")]
mod fences {}
pub mod gate;
mod grant;
mod line;
pub mod machine;
mod options;
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
mod route;
mod session;
#[cfg(feature = "tls")]
mod tls;

pub use acquire::Acquire;
#[cfg(feature = "tokio")]
pub use asynchronous::Client;
pub use doorway_protocol::{
    Ask, ClientInfo, Code, Fence, FenceError, Life, LockReport, Locks, MembersReport,
    MembersRequest, Mode, Moment, Name, NameError, NodeStatus, Refusal, Scope, Wait,
};
pub use endpoint::{Endpoint, EndpointError, Stream};
pub use endpoints::Endpoints;
pub use error::{Error, LostGrant, ReleaseError};
pub use gate::{FileGate, Gate, GateError, Passage, StaleFence};
#[cfg(feature = "tokio")]
pub use grant::Grant;
pub use line::Line;
pub use machine::{Answer, Event, SessionMachine, Setup, State};
pub use options::Options;
pub use route::Route;
pub use session::Node;
#[cfg(feature = "tls")]
pub use tls::{TlsConfig, TlsError};
