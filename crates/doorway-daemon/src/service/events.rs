//! News of grants, for whoever watches.

use std::sync::Arc;
use std::time::SystemTime;

use doorway_protocol::{Fence, Name, SessionId};

/// Something happened to a grant.
#[derive(Clone, Debug)]
pub struct Event {
    /// What.
    pub kind: EventKind,
    /// The lock.
    pub lock: Name,
    /// The fence of the grant.
    pub fence: Fence,
    /// The session that has or had it.
    pub session: SessionId,
    /// What the client says of itself.
    pub client: Arc<str>,
    /// When, by the clock on the wall.
    pub at: SystemTime,
}

/// What can happen to a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// It was made.
    Granted,
    /// Its client gave it back, or is gone.
    Released,
    /// It was taken from its client.
    Lost,
}
