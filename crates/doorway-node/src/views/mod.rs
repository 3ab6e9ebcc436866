//! Views: how a group starts again after a member has restarted, without forgetting who holds which
//! lock.

mod epochs;
mod store;

pub use epochs::{HELD_LIMIT, LearnOutcome, StartedView, View, ViewError, Views};
pub use store::{EpochStore, Fixed, StoreError, Volatile};
