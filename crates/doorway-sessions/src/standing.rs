//! Leases that a client opens before it asks for locks, and that may hold several of them: those of
//! etcd clients.
//!
//! Such a lease lives until its time to live is over or its client revokes it, even while it holds
//! nothing, and also while a request of it waits: an etcd client sends heartbeats all the time. All
//! that the lease holds and waits for ends with it.
//!
//! The client knows its lease by a number, which is a part of the secret of the session. So the
//! ledger has the number, and a client finds its lease again after a crash of the node.

use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::{Ask, ClientInfo, Code, Fence, Life, Moment, Name, Refusal, Secret};

use super::event::{Answer, Connection, LeaseAnswer, LeaseOpening, LeaseTime, Output, StandingAsk};
use super::hello::describe;
use super::open::{End, NewSession};
use super::refusals::{refusal, stopping, withdrawn};
use super::{Sessions, Stage, same_client};
use crate::principal::Principal;

/// For how much longer than its time to live the node keeps such a lease. An etcd client counts the
/// time from when the answer to its heartbeat arrived, and looks at its clock twice a second. So it
/// may believe in its locks for a little longer than its time to live.
pub(super) const GRACE: Duration = Duration::from_secs(1);

/// How many bits the number of a lease has.
pub const LEASE_BITS: u32 = 47;

/// The number by which a client knows its lease. The other bits of the secret stay secret.
pub fn lease_number(secret: &Secret) -> u64 {
    (u128::from_be_bytes(secret.0) >> (u128::BITS - LEASE_BITS)) as u64
}

/// What a lease holds or waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingKey {
    /// The lock.
    pub lock: Name,
    /// The number of the request.
    pub request: u64,
    /// The fence, if the lock is held.
    pub fence: Option<Fence>,
}

impl Sessions {
    /// Open a lease.
    pub(super) fn open_standing(
        &mut self,
        now: Moment,
        principal: &Arc<Principal>,
        opening: LeaseOpening,
        out: &mut Vec<Output>,
    ) -> Result<LeaseTime, Refusal> {
        self.check_grants()?;
        self.check_member(now)?;
        let lease = lease_number(&opening.secret);
        if self.standing.contains_key(&lease) {
            let text = "the number of the lease is in use; ask again";
            return Err(refusal(Code::Unavailable, text));
        }
        let who = ClientInfo { label: opening.label, ..ClientInfo::default() };
        let session = self.next_session();
        let ttl = self.limited_lease(Duration::from_millis(opening.ttl_ms.into()));
        let new = NewSession {
            number: session,
            secret: opening.secret,
            principal: Arc::clone(principal),
            client: describe(&who, principal, self.setup.scope).into(),
            ttl,
            life: Life::Lease,
            remote: opening.remote,
            process: None,
        };
        self.open_session(now, new, out)?;
        self.stand(session);
        Ok(LeaseTime { session, ttl })
    }

    /// Let a session be a lease that lives while it holds nothing.
    pub(super) fn stand(&mut self, number: u64) {
        if let Some(session) = self.open.get_mut(&number) {
            session.standing = true;
            session.answered = None; // A request that is repeated finds its grant by the lock.
            self.standing.insert(lease_number(&session.secret), number);
        }
    }

    /// The session of a lease of this client.
    pub fn standing_session(&self, principal: &Principal, lease: u64) -> Option<u64> {
        let number = *self.standing.get(&lease)?;
        let session = self.open.get(&number)?;
        same_client(&session.principal, principal).then_some(number)
    }

    /// The number of the lease of a session; none if it is another kind of session.
    pub fn standing_lease(&self, session: u64) -> Option<u64> {
        let session = self.open.get(&session).filter(|session| session.standing)?;
        Some(lease_number(&session.secret))
    }

    /// The lease that holds a lock: its session, its number, and what it holds.
    pub fn standing_holder(&self, lock: &Name) -> Option<(u64, u64, StandingKey)> {
        let all = self.detached.range((lock.clone(), Fence::new(0, 0))..);
        let held = all.take_while(|((name, _), _)| name == lock);
        held.flat_map(|(_, numbers)| numbers).find_map(|number| {
            let session = self.open.get(number).filter(|session| session.standing)?;
            let key = self.standing_key(*number, lock).filter(|key| key.fence.is_some())?;
            Some((*number, lease_number(&session.secret), key))
        })
    }

    /// A lease has lost a lock. An etcd client hears of that only by its lease, so its next
    /// heartbeat fails. What else the lease holds is kept until its time to live is over, because
    /// the client may believe in it until then.
    pub(super) fn doom(&mut self, number: u64) {
        if let Some(session) = self.open.get_mut(&number) {
            session.doomed |= session.standing;
        }
    }

    /// The session of a lease of this client, or the reason why there is none.
    fn own_standing(&self, principal: &Principal, lease: u64) -> Result<u64, Refusal> {
        let number = self.standing_session(principal, lease);
        let lives = |number: &u64| self.open.get(number).is_some_and(|session| !session.doomed);
        number.filter(lives).ok_or_else(no_lease)
    }

    /// A client has sent a heartbeat for its lease.
    pub(super) fn keep_alive(
        &mut self,
        now: Moment,
        principal: &Principal,
        lease: u64,
    ) -> Result<LeaseTime, Refusal> {
        if self.stage == Stage::Stopped {
            return Err(stopping());
        }
        let number = self.own_standing(principal, lease)?;
        let Some(session) = self.open.get_mut(&number) else { return Err(no_lease()) };
        session.heard = now;
        Ok(LeaseTime { session: number, ttl: session.ttl })
    }

    /// Ask for a lock with a lease. If the lease has the lock already or waits for it, this is the
    /// same request, provided that it may join it.
    pub(super) fn acquire_with(
        &mut self,
        connection: Connection,
        principal: &Principal,
        asked: StandingAsk,
        out: &mut Vec<Output>,
    ) -> Result<(), Refusal> {
        let StandingAsk { lease, request, ask, joins, label } = asked;
        let number = self.own_standing(principal, lease)?;
        let Some(session) = self.open.get(&number) else { return Err(no_lease()) };
        let known = self.standing_key(number, &ask.lock);
        if known.is_some() && !joins {
            let text = format!("`{}` is not free: this lease has it already", ask.lock);
            return Err(refusal(Code::NotFree, text));
        }
        if let Some(StandingKey { fence: Some(fence), .. }) = known {
            let lease = LeaseAnswer { fence, session: number, ttl: session.ttl, renewed: true };
            out.push(Output::Answer(connection, Answer::Leased(lease)));
            return Ok(());
        }
        let request = known.map_or(request, |known| known.request);
        let idle = session.grants.is_empty() && session.place.is_none();
        if let Some(label) = label.filter(|_| idle) {
            let who = ClientInfo { label, ..ClientInfo::default() };
            let client: Arc<str> = describe(&who, principal, self.setup.scope).into();
            out.push(Output::Opened(number, Arc::clone(&client), None));
            self.open.get_mut(&number).into_iter().for_each(|it| it.client = Arc::clone(&client));
        }
        let Some(session) = self.open.get_mut(&number) else { return Err(no_lease()) };
        session.callers.insert(connection);
        self.leases.calls.insert(connection, (number, request));
        let Ask { lock, mode, permits, wait } = ask;
        self.acquire(number, request, Ask { lock, mode, permits, wait }, 0, out);
        Ok(())
    }

    /// What a lease has to do with a lock: it holds the lock, or waits for it.
    pub fn standing_key(&self, session: u64, lock: &Name) -> Option<StandingKey> {
        self.standing_keys(session).into_iter().find(|key| key.lock == *lock)
    }

    /// Everything that a lease holds and waits for.
    pub fn standing_keys(&self, session: u64) -> Vec<StandingKey> {
        let Some(session) = self.open.get(&session).filter(|it| it.standing) else {
            return Vec::new();
        };
        let held = session.grants.iter().map(|((lock, fence, _), grant)| StandingKey {
            lock: lock.clone(),
            request: grant.request,
            fence: Some(*fence),
        });
        let waits = session.waiting.iter().filter_map(|(request, ask)| {
            let lock = self.asks.get(ask)?.lock.clone();
            Some(StandingKey { lock, request: *request, fence: None })
        });
        held.chain(waits).collect()
    }

    /// How much of its time to live a lease has left, and the time to live itself.
    pub fn standing_time(&self, now: Moment, session: u64) -> Option<(Duration, Duration)> {
        let session = self.open.get(&session).filter(|session| session.standing)?;
        Some((session.heard.after(session.ttl).since(now), session.ttl))
    }

    /// Let a lease release a lock, or wait for it no longer. True if it held the lock or waited for
    /// it until now.
    pub(super) fn unlock_standing(
        &mut self,
        principal: &Principal,
        lease: u64,
        lock: &Name,
        request: Option<u64>,
        out: &mut Vec<Output>,
    ) -> bool {
        let Some(number) = self.standing_session(principal, lease) else { return false };
        let known = self.standing_key(number, lock);
        let same = |known: &StandingKey| request.is_none_or(|request| request == known.request);
        let Some(known) = known.filter(same) else { return false };
        // The result only says which of the two it was.
        let _ = self.withdraw(number, known.request, out);
        self.answer(number, known.request, Err(withdrawn()), out);
        true
    }

    /// End a lease, and everything that it holds and waits for.
    pub(super) fn revoke(
        &mut self,
        principal: &Principal,
        lease: u64,
        out: &mut Vec<Output>,
    ) -> bool {
        let Some(number) = self.standing_session(principal, lease) else { return false };
        self.end(number, End::Left, out);
        true
    }
}

fn no_lease() -> Refusal {
    refusal(Code::Gone, "there is no such lease; it has ended, or belongs to another client")
}
