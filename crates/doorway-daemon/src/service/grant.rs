//! What is kept of a grant: in the table of its session, and in the ledger.

use std::sync::atomic::Ordering;

use doorway_node::OwnedGuard;
use doorway_protocol::{Code, Fence, Mode, Refusal};

use super::Inner;
use super::acquire::Wanted;
use super::events::EventKind;
use super::permits::{self, Ticket};
use super::refusals::refusal;
use super::session::{Grant, Session, State};
use crate::ledger::{GrantRecord, Record};

impl Inner {
    /// Put a guard into the table of its session.
    pub(super) fn keep(
        &self,
        session: &Session,
        state: &mut State,
        guard: OwnedGuard,
        wanted: Wanted,
    ) -> Result<Fence, Refusal> {
        let (fence, request) = (guard.fence(), wanted.request);
        self.write_down(session, state, &wanted, fence)?;
        let Wanted { lock, ticket, .. } = wanted;
        if session.is_loose()
            && let Some(answered) = &mut state.answered
        {
            if answered.len() > state.grants.len() + 1024 {
                answered.pop_first();
            }
            answered.insert(request, (lock.clone(), fence));
        }
        ticket.into_iter().for_each(Ticket::keep);
        self.hold(session, state, Grant { guard, request });
        Ok(fence)
    }

    /// A session holds one more.
    pub(crate) fn hold(&self, session: &Session, state: &mut State, grant: Grant) {
        let (name, fence) = (grant.guard.handle().name(), grant.fence());
        self.announce(EventKind::Granted, session, name, fence);
        if session.is_loose() {
            let key = (permits::visible_name(name), fence);
            self.loose.lock().insert(key, session.number);
        }
        state.grants.insert(&self.hasher, grant);
        self.held.fetch_add(1, Ordering::Relaxed);
        self.grants.fetch_add(1, Ordering::Relaxed);
    }

    /// Before a grant is told, its session is in the ledger; and the grant too if nobody would
    /// come back to claim it.
    fn write_down(
        &self,
        session: &Session,
        state: &mut State,
        wanted: &Wanted,
        fence: Fence,
    ) -> Result<(), Refusal> {
        let Some(ledger) = &self.ledger else { return Ok(()) };
        let failed = |error| {
            let text = format!("the ledger of sessions cannot be written: {error}");
            refusal(Code::Unavailable, text)
        };
        if state.written.is_none() {
            let record = Record::Session(session.record());
            state.written = Some(ledger.write(&record).map_err(failed)?);
        }
        if session.is_loose() {
            let (lock, shared) = (wanted.lock.clone(), wanted.mode == Mode::Shared);
            let permits = wanted.ticket.as_ref().map(Ticket::permits);
            let (session, request) = (session.number, wanted.request);
            let key = (lock.clone(), fence);
            let grant = GrantRecord { session, lock, shared, permits, fence, request };
            let place = ledger.write(&Record::Grant(grant)).map_err(failed)?;
            state.written_grants.insert(key, place);
        }
        Ok(())
    }
}
