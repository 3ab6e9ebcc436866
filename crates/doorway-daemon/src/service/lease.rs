//! What doors without connections need to know of leases.

use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::{Fence, Life, Name, Refusal};

use super::open::SHORTEST;
use super::refusals::refusal;
use super::release::same_client;
use super::{Service, Session, allowed};
use crate::ledger::Record;
use crate::principal::{Principal, Right};

/// What has become of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It has a place in the queue.
    Waiting,
    /// It was granted, which may be over.
    Granted,
    /// Neither: it was refused, or never made.
    Nothing,
}

impl Service {
    /// A sign of life for the session without a connection that holds this grant and that the same
    /// client made. If it is a lease, it may get another time to live.
    pub fn renew_for(
        &self,
        principal: &Principal,
        lock: &Name,
        fence: Fence,
        ttl: Option<Duration>,
    ) -> Result<Arc<Session>, Refusal> {
        allowed(principal, Right::Acquire, lock)?;
        let session = self.renewed(principal, lock, fence)?;
        if let Some(ttl) = ttl.filter(|_| session.life == Life::Lease) {
            let state = session.state();
            if state.over {
                drop(state);
                return Err(self.not_held(lock, fence)); // Its time has ended just now.
            }
            session.set_ttl(ttl.clamp(SHORTEST, self.0.limits.ttl.max(SHORTEST)));
            // After a crash the next process waits for as long as the ledger says.
            if let (Some(ledger), Some(place)) = (&self.0.ledger, state.written) {
                let written = ledger.rewrite(place, &Record::Session(session.record()));
                if let Err(error) = written {
                    let text = format!("the ledger of sessions cannot be written: {error}");
                    return Err(refusal(doorway_protocol::Code::Unavailable, text));
                }
            }
        }
        Ok(session)
    }

    /// The lease that holds a lock in answer to this request of this client, as when the process
    /// before this one made it.
    pub(crate) fn lease_of(
        &self,
        principal: &Principal,
        lock: &Name,
        request: u64,
    ) -> Option<Arc<Session>> {
        let inner = &*self.0;
        let numbers: Vec<(Fence, u64)> = {
            let loose = inner.loose.lock();
            let from = loose.range((lock.clone(), Fence::new(0, 0))..);
            let held = from.take_while(|((name, _), _)| name == lock);
            held.map(|((_, fence), number)| (*fence, *number)).collect()
        };
        numbers.into_iter().find_map(|(fence, number)| {
            let session = inner.session(number)?;
            if session.life != Life::Lease || !same_client(&session.principal, principal) {
                return None;
            }
            let mut state = session.state();
            state.grants.iter().find(|grant| {
                (grant.request, grant.fence(), grant.lock()) == (request, fence, lock.as_str())
            })?;
            // So that the request is known when it comes again.
            let answered = state.answered.get_or_insert_default();
            answered.insert(request, (lock.clone(), fence));
            drop(state);
            Some(session)
        })
    }

    /// What has become of this request of a session?
    pub(crate) fn standing(session: &Session, request: u64) -> Standing {
        let state = session.state();
        if state.waiting.contains_key(&request) {
            Standing::Waiting
        } else if state.answered.as_ref().is_some_and(|answered| answered.contains_key(&request)) {
            Standing::Granted
        } else {
            Standing::Nothing
        }
    }

    /// What this request of a session got, even if that is over.
    pub(crate) fn was_granted(session: &Session, request: u64) -> Option<Fence> {
        let state = session.state();
        let answered = state.answered.as_ref().and_then(|answered| answered.get(&request));
        answered.map(|(_, fence)| *fence)
    }
}
