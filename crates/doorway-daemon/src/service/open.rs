//! How sessions begin and end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use doorway_protocol::{ClientInfo, Code, Life, Name, Refusal, Reply, Secret, SessionId};
use parking_lot::MutexGuard;
use rustix::io::Errno;

use super::connected::{Peer, no_files};
use super::events::EventKind;
use super::process::{self, Process};
use super::refusals::{gone, limit, refusal, stopping};
use super::release::same_client;
use super::session::{Begin, Session, State};
use super::shares::{Share, What};
use super::{Inner, Service};
use crate::clock::Moment;
use crate::ledger::SessionRecord;
use crate::principal::Principal;
use crate::secret;

/// The shortest time that a session may live without being heard of.
pub(crate) const SHORTEST: Duration = Duration::from_millis(500);

/// How many bytes of what a client says of itself are kept.
const SAID: usize = 200;

/// How many bytes of the names of principals the ledger keeps: all of them, for those of clients
/// have 63 at most, and what stands before them has few.
const PRINCIPAL: usize = 80;

/// Why a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Its client said so, or is gone.
    Left,
    /// Nothing was heard of it.
    Silent,
    /// The node stops.
    Stopped,
}

impl Service {
    /// Open a session.
    pub fn open(
        &self,
        peer: &mut Peer,
        principal: &Principal,
        who: &ClientInfo,
        ttl_ms: u32,
        life: Life,
    ) -> Result<Arc<Session>, Refusal> {
        let begin = self.begin(peer, principal, who, ttl_ms, life)?;
        self.admit(Session::new(begin), self.0.limits.sessions)
    }

    /// How a session begins, with the next number and a secret of its own.
    pub(crate) fn begin(
        &self,
        peer: &mut Peer,
        principal: &Principal,
        who: &ClientInfo,
        ttl_ms: u32,
        life: Life,
    ) -> Result<Begin, Refusal> {
        if self.is_stopping() {
            return Err(stopping());
        }
        let longest = self.0.limits.ttl.max(SHORTEST);
        let opened = peer.process.take();
        let pid = match life {
            Life::Connection { .. } => opened.as_ref().map(Process::pid),
            Life::Lease => None,
            Life::Process { pid } => Some(pid),
        };
        let process = match life {
            // Only where others may have the connection does it matter whether the process lives.
            Life::Connection { inherited } => opened.filter(|_| inherited),
            Life::Lease => None,
            Life::Process { pid } => Some(process(pid, peer.remote)?),
        };
        let started = process.as_ref().filter(|_| matches!(life, Life::Process { .. }));
        let started = started.and_then(Process::started);
        Ok(Begin {
            number: self.0.last.fetch_add(1, Ordering::Relaxed) + 1,
            secret: secret(),
            principal: principal.clone(),
            client: describe(who, principal).into(),
            ttl: Duration::from_millis(ttl_ms.into()).clamp(SHORTEST, longest),
            life,
            remote: peer.remote,
            pid,
            process,
            started,
        })
    }

    /// The session with this number, for a client that can prove that it is its own. Naming it is a
    /// sign of life.
    pub fn find(
        &self,
        principal: &Principal,
        id: SessionId,
        secret: &Secret,
    ) -> Result<Arc<Session>, Refusal> {
        let session = self.0.session(id.0).ok_or_else(gone)?;
        if !same_client(&session.principal, principal)
            || !secret::same(&session.secret.0, &secret.0)
        {
            return Err(gone());
        }
        session.heard(Moment::now());
        Ok(session)
    }

    /// A sign of life.
    pub fn alive(&self, session: &Session) -> Result<(), Refusal> {
        session.heard(Moment::now());
        if session.is_over() { Err(gone()) } else { Ok(()) }
    }

    /// End a session: all that it holds is released, and all for which it waits withdrawn.
    pub fn close(&self, session: &Session) {
        self.0.end(session, End::Left);
    }

    /// A new session, unless there are so many already.
    pub(crate) fn admit(&self, session: Session, most: usize) -> Result<Arc<Session>, Refusal> {
        session.state().shares = self.0.share_of(&session, most)?;
        let session = Arc::new(session);
        let mut sessions = self.0.sessions.lock();
        if sessions.len() >= most {
            let text = format!("{most} sessions are open");
            return Err(limit(&text, "limits.sessions", most));
        }
        sessions.insert(session.number, Arc::clone(&session));
        drop(sessions);
        if let Life::Process { pid } = session.life {
            self.watch(&session, pid);
        }
        self.0.changed.notify_waiters();
        Ok(session)
    }

    /// End a session with its process.
    fn watch(&self, session: &Arc<Session>, pid: u32) {
        let (inner, watched) = (Arc::downgrade(&self.0), Arc::downgrade(session));
        let process = session.process.as_ref().and_then(|process| process.try_clone().ok());
        let started = session.started;
        let task = tokio::spawn(async move {
            process::ended(pid, started, process).await;
            if let (Some(inner), Some(session)) = (inner.upgrade(), watched.upgrade()) {
                inner.end(&session, End::Left);
            }
        });
        session.state().watcher = Some(task.abort_handle());
    }
}

impl Inner {
    /// A session without a connection that holds nothing and waits for nothing has no use.
    pub(crate) fn end_if_idle(&self, session: &Session) {
        let state = session.state();
        let idle = state.grants.len() == 0 && state.waiting.is_empty() && state.outbox.is_none();
        if idle && session.is_loose() {
            // In one breath with looking: someone may be asking again at this very moment.
            self.end_now(session, state, End::Left);
        }
    }

    /// What a session takes of what all of them share, of which there are so many at most.
    fn share_of(&self, session: &Session, most: usize) -> Result<[Option<Share>; 2], Refusal> {
        let (name, things) = ("limits.sessions", "sessions");
        let principal = &session.principal;
        let own = self.shares.take_half(What::Sessions, principal, most, name, things)?;
        let descriptors = match (&session.process, session.life) {
            (None, _) => return Ok([own, None]),
            (Some(_), Life::Process { .. }) => 2, // Its end is waited for with another one.
            (Some(_), _) => 1,
        };
        // Who is admitted whatever the limits are is so with its process, too.
        let files = match most {
            usize::MAX => most,
            _ => self.limits.files.saturating_sub(self.connections.lock().len()),
        };
        let process = self.shares.take(What::Processes, "", descriptors, files);
        Ok([own, Some(process.ok_or_else(no_files)?)])
    }

    /// End a session, once.
    pub(crate) fn end(&self, session: &Session, end: End) {
        self.end_now(session, session.state(), end);
    }

    fn end_now(&self, session: &Session, mut state: MutexGuard<'_, State>, end: End) {
        // Whoever sends a sign of life looks afterwards whether the session is over. So either that
        // is seen here, or it sees this.
        let heard = || session.deadline().is_none_or(|deadline| deadline > Moment::now());
        if end == End::Silent && heard() || std::mem::replace(&mut state.over, true) {
            return;
        }
        let (kind, why) = match end {
            End::Left => (EventKind::Released, ""),
            End::Silent => (EventKind::Lost, "the session was silent for longer than its time"),
            End::Stopped => (EventKind::Lost, "the node stops"),
        };
        let waiting = std::mem::take(&mut state.waiting);
        self.waits.fetch_sub(waiting.len() as u64, Ordering::Relaxed);
        for waiting in waiting.values() {
            waiting.task.abort();
        }
        let outbox = state.outbox.take();
        let grants = std::mem::take(&mut state.grants).into_vec();
        if !grants.is_empty() && end != End::Left {
            let (held, client) = (grants.len(), &*session.client);
            tracing::warn!(session = session.number, client, held, "locks are lost: {why}");
        }
        for grant in grants {
            if end != End::Left
                && let (Some(outbox), Ok(lock)) = (&outbox, Name::new(grant.lock()))
            {
                outbox.tell(&Reply::Lost(lock, grant.fence(), why.to_owned()));
            }
            self.let_go(session, &mut state, grant, kind);
        }
        state.watcher.take().inspect(tokio::task::AbortHandle::abort);
        state.shares = [None, None];
        if let (Some(ledger), Some(place)) = (&self.ledger, state.written.take()) {
            ledger.erase(place);
        }
        drop(state);
        outbox.inspect(|outbox| outbox.close());
        self.sessions.lock().remove(&session.number);
        self.changed.notify_waiters();
        for told in waiting.into_values().flat_map(|waiting| waiting.told) {
            let _ = told.send(Err(gone())); // Who has gone away knows.
        }
    }
}

impl Session {
    /// What the ledger keeps of it.
    pub(crate) fn record(&self) -> SessionRecord {
        SessionRecord {
            number: self.number,
            secret: self.secret,
            ttl_ms: self.ttl().as_millis() as u32,
            life: self.life,
            remote: self.remote,
            pid: self.pid,
            // Only what is tied to a process must not be mistaken for another's.
            started: self.started,
            uid: self.principal.uid,
            principal: cut(&self.principal.name, PRINCIPAL).to_owned(),
            client: cut(&self.client, 60).to_owned(),
        }
    }
}

/// A process to live with.
fn process(pid: u32, remote: bool) -> Result<Process, Refusal> {
    if remote {
        let text = "a session cannot live with a process of another machine; give it a time";
        return Err(refusal(Code::Invalid, text));
    }
    match Process::look(pid) {
        Ok(Some(process)) => Ok(process),
        Ok(None) | Err(Errno::INVAL) => {
            Err(refusal(Code::Invalid, format!("there is no process {pid}")))
        }
        Err(error) => {
            let text = format!("the process {pid} cannot be watched: {error}");
            Err(refusal(Code::Unavailable, text))
        }
    }
}

/// What people read when they ask who holds a lock.
fn describe(who: &ClientInfo, principal: &Principal) -> String {
    let mut text = match (who.label.as_str(), who.pid) {
        ("", 0) => principal.name.clone(),
        ("", pid) => format!("pid {pid}"),
        (label, 0) => label.to_owned(),
        (label, pid) => format!("{label} (pid {pid})"),
    };
    if !who.host.is_empty() {
        text = format!("{} on {}", text, cut(&who.host, 64));
    }
    // A control character would garble whatever it is shown on.
    let clean: String = text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    cut(&clean, SAID).to_owned()
}

/// As much of a text as fits, in whole characters.
fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

fn secret() -> Secret {
    let mut bytes = [0; 16];
    let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    assert_eq!(got, Ok(16), "the system gives so few random bytes at once, always");
    Secret(bytes)
}
