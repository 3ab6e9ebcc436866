//! After a crash of the node: former holders come back before anyone else gets in.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::{Claim, ClientInfo, Life, Mode, Refusal};
use rustix::io::Errno;
use tokio::time::sleep;

use super::connected::Peer;
use super::hello::Resumed;
use super::permits::Ticket;
use super::process::Process;
use super::session::{Begin, Grant, Session};
use super::{Inner, Service, allowed};
use crate::clock::{Moment, ms};
use crate::ledger::{GrantRecord, LedgerContents, Record, SessionRecord};
use crate::log_limit::LogLimit;
use crate::principal::{Principal, Right, Rights};
use crate::settings::Limits;

/// Lines about claims that come to nothing come once in a while.
static UNCLAIMED: LogLimit = LogLimit::new();

/// Former sessions for which the node waits.
#[derive(Debug, Default)]
pub(crate) struct Awaited {
    /// By number, each with its place in the ledger and, if the node can see it, its process.
    sessions: BTreeMap<u64, (u32, SessionRecord, Option<Process>)>,
    until: Option<Moment>,
    /// The ledger may lack some, so all are waited for as long as any can live, and clients over
    /// TCP are believed.
    believed: bool,
    /// Sessions up to this number are of a process before this one.
    pub(crate) last: u64,
}

impl Awaited {
    /// Who may still hold something?
    pub(crate) fn new(former: &LedgerContents, limits: &Limits) -> Self {
        let believed = former.lacking;
        let mut awaited = Self { believed, last: former.last, ..Self::default() };
        // Those whom the ledger lacks live as long as they could then, whatever is allowed now.
        let mut longest = if believed { former.ttl.max(limits.ttl) } else { Duration::ZERO };
        let mut loose = false;
        for (place, record) in &former.records {
            let Record::Session(session) = record else { continue };
            let Life::Connection { inherited } = session.life else {
                loose = true;
                continue;
            };
            let process = session.pid.map_or(Err(Errno::INVAL), Process::look);
            // A process that is gone proves nothing where others may have the connection, and one
            // that cannot be seen may be there.
            let gone = matches!(process, Ok(None)) && !inherited;
            if session.remote || former.same_boot && !gone {
                longest = longest.max(Duration::from_millis(session.ttl_ms.into()));
                let process = process.ok().flatten().filter(|_| !inherited && !session.remote);
                awaited.sessions.insert(session.number, (*place, session.clone(), process));
            }
        }
        if loose || !longest.is_zero() {
            awaited.until = Some(Moment::now().after(longest));
        }
        awaited
    }

    /// Is there nobody to wait for?
    pub(crate) fn is_empty(&self) -> bool {
        self.until.is_none()
    }

    pub(crate) fn until(&self) -> Option<Moment> {
        self.until
    }

    /// Is everyone back, or gone?
    fn is_over(&mut self) -> bool {
        let gone = |process: &Option<Process>| process.as_ref().is_some_and(Process::is_gone);
        self.sessions.retain(|_, (_, _, process)| !gone(process));
        let late = self.until.is_none_or(|until| Moment::now() >= until);
        late || self.sessions.is_empty() && !self.believed
    }
}

/// Wait for former holders, then serve.
pub(crate) async fn run(service: Service) {
    let inner = &*service.0;
    let waiting = inner.former.lock().sessions.len();
    if let Some(until) = *inner.reclaiming.borrow() {
        let at_most_ms = ms(until.since(Moment::now()));
        tracing::info!(waiting, at_most_ms, "waiting for the holders of before the crash");
    }
    while !inner.former.lock().is_over() {
        if service.is_stopping() {
            return; // Those who are not back yet come to the next process.
        }
        sleep(Duration::from_millis(10)).await;
    }
    let missing = std::mem::take(&mut inner.former.lock().sessions);
    if let Some(ledger) = &inner.ledger {
        for (place, ..) in missing.values() {
            ledger.erase(*place);
        }
        ledger.settled();
    }
    inner.node.serve();
    inner.reclaiming.send_replace(None);
    tracing::info!(held = service.held(), missing = missing.len(), "serving again");
}

impl Service {
    /// Sessions that need no connection go on by themselves, with what they held.
    pub(crate) fn restore(&self, former: LedgerContents) {
        let inner = &*self.0;
        let Some(ledger) = &inner.ledger else { return };
        let mut grants: BTreeMap<u64, Vec<(u32, GrantRecord)>> = BTreeMap::new();
        let mut sessions = Vec::new();
        for (place, record) in former.records {
            match record {
                Record::Marker(_) => ledger.erase(place), // Nobody puts one there.
                Record::Session(session) => sessions.push((place, session)),
                Record::Grant(grant) => {
                    grants.entry(grant.session).or_default().push((place, grant));
                }
            }
        }
        for (place, record) in sessions {
            let held = grants.remove(&record.number).unwrap_or_default();
            if matches!(record.life, Life::Connection { .. }) {
                if !inner.former.lock().sessions.contains_key(&record.number) {
                    ledger.erase(place);
                }
                continue;
            }
            let live = former.same_boot || record.life == Life::Lease;
            if !live || !self.restore_one(place, &record, &held) {
                for (place, _) in &held {
                    ledger.erase(*place);
                }
                ledger.erase(place);
            }
        }
        // Those whose session is not there are of one that ended.
        grants.values().flatten().for_each(|(place, _)| ledger.erase(*place));
    }

    fn restore_one(&self, place: u32, record: &SessionRecord, held: &[(u32, GrantRecord)]) -> bool {
        let process = match record.life {
            Life::Process { pid } => match Process::look(pid) {
                Ok(Some(process)) if !process.is_other(record.started) => Some(process),
                Ok(_) => return false,
                Err(_) => None, // Whoever watches it looks again.
            },
            _ => None,
        };
        if held.is_empty() {
            return false;
        }
        let principal = self.0.known(record);
        let client = record.client.as_str().into();
        let begin = record.begin(principal, client, process);
        // It was counted when it was opened, whatever the limit has become.
        let Ok(session) = self.admit(Session::new(begin), usize::MAX) else { return false };
        let mut state = session.state();
        state.written = Some(place);
        for (place, grant) in held {
            let GrantRecord { lock, shared, permits, fence, request, .. } = grant.clone();
            let mode = if shared { Mode::Shared } else { Mode::Exclusive };
            let claim = Claim { lock: lock.clone(), mode, permits, fence, request };
            match self.0.reclaim(&session, &claim) {
                Some(guard) => {
                    state.written_grants.insert((lock, fence), *place);
                    self.0.hold(&session, &mut state, guard);
                }
                None => self.0.ledger.iter().for_each(|ledger| ledger.erase(*place)),
            }
        }
        drop(state);
        self.0.end_if_idle(&session);
        true
    }

    /// Go on with a session that the process before this one had; none if it never was.
    pub(crate) fn revive(
        &self,
        peer: &mut Peer,
        principal: &Principal,
        who: &ClientInfo,
        resumed: &Resumed,
        lost: &mut Vec<Claim>,
    ) -> Option<Result<Arc<Session>, Refusal>> {
        let inner = &*self.0;
        let number = resumed.id.0;
        let mut former = inner.former.lock();
        if number > former.last || inner.session(number).is_some() {
            return None;
        }
        let known = former.sessions.get(&number);
        if known.is_some_and(|(_, record, _)| !self.0.proves(record, &resumed.secret, principal)) {
            return None;
        }
        let place = known.map(|(place, ..)| *place);
        let believed = place.is_some() || former.believed && peer.remote;
        // One that is waited for was counted when it was opened.
        let most = if place.is_some() { usize::MAX } else { inner.limits.sessions };
        let session = match self.reopen(peer, principal, who, resumed, most) {
            Ok(session) => session,
            Err(refusal) => return Some(Err(refusal)),
        };
        // Whatever it claims must be held again before anyone can conclude that all are back, for
        // which they would need what is locked here.
        former.sessions.remove(&number);
        let mut state = session.state();
        state.written = place;
        if place.is_none()
            && believed
            && let Some(ledger) = &inner.ledger
        {
            state.written = ledger.write(&Record::Session(session.record())).ok();
        }
        for claim in &resumed.held {
            let may = believed
                && state.grants.len() < inner.limits.grants
                && allowed(principal, Right::Acquire, &claim.lock).is_ok();
            match may.then(|| inner.reclaim(&session, claim)).flatten() {
                Some(grant) => inner.hold(&session, &mut state, grant),
                None => lost.push(claim.clone()),
            }
        }
        drop(state);
        drop(former);
        Some(Ok(session))
    }

    fn reopen(
        &self,
        peer: &mut Peer,
        principal: &Principal,
        who: &ClientInfo,
        resumed: &Resumed,
        most: usize,
    ) -> Result<Arc<Session>, Refusal> {
        let mut begin = self.begin(peer, principal, who, resumed.ttl_ms, resumed.life)?;
        begin.number = resumed.id.0;
        begin.secret = resumed.secret;
        self.admit(Session::new(begin), most)
    }
}

impl Inner {
    /// Hold again what was held before the crash.
    fn reclaim(&self, session: &Session, claim: &Claim) -> Option<Grant> {
        let Claim { lock, mode, permits, fence, request } = claim;
        super::refusals::check_name(lock).ok()?;
        let permits = permits.filter(|permits| *permits != self.permits_of(lock));
        let (name, ticket) = match permits {
            None => (lock.clone(), None),
            Some(permits) => {
                let (name, ticket) = self.permits.enter(lock, permits).ok()?;
                (name, Some(ticket))
            }
        };
        let node_session = doorway_node::Session::new(session.number);
        match self.node.reclaim(name.as_str(), *mode, *fence, node_session) {
            Ok(guard) => {
                ticket.into_iter().for_each(Ticket::keep);
                Some(Grant { guard, request: *request })
            }
            Err(error) => {
                let client = &*session.client;
                UNCLAIMED.then(|| {
                    tracing::warn!(%lock, %fence, client, "not held again: {error}");
                });
                None
            }
        }
    }

    /// Who opened a session of the ledger.
    pub(crate) fn known(&self, record: &SessionRecord) -> Principal {
        let name = record.principal.clone();
        let bare = name.strip_prefix("client ").unwrap_or(&name);
        let known = self.clients.iter().find(|known| known.name == bare);
        let rights = match (record.uid, known) {
            (Some(_), _) => Rights::all(),
            (None, known) => known.map(|known| known.rights.clone()).unwrap_or_default(),
        };
        Principal { name, uid: record.uid, rights }
    }
}

impl SessionRecord {
    fn begin(&self, principal: Principal, client: Arc<str>, process: Option<Process>) -> Begin {
        Begin {
            number: self.number,
            secret: self.secret,
            principal,
            client,
            ttl: Duration::from_millis(self.ttl_ms.into()),
            life: self.life,
            remote: self.remote,
            pid: self.pid,
            process,
            started: self.started,
        }
    }
}
