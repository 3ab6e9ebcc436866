//! A client without a runtime: threads that wait.
//!
//! ```no_run
//! use doorway_client::{Endpoint, Options, blocking::Client};
//!
//! let client = Client::connect(&Endpoint::resolve(None)?, &Options::default())?;
//! let grant = client.acquire("backup").enter()?;
//! println!("inside, with fence {}", grant.fence());
//! grant.release()?; // Says whether the lock was ours until now.
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Any number of threads may use one client. A thread that asks for something writes and reads by
//! itself, so a lock that is free costs two system calls and no change of thread. One thread in the
//! background gives signs of life, notices losses, and connects again when the connection breaks.

mod background;
mod client;
mod grant;
mod shared;

pub use self::client::Client;
pub use self::grant::Grant;
