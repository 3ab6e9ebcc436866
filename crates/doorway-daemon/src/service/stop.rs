//! The graceful end of a service.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use doorway_protocol::Reply;
use tokio::time::{Instant, sleep, timeout_at};

use super::open::End;
use super::refusals::stopping;
use super::{Service, Session};
use crate::clock::ms;

/// How long connections have to write their last words.
const LAST_WORDS: Duration = Duration::from_millis(500);

impl Service {
    /// Tell all clients, grant nothing more, wait for those inside to leave, take the locks from
    /// those who do not, and stop the node.
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
        self.all().iter().for_each(|session| inner.end(session, End::Stopped));
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
            ledger.close();
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
