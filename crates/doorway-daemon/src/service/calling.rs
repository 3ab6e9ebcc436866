//! Calls of clients that have no session: over HTTP, and by the protocols of Redis and etcd.

use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::Name;
use doorway_sessions::principal::Principal;
use doorway_sessions::refusals::stopping;
use doorway_sessions::{Answer, Call, Connection, Input, LeaseKey};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::Service;

impl Service {
    /// Begin a call. The answer comes later, unless the call is dropped.
    pub(crate) fn call(&self, principal: &Arc<Principal>, call: Call) -> PendingCall {
        let (tell, answer) = oneshot::channel();
        let asks = match &call {
            Call::Acquire(lease) if !matches!(lease.key, Some(LeaseKey::Request(_))) => {
                Some((Arc::clone(principal), lease.ask.lock.clone()))
            }
            Call::AcquireWith(ask) => Some((Arc::clone(principal), ask.ask.lock.clone())),
            _ => None,
        };
        let mut core = self.0.core.lock();
        let connection = core.next_connection();
        core.calls.insert(connection, tell);
        core.inputs.push_back(Input::Call(connection, Arc::clone(principal), call));
        self.0.run(&mut core);
        drop(core);
        PendingCall { service: self.clone(), connection, answer, asks }
    }
}

/// How long a request that does not wait for the lock may wait for the answers of other nodes.
pub(crate) const ASKING: Duration = Duration::from_secs(5);

/// A call that waits for its answer.
pub(crate) struct PendingCall {
    service: Service,
    connection: Connection,
    answer: oneshot::Receiver<Answer>,
    /// The client and the lock, if this is a request that cannot be repeated.
    asks: Option<(Arc<Principal>, Name)>,
}

impl PendingCall {
    /// The answer to the call.
    pub(crate) async fn answer(&mut self) -> Answer {
        let stopped = || Answer::Refused(stopping());
        (&mut self.answer).await.unwrap_or_else(|_| stopped())
    }

    /// The answer to the call, if it is there.
    pub(crate) fn answer_now(&mut self) -> Option<Answer> {
        self.answer.try_recv().ok()
    }

    /// The answer to the call, which comes after this time at the latest.
    pub(crate) async fn answer_within(&mut self, time: Duration) -> Answer {
        tokio::select! {
            biased;
            answer = self.answer() => return answer,
            () = sleep(time) => self.timed_out(),
        }
        self.answer().await
    }

    /// The client does not want to wait any longer: the answer comes now.
    fn timed_out(&self) {
        self.service.0.input(Input::CallTimedOut(self.connection));
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        let mut core = self.service.0.core.lock();
        core.calls.remove(&self.connection);
        core.inputs.push_back(Input::HangUp { connection: self.connection, closed: true });
        if let (Ok(Answer::Leased(lease)), Some((principal, lock))) =
            (self.answer.try_recv(), self.asks.take())
        {
            // The client has gone, and will never know of the lock.
            let connection = core.next_connection();
            let release = Call::Release(lock, lease.fence);
            core.inputs.push_back(Input::Call(connection, principal, release));
        }
        self.service.0.run(&mut core);
    }
}
