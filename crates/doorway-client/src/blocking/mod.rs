//! A client for threads, which needs no async runtime.
//!
//! ```no_run
//! use doorway_client::{Endpoint, Options, blocking::Client};
//!
//! let client = Client::connect(&Endpoint::resolve(None)?, &Options::default())?;
//! let grant = client.acquire("backup").enter()?;
//! println!("inside, with fence {}", grant.fence());
//! grant.release()?; // An error if the lock was lost before.
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Any number of threads may use one client. A thread that asks for something writes and reads by
//! itself, so a free lock costs two system calls and no switch between threads. One thread in the
//! background sends heartbeats, notices losses, and reconnects when the connection breaks.

mod background;
mod client;
mod threads;

pub use self::client::Client;

/// A lock that is held by a blocking [`Client`]. Besides `release`, it has the methods of
/// [`Grant`](crate::grant::Grant) for every client.
pub type Grant = crate::grant::Grant<Client>;
