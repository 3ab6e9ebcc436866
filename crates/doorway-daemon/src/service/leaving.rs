//! How a service ends: it stops and leaves everything to the next process, or it is drained first.

use std::time::Duration;

use doorway_protocol::{Code, Refusal};
use doorway_sessions::Input;
use doorway_sessions::principal::Principal;
use doorway_sessions::refusals::refusal;

use super::Service;

/// How long connections may take to write their last replies when the service stops.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How long the group may take to let a node go.
const LEAVING: Duration = Duration::from_secs(1);

impl Service {
    /// End the service: close all connections and stop the node. Sessions and their locks are left
    /// to the next process, so that a restart is as gentle as a crash: nobody else gets a lock
    /// before its holder has released it, or before the time of its session is over.
    pub async fn stop(&self) {
        let shell = &self.0;
        shell.input(Input::Stop);
        let written = async {
            while self.connections() > 0 {
                let changed = shell.changed.notified();
                if self.connections() == 0 {
                    return;
                }
                changed.await;
            }
        };
        let _ = tokio::time::timeout(LAST_WORDS, written).await;
        if shell.core.lock().sessions.leaves_nothing() {
            // Nothing is left to the next process, so the others need not wait for a lease.
            let _ = tokio::time::timeout(LEAVING, shell.node.leave()).await;
        }
        // The guards are kept until the node has stopped: a guard that is dropped is released.
        shell.node.stop().await;
        // Each of these calls refers to the service, which would never be dropped.
        let unanswered = std::mem::take(&mut *shell.breaking.lock());
        drop(unanswered);
        if let Some(members) = self.store() {
            members.close().await;
        }
        if let Some(ledger) = &shell.ledger {
            ledger.close(shell.core.lock().sessions.is_settled());
        }
        let held = self.held();
        if held > 0 {
            tracing::info!(held, "locks are left to the next process, with their holders");
        }
    }

    /// Drain the service on behalf of a client, who is told whether locks are still held after the
    /// time of the request. The service ends when nothing is held any more, also after that time.
    pub(crate) async fn leave(
        &self,
        principal: &Principal,
        within: Option<Duration>,
    ) -> Result<(), Refusal> {
        if !super::is_owner(principal) {
            let text = "only root and the user of the node can drain it, at its Unix socket";
            return Err(refusal(Code::Forbidden, text));
        }
        tracing::info!(by = principal.name, "the node drains: nothing is granted any more");
        if self.drain(within.unwrap_or(self.0.drain)).await {
            return Ok(());
        }
        let held = self.held_by();
        let text =
            format!("{held}; the node grants nothing any more, and ends when nothing is held");
        Err(refusal(Code::NotFree, text))
    }

    /// What a service that drains waits for, in words.
    fn held_by(&self) -> String {
        let core = self.0.core.lock();
        let sessions = &core.sessions;
        match sessions.counters().in_use() {
            1 => "1 lock is still held".to_owned(),
            0 if sessions.reclaiming().is_some() => {
                "clients that held locks before the node crashed may still come back".to_owned()
            }
            0 if sessions.withholds() => {
                "the end of a lock is not confirmed by the disk and by the group, so the lock is \
                 still held"
                    .to_owned()
            }
            held => format!("{held} locks are still held"),
        }
    }

    /// Wait until the service was drained, and nothing is held any more.
    pub async fn left(&self) {
        self.0.leaving.notified().await;
    }

    /// Tell all clients to leave, grant nothing more, and wait until nothing is held. False if that
    /// takes longer than `time`.
    pub async fn drain(&self, time: Duration) -> bool {
        let drained = self.0.drained.notified();
        self.0.input(Input::Drain(time));
        if self.0.core.lock().sessions.is_drained() {
            return true;
        }
        tokio::time::timeout(time, drained).await.is_ok()
    }
}
