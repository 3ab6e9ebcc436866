//! Views: how a group starts again after a member has restarted, without forgetting who holds which
//! lock.

mod store;
#[expect(clippy::module_inception, reason = "the module is named after its main type")]
mod views;

pub use store::{Fixed, StoreError, ViewStore, Volatile};
pub use views::{HELD_LIMIT, LearnOutcome, StartedView, View, ViewError, Views};
