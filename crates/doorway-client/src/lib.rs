//! Sessions at a Doorway node: named locks for programs, blocking or async.
//!
//! ```no_run
//! # #[cfg(feature = "tokio")]
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//!
//! use doorway_client::{Client, Endpoint, Error, Options};
//!
//! let client = Client::connect(&Endpoint::resolve(None)?, &Options::default()).await?;
//! client.on_lost(|lost| eprintln!("{lost}"));
//!
//! let grant = match client.acquire("deploy").within(Duration::from_secs(5)).enter().await {
//!     Ok(grant) => grant,
//!     Err(Error::NotFree(_)) => return Ok(()), // Someone else deploys.
//!     Err(other) => return Err(other.into()),
//! };
//! println!("deploying with fence {}", grant.fence());
//! grant.release().await?; // Says whether the lock was ours until now.
//! # Ok(())
//! # }
//! ```
//!
//! [`blocking::Client`] speaks the same words and needs no runtime. Both drive one [`SessionMachine`], the
//! client's half of a session, which opens no socket and reads no clock; who has an event loop of
//! its own drives it directly, on a [`Line`] that may be encrypted.
//!
//! # A lock can be lost
//!
//! A session lives on signs of life. The client counts its time from when it *spoke*, the node from
//! when it *heard*, so the client knows first, by its own clock, which also runs while the machine
//! sleeps. A grant is [`State::Held`]; [`State::Unsure`] from half of the TTL without an answer;
//! and [`State::Lost`] a twentieth of the TTL before the node gives the lock to the next one. What
//! is lost stays lost. A lock that someone breaks, or whose session its node gives up, is told as
//! soon as the node says so, and may be someone else's by then.
//!
//! A connection that breaks is made again, and within the TTL the session goes on where its node
//! still has it: over TCP, and when the node itself was killed and started again.
//!
//! No lock undoes what a paused holder does later. A resource that matters compares fences: see
//! [`gate`].
//!
//! # Features
//!
//! - `tokio` (on by default): the async client.
//! - `tls`: sessions over TCP, for both clients.

mod acquire;
#[cfg(feature = "tokio")]
mod asynchronous;
pub mod blocking;
pub mod endpoint;
mod error;
mod session;
#[cfg(doctest)]
#[doc = include_str!("../../../docs/fences.md")]
mod fences {}
pub mod gate;
mod grant;
mod line;
pub mod machine;
mod options;
#[cfg(feature = "tls")]
mod tls;

pub use acquire::Acquire;
#[cfg(feature = "tokio")]
pub use asynchronous::Client;
pub use doorway_protocol::{
    Ask, ClientInfo, Code, Fence, FenceError, Life, LockReport, Locks, Mode, Moment, Name,
    NameError, NodeStatus, Refusal, Scope, Wait,
};
pub use endpoint::{Endpoint, EndpointError, Stream};
pub use error::{Error, Lost, ReleaseError};
pub use gate::{FileGate, Gate, GateError, Passage, Stale};
#[cfg(feature = "tokio")]
pub use grant::Grant;
pub use line::Line;
pub use machine::{Answer, Event, SessionMachine, Setup, State};
pub use options::Options;
pub use session::Node;
#[cfg(feature = "tls")]
pub use tls::{TlsConfig, TlsError};
