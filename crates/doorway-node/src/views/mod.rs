//! Views: how a group starts again after a member has restarted, without forgetting who holds which
//! lock.

mod change;
mod drive;
mod epochs;
mod flush;
mod store;

pub use change::{ClaimError, EndReason, Event, Notice, Output, ViewChange};
pub use drive::Host;
pub use epochs::{LearnOutcome, StartedView, View, ViewError, Views};
pub use flush::HELD_LIMIT;
pub use store::{EpochStore, Fixed, StoreError, Volatile};
