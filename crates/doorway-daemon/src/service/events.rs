//! News of grants, for whoever watches.

use std::sync::Arc;
use std::time::SystemTime;

use doorway_protocol::{Code, Fence, Name, Refusal, SessionId};
use tokio::sync::broadcast;

use super::Service;
use super::refusals::refusal;
use super::shares::{Share, What};
use crate::principal::Principal;

/// How often one client of another machine may listen at a time.
const LISTENERS: usize = 256;

/// One who hears of events.
pub(crate) struct Listener {
    pub(crate) events: broadcast::Receiver<Event>,
    _share: Option<Share>,
}

impl Service {
    /// Hear of events on behalf of a client, unless it listens too often already.
    pub(crate) fn listen(&self, principal: &Principal) -> Result<Listener, Refusal> {
        let share = if principal.uid.is_some() {
            None
        } else {
            let share = self.0.shares.take(What::Listeners, &principal.name, 1, LISTENERS);
            Some(share.ok_or_else(|| {
                let text = format!("{} listens {LISTENERS} times, and no more", principal.name);
                refusal(Code::Busy, text)
            })?)
        };
        Ok(Listener { events: self.events(), _share: share })
    }
}

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
