//! The protocol between the clients of a Doorway node and the node, and the types that both share.
//!
//! Most programs use the crate `doorway-client`, which speaks this protocol for them. This crate is
//! for authors of other clients and servers, and for resources that check [`Fence`]s.
//!
//! # A connection
//!
//! A connection begins with [`MAGIC`], by which a node tells it from HTTP on the same socket. Then
//! both sides send frames: a length of four bytes, and one value encoded with postcard.
//!
//! 1. The client sends a [`Hello`]. If it resumes a session with more claims than fit into that, it
//!    sends [`Claims`] as well.
//! 2. The node answers with a [`Greeting`]: a [`Welcome`] or a [`Refusal`].
//! 3. The client sends [`Request`]s, and the node [`Reply`]s. An answer repeats the number of its
//!    request.
//!
//! A client that opens a new session may send its first requests before the greeting arrives.
//!
//! [`put`] writes frames and [`Frames`] reads them:
//!
//! ```
//! use doorway_protocol::{Frames, Request, put};
//!
//! let mut outgoing = Vec::new();
//! put(&Request::Status(1), &mut outgoing);
//!
//! let mut received = Frames::default();
//! received.feed(&outgoing[..3]);
//! assert_eq!(received.take::<Request>()?, None); // The rest is still on its way.
//! received.feed(&outgoing[3..]);
//! assert_eq!(received.take()?, Some(Request::Status(1)));
//! # Ok::<(), doorway_protocol::FrameError>(())
//! ```
//!
//! Nothing in this crate reads a socket. [`Moment`] and [`Backoff`] are what clients and nodes need
//! to wait and to retry; neither reads a clock.
//!
//! # Features
//!
//! - `clock`: `Moment::now` and `Timer`, which read the clock and set timers. Linux only.
//! - `nearest`: the known name that a mistyped one is nearest to.
//! - `openapi`: schemas of the reports, for a document in the `OpenAPI` format.

mod backoff;
mod clock;
pub mod fence;
pub mod fnv;
mod frame;
mod label;
pub mod length_prefix;
mod mode;
pub mod name;
#[cfg(feature = "nearest")]
pub mod nearest;
mod pattern;
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
pub mod recording;
mod report;
mod rules;
mod session;
pub mod text;
#[cfg(feature = "clock")]
mod timer;
mod versions;
mod window;

pub use backoff::Backoff;
pub use clock::{ClockReading, LeaseClock, Moment};
pub use fence::{Fence, FenceError};
pub use frame::{FrameError, Frames, MAGIC, MAX_FRAME, put};
pub use label::{LABEL, is_label};
pub use mode::Mode;
pub use name::{Name, NameError};
pub use pattern::{NamePattern, PatternError};
pub use report::{
    Absent, AuditEntry, EtcdReport, Holder, LastHolder, LedgerTrouble, LockLine, LockReport, Locks,
    MembersReport, NodeStatus, RulesReport, Scope, SeatReport, SeatRole, SeatState, Waiter,
};
pub use rules::{KeyChange, NAMES, RULES_LIMIT, RuleChange, RuleTable, RuleTables};
pub use session::{
    Ask, BackupSeat, Claim, Claims, ClientInfo, Code, DirectoryId, Greeting, GroupBackup, Hello,
    Life, MembersRequest, NodeIdentity, Opening, Refusal, Reply, Request, Secret, SessionId,
    VERSIONS, Wait, Welcome,
};
#[cfg(feature = "clock")]
pub use timer::Timer;
pub use window::{Window, WindowError};
