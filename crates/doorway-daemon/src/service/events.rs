//! News of grants.

use std::sync::Arc;
use std::time::SystemTime;

use doorway_protocol::{Code, Fence, Name, Refusal, SessionId};
use doorway_sessions::EventKind as GrantEvent;
use doorway_sessions::principal::Principal;
use doorway_sessions::refusals::refusal;
use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::sync::broadcast;

use super::Service;

/// What can happen to a grant, or to a request that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A request has begun to wait.
    Waiting,
    /// A request that waited was withdrawn or refused.
    GaveUp,
    /// The lock was granted.
    Granted,
    /// The client released the lock, or is gone.
    Released,
    /// The lock was taken from its client.
    Lost,
}

impl From<GrantEvent> for EventKind {
    fn from(kind: GrantEvent) -> Self {
        match kind {
            GrantEvent::Granted => Self::Granted,
            GrantEvent::Released => Self::Released,
            GrantEvent::Lost => Self::Lost,
        }
    }
}

/// How many listeners one client of another machine may have at a time.
const LISTENERS: usize = 256;

/// How many listeners each client of another machine has.
pub(super) type Listeners = Arc<Mutex<HashMap<String, usize, std::hash::RandomState>>>;

/// A client that receives news.
pub(crate) struct Listener {
    pub(crate) events: broadcast::Receiver<Event>,
    /// The client under whose name the listener is counted.
    counted: Option<(Listeners, String)>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        let Some((listeners, name)) = &self.counted else { return };
        let mut listeners = listeners.lock();
        if let Some(count) = listeners.get_mut(name) {
            *count -= 1;
            if *count == 0 {
                listeners.remove(name);
            }
        }
    }
}

impl Service {
    /// Receive news on behalf of a client, unless it has too many listeners already.
    pub(crate) fn listen(&self, principal: &Principal) -> Result<Listener, Refusal> {
        let mut counted = None;
        if principal.uid.is_none() {
            let mut listeners = self.0.listeners.lock();
            let count = listeners.entry_ref(principal.name.as_str()).or_default();
            if *count == LISTENERS {
                let text = format!("{} has {LISTENERS} listeners, the limit", principal.name);
                return Err(refusal(Code::Busy, text));
            }
            *count += 1;
            counted = Some((Arc::clone(&self.0.listeners), principal.name.clone()));
        }
        Ok(Listener { events: self.events(), counted })
    }
}

/// Something that happened to a grant or to a request that waits.
#[derive(Clone, Debug)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// The lock.
    pub lock: Name,
    /// The fence of the grant; none for a request.
    pub fence: Option<Fence>,
    /// The session that has or had it.
    pub session: SessionId,
    /// The description of the client.
    pub client: Arc<str>,
    /// When it happened, by the clock on the wall.
    pub at: SystemTime,
}
