//! Views: how a group begins anew when a member has restarted, without forgetting who is inside.

mod store;
#[expect(clippy::module_inception, reason = "the machine is what the module is about")]
mod views;

pub use store::{Fixed, StoreError, ViewStore, Volatile};
pub use views::{HELD_LIMIT, LearnOutcome, StartedView, View, ViewError, Views};
