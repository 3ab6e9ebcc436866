//! How sessions begin and end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::{Life, Moment, Refusal, Reply, Secret};

use super::Sessions;
use super::connections::AttachedSession;
use super::event::{EventKind, Output, ProcessId};
use super::processes::needs_watch;
use super::session::Session;
use super::standing::lease_number;
use crate::principal::Principal;

/// Why a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Its client said goodbye or is gone, or the session is not needed any more.
    Left,
    /// Its client was not heard for its time to live.
    Silent,
}

/// How a session begins.
pub(super) struct NewSession {
    pub(super) number: u64,
    pub(super) secret: Secret,
    pub(super) principal: Arc<Principal>,
    pub(super) client: Arc<str>,
    pub(super) ttl: Duration,
    pub(super) life: Life,
    pub(super) remote: bool,
    pub(super) process: Option<ProcessId>,
}

impl Sessions {
    pub(super) fn next_session(&mut self) -> u64 {
        self.last_session += 1;
        self.last_session
    }

    /// Open a session, if the limits allow one more.
    pub(super) fn open_session(
        &mut self,
        now: Moment,
        new: NewSession,
        out: &mut Vec<Output>,
    ) -> Result<(), Refusal> {
        let session = Session::new(new, now);
        self.count_session(&session.principal, needs_watch(&session))?;
        self.insert(session, out);
        Ok(())
    }

    /// Add a session to the table.
    pub(super) fn insert(&mut self, session: Session, out: &mut Vec<Output>) {
        out.push(Output::Opened(session.number, Arc::clone(&session.client), session.process));
        self.open.insert(session.number, session);
    }

    /// End a session without a connection that holds nothing and waits for nothing.
    pub(super) fn end_if_idle(&mut self, number: u64, out: &mut Vec<Output>) {
        let Some(session) = self.open.get(&number) else { return };
        let idle = session.grants.is_empty()
            && session.waiting.is_empty()
            && session.connection.is_none()
            && session.callers.is_empty();
        if idle && session.is_detached() && !session.standing {
            self.end(number, End::Left, out);
        }
    }

    /// End a session: everything that it holds is released, and its requests are withdrawn.
    pub(super) fn end(&mut self, number: u64, end: End, out: &mut Vec<Output>) {
        let Some(session) = self.open.get(&number) else { return };
        let (kind, why) = match end {
            End::Left => (EventKind::Released, None),
            End::Silent => {
                (EventKind::Lost, Some("the session was silent for longer than its time to live"))
            }
        };
        let waiting: Vec<_> = session.waiting.values().copied().collect();
        let grants: Vec<_> = session.grants.keys().cloned().collect();
        for ask in waiting {
            self.abandon(ask, out);
        }
        for held in grants {
            if let Some(why) = why {
                let lost = Reply::Lost(held.0.clone(), held.1, why.to_owned());
                self.tell(number, lost, out);
            }
            self.let_go(number, &held, kind, why, out);
        }
        let Some(session) = self.open.remove(&number) else { return };
        if let Some(connection) = session.connection {
            if let Some(conn) = self.connections.get_mut(&connection) {
                conn.session = AttachedSession::Over;
            }
            out.push(Output::Close(connection));
        }
        if session.watched {
            self.count_process(false);
            out.push(Output::Unwatch(number));
        }
        self.forget_session(&session.principal);
        if let Some(place) = session.place {
            self.erase(place, out);
        }
        self.former.waits_for.remove(&number);
        if session.standing {
            self.standing.remove(&lease_number(&session.secret));
        }
        self.lease_ended(&session, out);
        out.push(Output::Ended(number));
    }
}

impl Session {
    pub(super) fn new(new: NewSession, now: Moment) -> Self {
        let NewSession { number, secret, principal, client, ttl, life, remote, process } = new;
        Self {
            number,
            secret,
            principal,
            client,
            ttl,
            told: Duration::ZERO,
            life,
            remote,
            process: process.filter(|_| life != Life::Lease),
            holder: false,
            heard: now,
            connection: None,
            newest: None,
            watched: false,
            orphan: false,
            grants: BTreeMap::new(),
            waiting: BTreeMap::new(),
            // A lease has no connection, so its requests may be repeated at any time.
            answered: (life == Life::Lease).then(BTreeMap::new),
            place: None,
            rewriting: None,
            standing: false,
            doomed: false,
            key: None,
            callers: BTreeSet::new(),
        }
    }
}
