//! What the node loses, clients are told.
//!
//! A lock may be out of order because of what another member did, and what was reclaimed after a
//! crash may turn out to be impossible; then a guard is worth nothing any more. The node says so
//! while it is busy, so what follows is done by a task.

use std::sync::Weak;

use doorway_node::OnLost;
use doorway_protocol::{Fence, Name, Reply};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::Inner;
use super::events::EventKind;
use super::permits::visible_name;

/// What a session has lost. There are never more of these than grants.
pub(crate) type Losses = UnboundedReceiver<(u64, Name, Fence)>;

/// What the node calls, and where what it says arrives.
pub(crate) fn channel() -> (OnLost, Losses) {
    let (send, losses) = unbounded_channel();
    let on_lost = OnLost::new(move |session, lock: &Name, fence| {
        let _ = send.send((session, lock.clone(), fence)); // Nobody hears it when all is over.
    });
    (on_lost, losses)
}

/// Tell clients what they have lost, as long as there is a service.
pub(crate) async fn run(inner: Weak<Inner>, mut losses: Losses) {
    while let Some((session, lock, fence)) = losses.recv().await {
        let Some(inner) = inner.upgrade() else { return };
        inner.lose(session, &lock, fence);
    }
}

impl Inner {
    fn lose(&self, number: u64, lock: &Name, fence: Fence) {
        let Some(session) = self.session(number) else { return };
        let mut state = session.state();
        // One that is over has nothing, or was left with all it has to the next process.
        if state.over {
            return;
        }
        let lock = visible_name(lock);
        // Whoever was to have it finds out by itself if it is not in the table yet.
        let Some(grant) = state.grants.remove(&self.hasher, lock.as_str(), fence) else { return };
        let client = &*session.client;
        tracing::warn!(%lock, %fence, client, "lost by the node");
        if let Some(outbox) = &state.outbox {
            outbox.tell(&Reply::Lost(lock, fence, "the node has lost it, see its log".into()));
        }
        self.let_go(&session, &mut state, grant, EventKind::Lost);
        drop(state);
        self.end_if_idle(&session);
    }
}
