//! Calls over HTTP.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::Service;
use crate::principal::Principal;
use crate::sessions::refusals::stopping;
use crate::sessions::{Answer, Call, Connection, Input};

impl Service {
    /// Begin a call over HTTP. The answer comes later, unless the call is dropped.
    pub(crate) fn call(&self, principal: &Arc<Principal>, call: Call) -> Calling {
        let (tell, answer) = oneshot::channel();
        let mut core = self.0.core.lock();
        let connection = core.next_connection();
        core.calls.insert(connection, tell);
        core.inputs.push_back(Input::Call(connection, Arc::clone(principal), call));
        self.0.run(&mut core);
        drop(core);
        Calling { service: self.clone(), connection, answer }
    }
}

/// A call over HTTP that waits for its answer.
pub(crate) struct Calling {
    service: Service,
    connection: Connection,
    answer: oneshot::Receiver<Answer>,
}

impl Calling {
    /// The answer to the call.
    pub(crate) async fn answer(&mut self) -> Answer {
        let stopped = || Answer::Refused(stopping());
        (&mut self.answer).await.unwrap_or_else(|_| stopped())
    }

    /// The client does not want to wait any longer: the answer comes now.
    pub(crate) fn timed_out(&self) {
        self.service.0.input(Input::CallTimedOut(self.connection));
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        let mut core = self.service.0.core.lock();
        core.calls.remove(&self.connection);
        core.inputs.push_back(Input::HangUp { connection: self.connection, closed: true });
        self.service.0.run(&mut core);
    }
}
