//! The graceful end of a service.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use doorway_protocol::Reply;
use tokio::time::{Instant, sleep, timeout_at};

use super::events::EventKind;
use super::open::End;
use super::refusals::stopping;
use super::{Inner, Service, Session};
use crate::clock::{Moment, ms};

/// How long connections have to write their last words.
const LAST_WORDS: Duration = Duration::from_millis(500);

impl Service {
    /// Tell all clients, grant nothing more, wait for those inside to leave, take the locks from
    /// those who do not, and stop the node. Those who cannot be told keep theirs: nobody else gets
    /// them before the next process, which finds them in the ledger.
    pub async fn stop(&self, drain: Duration) {
        let inner = &*self.0;
        inner.stopping.store(true, Ordering::SeqCst);
        let connections: Vec<_> = inner.connections.lock().values().cloned().collect();
        for outbox in &connections {
            outbox.tell(&Reply::Stopping(ms(drain)));
        }
        self.all().iter().for_each(|session| self.refuse_waiting(session));
        let until = Instant::now() + drain;
        while self.held() > 0 {
            // Whoever leaves ends its session or only releases; the latter nobody announces.
            let pause = Duration::from_millis(10).min(until.duration_since(Instant::now()));
            if pause.is_zero() {
                break;
            }
            let _ = timeout_at(until, sleep(pause)).await;
        }
        // They are kept until the node has stopped: what is dropped before is released.
        let mut left = self.all();
        left.retain(|session| {
            let leaves = inner.leave(session);
            if !leaves {
                inner.end(session, End::Stopped);
            }
            leaves
        });
        let connections: Vec<_> = inner.connections.lock().values().cloned().collect();
        for outbox in &connections {
            outbox.close();
        }
        let until = Instant::now() + LAST_WORDS;
        while self.connections() > 0 && Instant::now() < until {
            sleep(Duration::from_millis(2)).await;
        }
        inner.node.stop().await;
        if let Some(ledger) = &inner.ledger {
            ledger.close(inner.reclaiming.borrow().is_none());
        }
        if !left.is_empty() {
            tracing::info!(sessions = left.len(), "left to the next process, with their locks");
        }
    }

    pub(crate) fn all(&self) -> Vec<Arc<Session>> {
        self.0.sessions.lock().values().cloned().collect()
    }

    /// Nobody who waits gets a lock from a node that stops.
    fn refuse_waiting(&self, session: &Session) {
        let mut state = session.state();
        let waiting = std::mem::take(&mut state.waiting);
        self.0.waits.fetch_sub(waiting.len() as u64, Ordering::Relaxed);
        for (request, waiting) in waiting {
            waiting.task.abort();
            if let Some(outbox) = &state.outbox {
                outbox.tell(&Reply::Refused(request, stopping()));
            }
            for told in waiting.told {
                let _ = told.send(Err(stopping())); // Who has gone away knows.
            }
        }
    }
}

impl Inner {
    /// Leave a session to the next process if it still holds something and its client cannot be
    /// told that it does no more: it has no connection, or one that seems to be cut, and may come
    /// back over another.
    fn leave(&self, session: &Session) -> bool {
        let mut state = session.state();
        // Two signs of life should have come in half of its time.
        let is_late = |deadline: Moment| deadline.since(Moment::now()) < session.ttl() / 2;
        let cut = session.remote && session.deadline().is_some_and(is_late);
        let untold = session.is_loose() || state.outbox.is_none() || cut;
        if state.over || !untold || state.written.is_none() {
            return false;
        }
        for grant in state.grants.extract(|grant| !grant.guard.is_lost()) {
            self.let_go(session, &mut state, grant, EventKind::Lost);
        }
        if state.grants.len() == 0 {
            return false;
        }
        // From here on it takes no part in anything, and nothing ends it any more.
        state.over = true;
        state.watcher.take().inspect(tokio::task::AbortHandle::abort);
        true
    }
}
