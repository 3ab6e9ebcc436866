//! What the former process left: sessions and grants of the ledger, and the claims of clients.
//!
//! The ledger has every session that holds something, and every grant. So the sessions go on where
//! they were, and all other locks are served at once. Only if the ledger may lack sessions, nothing
//! is granted until the longest time to live is over, and clients may claim what they held.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::{Claim, Fence, Life, Moment, Name};

use super::acquire::{PendingAcquire, Progress};
use super::event::{Output, ProcessId};
use super::open::NewSession;
use super::session::{Session, UNLIMITED};
use super::{Places, Sessions, allowed};
use crate::ledger::{GrantRecord, LedgerContents, Record, SessionRecord};
use crate::principal::{Principal, Right, Rights};
use crate::settings::ClientSettings;

/// What is known about the former process.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct FormerProcess {
    /// The highest number of a session of the former process.
    pub(super) last: u64,
    /// Until when former holders that the ledger lacks may claim what they held, also while the
    /// node drains. Nothing is granted meanwhile. None if nobody is awaited any more.
    pub(super) awaited_until: Option<Moment>,
    /// The ledger may lack some sessions, so clients of other machines are believed.
    lacking: bool,
    /// Sessions of a ledger that has no grants of sessions with a connection. Their clients may
    /// claim what they held.
    pub(super) waits_for: BTreeSet<u64>,
    /// What was broken since the node began to believe claims. It cannot be claimed again.
    pub(super) broken: BTreeSet<(Name, Fence)>,
    /// The ledger lacked something, and has not been marked as complete since.
    unsettled: bool,
}

/// The kind of a session, as the ledger has it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Usual,
    /// Its processes hold a socket.
    Holder,
    /// A lease that may hold several locks.
    Standing,
}

impl FormerProcess {
    /// Is a client believed what it claims, although the ledger does not have it? The session must
    /// be one of this node: see `Sessions::check_own`.
    pub(super) fn believes(&self, number: u64, remote: bool) -> bool {
        self.lacking && remote && number <= self.last
    }
}

impl Sessions {
    /// Go on with what the former process left.
    pub(super) fn restore(&mut self, now: Moment, contents: LedgerContents, out: &mut Vec<Output>) {
        self.last_session = contents.last;
        self.former = FormerProcess {
            last: contents.last,
            lacking: contents.lacking,
            unsettled: contents.lacking || !contents.complete,
            ..FormerProcess::default()
        };
        let used: BTreeSet<u32> = contents.records.iter().map(|(place, _)| *place).collect();
        let end = used.last().map_or(1, |last| last + 1);
        self.places = Places { end, free: (1..end).filter(|it| !used.contains(it)).collect() };
        let mut longest = Duration::ZERO;
        if contents.lacking {
            longest = contents.ttl.max(self.setup.limits.ttl);
        }
        let mut grants: BTreeMap<u64, Vec<(u32, GrantRecord)>> = BTreeMap::new();
        let mut sessions = Vec::new();
        let (mut restored, mut again) = (Vec::new(), Vec::new());
        for (place, record) in contents.records {
            match record {
                Record::Marker(_) | Record::Start(_) => self.erase(place, out),
                Record::Session(session) => sessions.push((place, session, Kind::Usual)),
                Record::Holder(session) => sessions.push((place, session, Kind::Holder)),
                Record::Standing(session) => sessions.push((place, session, Kind::Standing)),
                Record::Grant(grant) => {
                    grants.entry(grant.session).or_default().push((place, grant));
                }
            }
        }
        for (place, record, kind) in sessions {
            let held = grants.remove(&record.number).unwrap_or_default();
            let connected = matches!(record.life, Life::Connection { .. });
            // Processes of this machine do not survive its restart.
            let local = !record.remote && record.life != Life::Lease;
            let claims = connected && (!contents.complete || contents.lacking);
            // The former process may have ended while it wrote a session twice.
            let twice = self.open.contains_key(&record.number);
            if local && !contents.same_boot || held.is_empty() && !claims || twice {
                for (place, _) in held {
                    self.erase(place, out);
                }
                self.erase(place, out);
                continue;
            }
            if claims {
                self.former.waits_for.insert(record.number);
                // The processes of a session without a TTL are watched.
                if record.ttl_ms != u32::MAX {
                    longest = longest.max(Duration::from_millis(record.ttl_ms.into()));
                }
            }
            self.restore_session(now, place, &record, kind, out);
            restored.push(record.number);
            again.extend(held);
        }
        // A release may be missing in the ledger because it could not be erased. Then another
        // client may have got the lock since, with a higher fence.
        again.sort_by_key(|(_, grant)| std::cmp::Reverse(grant.fence));
        for (place, grant) in again {
            if self.hold_again(grant.session, &grant.claim(), Some(place), out).is_none() {
                self.doom(grant.session);
                self.erase(place, out);
            }
        }
        for number in restored {
            self.end_if_idle(number, out);
        }
        // A grant without a session belongs to a session that ended.
        for (place, _) in grants.into_values().flatten() {
            self.erase(place, out);
        }
        if longest.is_zero() {
            out.push(Output::Serve);
        } else {
            self.former.awaited_until = Some(now.after(longest));
        }
    }

    fn restore_session(
        &mut self,
        now: Moment,
        place: u32,
        record: &SessionRecord,
        kind: Kind,
        out: &mut Vec<Output>,
    ) {
        let number = record.number;
        let new = NewSession {
            number,
            secret: record.secret,
            principal: Arc::new(self.known(record)),
            client: record.client.as_str().into(),
            ttl: Duration::from_millis(record.ttl_ms.into()),
            life: record.life,
            remote: record.remote,
            process: record.pid.map(|pid| ProcessId { pid, started: record.started }),
        };
        let mut session = Session::new(new, now);
        // A session without a limit lives as long as its process. If the record names no process,
        // the session gets a limit, because otherwise it would never end.
        if session.ttl == UNLIMITED && !session.is_endless() && session.process.is_none() {
            session.ttl = self.setup.limits.ttl;
        }
        session.holder = kind == Kind::Holder;
        session.place = Some(place);
        self.count_former(&session.principal);
        self.insert(session, out);
        if kind == Kind::Standing {
            self.stand(number);
        }
        self.look_after(number, out);
    }

    /// Ask the node to hold a lock again. None if the name cannot be used with this number of
    /// permits.
    fn hold_again(
        &mut self,
        number: u64,
        claim: &Claim,
        place: Option<u32>,
        out: &mut Vec<Output>,
    ) -> Option<(Name, Fence)> {
        let Claim { lock, mode, permits, fence, request } = claim.clone();
        let permits = permits.filter(|permits| *permits != self.configured(&lock));
        let name = self.enter(&lock, permits).ok()?;
        let ask = self.next_ask();
        let state = Progress::Reclaiming(fence, place);
        let held = (lock.clone(), fence);
        let numbers = 0;
        let asking =
            PendingAcquire { session: number, request, lock, mode, permits, numbers, state };
        self.asks.insert(ask, asking);
        // So that the session is not idle before the node has answered.
        if let Some(session) = self.open.get_mut(&number) {
            session.waiting.insert(request, ask);
        }
        out.push(Output::Reclaim { ask, session: number, name, mode, fence });
        Some(held)
    }

    /// Let a session hold again what its client claims, if the ledger may lack it. `named` says
    /// whether the client has named the node of its session.
    pub(super) fn reclaim(
        &mut self,
        number: u64,
        claims: &[Claim],
        (named, remote): (bool, bool),
        out: &mut Vec<Output>,
    ) -> BTreeSet<(Name, Fence)> {
        let awaited = self.former.waits_for.remove(&number);
        let believed = awaited || named && self.former.believes(number, remote);
        if !believed || self.former.awaited_until.is_none() {
            return BTreeSet::new();
        }
        let mut reclaimed = BTreeSet::new();
        for claim in claims {
            let Some(session) = self.open.get(&number) else { break };
            let may = session.grants.len() + session.waiting.len() < self.setup.limits.grants
                && allowed(&session.principal, Right::Acquire, &claim.lock).is_ok()
                // Another request has this number, and waits.
                && !session.waiting.contains_key(&claim.request)
                && session.find(&claim.lock, claim.fence).is_none()
                && !self.former.broken.contains(&(claim.lock.clone(), claim.fence));
            if may {
                reclaimed.extend(self.hold_again(number, claim, None, out));
            }
        }
        reclaimed
    }

    /// Serve as soon as all former holders are back, or their time is over.
    pub(super) fn serve_if_due(&mut self, now: Moment, out: &mut Vec<Output>) {
        let Some(until) = self.former.awaited_until else { return };
        if now >= until || self.former.waits_for.is_empty() && !self.former.lacking {
            self.former.awaited_until = None;
            self.former.waits_for.clear();
            self.former.broken.clear();
            self.former.lacking = false;
            out.push(Output::Serve);
        }
    }

    /// Mark the ledger as complete as soon as it is.
    pub(super) fn settle_ledger(&mut self, out: &mut Vec<Output>) {
        if self.former.unsettled && self.is_settled() {
            self.former.unsettled = false;
            out.push(Output::Settled);
        }
    }

    /// Whether the ledger has every grant, so that the next process need not believe the claims of
    /// clients.
    ///
    /// A claim that could not be written is held all the same. Until it has ended, the ledger is
    /// not complete.
    pub fn is_settled(&self) -> bool {
        let FormerProcess { lacking, waits_for, unsettled, .. } = &self.former;
        let claimed = |asking: &PendingAcquire| match asking.state {
            Progress::Reclaiming(_, place) => place.is_none(),
            Progress::Writing { tell, .. } => !tell,
            _ => false,
        };
        !unsettled
            || !lacking
                && waits_for.is_empty()
                && !self.asks.values().any(claimed)
                && self.unwritten().next().is_none()
    }

    /// The client that opened a session of the ledger.
    fn known(&self, record: &SessionRecord) -> Principal {
        let name = record.principal.clone();
        let rights = match record.uid {
            Some(_) => Rights::all(),
            None => rights_of(&self.setup.clients, &name),
        };
        Principal { name, uid: record.uid, rights }
    }
}

/// The rights of a client of another machine; none if the settings do not list the client any more.
pub(super) fn rights_of(clients: &[ClientSettings], principal: &str) -> Rights {
    let name = principal.strip_prefix("client ").unwrap_or(principal);
    let known = clients.iter().find(|known| known.name == name);
    known.map(|known| known.rights.clone()).unwrap_or_default()
}
