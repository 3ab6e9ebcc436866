//! Views: how a group starts again after a member has restarted, without forgetting who holds which
//! lock.
//!
//! - `flush.rs`: the exchange of snapshots for one view.
//! - `epochs.rs`: which view is the newest, in a group with a fixed list of members.
//! - `change.rs`: the state machine of a node, which uses both: events in, outputs out.
//! - `drive.rs`: the loop that performs the outputs, for a real node or a simulated one.
//! - `agreed.rs`: the state machine of a node in a group that agrees on its members.
//! - `agreed_drive.rs`: the loop that performs its outputs.
//! - `seats.rs`: the members of the newest views of such a node.
//! - `store.rs`: the epoch on disk, the only part that is not a plain value.

mod agreed;
mod agreed_drive;
mod change;
mod drive;
mod epochs;
mod flush;
mod seats;
mod store;

pub use agreed::{AgreedEvent, AgreedNotice, AgreedOutput, AgreedView, AgreedViews};
pub use agreed_drive::AgreedHost;
pub use change::{ClaimError, EndReason, Event, Notice, Output, ViewChange};
pub use drive::Host;
pub use epochs::{LearnOutcome, StartedView, View, ViewError, Views};
pub use flush::HELD_LIMIT;
pub use seats::ViewSeats;
pub use store::{
    DirectoryEpochStore, EpochDirectory, EpochFile, EpochStore, MemoryEpochStore, StoreError,
    last_epoch,
};
