//! What the clients of a lock service and its nodes say to each other.
//!
//! A connection begins with [`MAGIC`], so that a node can tell it from one of HTTP on the same
//! socket. Then both sides send frames: a length, and one value in postcard. The client's first is
//! a [`Hello`] (and, if that says so, [`Claims`]), the node's first a [`Greeting`]; what follows
//! are [`Request`]s and [`Reply`]s, each request with a number that its answer repeats. A client
//! need not wait for the greeting before its first requests. Nothing here reads a socket or a
//! clock.
//!
//! [`Name`] and [`Fence`] live here because everyone needs them: nodes, clients, and whoever guards
//! a resource.

mod backoff;
mod clock;
pub mod fence;
mod frame;
pub mod length_prefix;
mod mode;
pub mod name;
mod report;
mod session;
#[cfg(feature = "clock")]
mod timer;

pub use backoff::Backoff;
pub use clock::Moment;
pub use fence::{Fence, FenceError};
pub use frame::{FrameError, Frames, MAGIC, MAX_FRAME, put};
pub use mode::Mode;
pub use name::{Name, NameError};
pub use report::{Absent, Holder, LockLine, LockReport, Locks, NodeStatus, Scope, Waiter};
pub use session::{
    Ask, Claim, Claims, ClientInfo, Code, Greeting, Hello, Life, Opening, Refusal, Reply, Request,
    Secret, SessionId, VERSIONS, Wait, Welcome,
};
#[cfg(feature = "clock")]
pub use timer::Timer;
