//! The two ways to hold a lock.

use serde::{Deserialize, Serialize};

/// How a client holds a lock, or wants to.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Mode {
    /// Alone. Where the lock has several permits, the client holds one of them.
    #[default]
    Exclusive,
    /// Together with other clients that hold the lock in this mode, as readers do.
    Shared,
}
