//! Clients over HTTP and of the Redis protocol, whose locks outlive their connections: every
//! request for a lock has a lease of its own.
//!
//! A client may give its request a key, the `request_id`, and repeat the request with it. The
//! repeated request finds the lease of the first one, also after a crash: the number of the request
//! in its lease is computed from the key, and the ledger has that number.
//!
//! A client of the Redis protocol names the owner of a lease instead. The lease is found by its
//! owner in the same way, but a second request of the owner never joins the first one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::fnv::fnv1a;
use doorway_protocol::{Ask, ClientInfo, Code, Fence, Life, Moment, Name, Refusal, Window};

use super::event::{Answer, Call, Connection, LeaseAnswer, LeaseAsk, LeaseKey, Output};
use super::hello::{SHORTEST, describe};
use super::open::NewSession;
use super::promise::not_covered;
use super::refusals::{gone, refusal};
use super::rewrite::SessionChange;
use super::session::{Session, UNLIMITED};
use super::{Sessions, allowed, same_client};
use crate::principal::{Principal, Right};

/// How long a request is remembered after its lease has ended.
const REMEMBERED: Duration = Duration::from_secs(10);

/// How many requests whose lease has ended are remembered at most.
const ENDED: usize = 10_000;

/// The client of a request, and its `request_id`.
pub(super) type Key = (String, String);

/// The requests with a lease.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Leases {
    known: BTreeMap<Key, KnownRequest>,
    /// The calls that wait for an answer, each with its session and the number of its request.
    pub(super) calls: BTreeMap<Connection, (u64, u64)>,
}

/// A request that may be repeated.
#[derive(Clone, Debug, Hash)]
struct KnownRequest {
    session: u64,
    /// What was asked for. A repeated request may wait for another time.
    ask: Ask,
    withdrawn: bool,
    ended: LeaseEnd,
}

/// Whether the lease of a request has ended, after it was granted or withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum LeaseEnd {
    No,
    /// The next tick notes the moment.
    JustNow,
    Since(Moment),
}

impl Sessions {
    pub(super) fn call(
        &mut self,
        now: Moment,
        connection: Connection,
        principal: &Arc<Principal>,
        call: Call,
        out: &mut Vec<Output>,
    ) {
        let answer = match call {
            Call::Acquire(ask) => match self.lease(now, connection, principal, *ask, out) {
                Ok(()) => return,
                Err(answer) => answer,
            },
            Call::Renew(lock, fence, ttl) => {
                match self.renew_lease(now, connection, principal, &lock, fence, ttl, out) {
                    Ok(Some(lease)) => Answer::Leased(lease),
                    Ok(None) => return,
                    Err(refusal) => Answer::Refused(refusal),
                }
            }
            Call::Release(lock, fence) => {
                Answer::Released(self.release(principal, None, &lock, fence, out))
            }
            Call::Break(lock, fence) => {
                Answer::Broken(self.break_lock(principal, &lock, fence, out))
            }
            Call::Withdraw(lock, id) => {
                Answer::Withdrawn(self.withdraw_key(principal, &lock, id, out))
            }
            Call::Open(opening) => match self.open_standing(now, principal, *opening, out) {
                Ok(lease) => Answer::Alive(lease),
                Err(refusal) => Answer::Refused(refusal),
            },
            Call::AcquireWith(ask) => match self.acquire_with(connection, principal, *ask, out) {
                Ok(()) => return,
                Err(refusal) => Answer::Refused(refusal),
            },
            Call::KeepAlive(lease) => match self.keep_alive(now, principal, lease) {
                Ok(lease) => Answer::Alive(lease),
                Err(refusal) => Answer::Refused(refusal),
            },
            Call::Unlock(lease, lock, request) => {
                Answer::Withdrawn(self.unlock_standing(principal, lease, &lock, request, out))
            }
            Call::Revoke(lease) => Answer::Released(self.revoke(principal, lease, out)),
        };
        out.push(Output::Answer(connection, answer));
    }

    /// Renew a lease, with another time to live if one is given. None if the ledger must know that
    /// first: after a crash the next process waits for as long as the ledger says.
    #[expect(clippy::too_many_arguments, reason = "a call and what it asks for")]
    fn renew_lease(
        &mut self,
        now: Moment,
        connection: Connection,
        principal: &Principal,
        lock: &Name,
        fence: Fence,
        ttl: Option<Duration>,
        out: &mut Vec<Output>,
    ) -> Result<Option<LeaseAnswer>, Refusal> {
        allowed(principal, Right::Acquire, lock)?;
        let number = self.renew(now, principal, lock, fence)?;
        let Some(session) = self.open.get(&number) else { return Err(gone()) };
        if session.is_endless() && ttl.is_some() {
            // The group or the disk could not be sure to learn of it before the node ends.
            let text = format!(
                "`{lock}` is held without end, and stays so: release it, and acquire it with a \
                 time to live"
            );
            return Err(refusal(Code::Invalid, text));
        }
        if let Some((name, window)) = Window::of(lock).filter(|_| ttl.is_some()) {
            // If its lease were shorter, the window could be granted twice.
            let text = format!(
                "`{lock}` is a window of `doorway run --once-per {}` of `{name}`, and its time to \
                 live does not change",
                window.shown_period()
            );
            return Err(refusal(Code::Invalid, text));
        }
        if let Some(ttl) = ttl.filter(|_| session.life == Life::Lease) {
            let ttl = self.limited_lease(ttl);
            if self.extend(number, connection, lock, fence, ttl, out) {
                return Ok(None);
            }
            let Some(session) = self.open.get_mut(&number) else { return Err(gone()) };
            let before = std::mem::replace(&mut session.ttl, ttl);
            let change = SessionChange::Ttl { call: connection, fence, before };
            if self.rewrite(number, change, out) {
                return Ok(None);
            }
        }
        let ttl = self.open.get(&number).map(|session| session.ttl).unwrap_or_default();
        Ok(Some(LeaseAnswer { fence, session: number, ttl, renewed: true }))
    }

    /// Ask for a lock with a lease, or join the request that this one repeats.
    fn lease(
        &mut self,
        now: Moment,
        connection: Connection,
        principal: &Arc<Principal>,
        lease: LeaseAsk,
        out: &mut Vec<Output>,
    ) -> Result<(), Answer> {
        let lock = &lease.ask.lock;
        let of = |id: &String| (principal.name.clone(), id.clone());
        let (key, request, session) = match &lease.key {
            None => (None, 1, None),
            Some(LeaseKey::Request(id)) => {
                let key = of(id);
                let request = number(&key, lock);
                let session = self.repeated(principal, &key, &lease.ask, request)?;
                (Some(key), request, session)
            }
            Some(LeaseKey::Owner(id)) => {
                let request = number(&of(id), lock);
                if self.held_lease(principal, lock, request).is_some() {
                    let text = format!("`{lock}` is not free: this owner holds it already");
                    return Err(Answer::Refused(refusal(Code::NotFree, text)));
                }
                (None, request, None)
            }
        };
        let session = match session {
            Some(session) => session,
            None => self.open_lease(now, principal, &lease, key, out).map_err(Answer::Refused)?,
        };
        let Some(open) = self.open.get_mut(&session) else { return Err(Answer::Refused(gone())) };
        open.heard = now;
        open.callers.insert(connection);
        self.leases.calls.insert(connection, (session, request));
        let waits = open.waiting.contains_key(&request);
        let patient = lease.ask.wait != doorway_protocol::Wait::No;
        if waits && !patient {
            self.call_timed_out(now, connection, out);
        } else {
            self.acquire(session, request, lease.ask, 0, out);
        }
        Ok(())
    }

    /// The session of the request that this one repeats.
    fn repeated(
        &mut self,
        principal: &Principal,
        key: &Key,
        ask: &Ask,
        request: u64,
    ) -> Result<Option<u64>, Answer> {
        let id = &key.1;
        if let Some(known) = self.leases.known.get(key) {
            let Ask { lock, mode, permits, .. } = &known.ask;
            if (lock, mode, permits) != (&ask.lock, &ask.mode, &ask.permits) {
                let text = format!(
                    "the request_id {id:?} was used for a different request; choose another one"
                );
                return Err(Answer::Different(refusal(Code::Invalid, text)));
            }
            let what = match (known.withdrawn, known.ended) {
                (true, _) => "withdrawn",
                (false, LeaseEnd::No) => return Ok(Some(known.session)),
                (false, _) => "granted, and that grant has ended",
            };
            let text = format!("the request {id:?} was {what}; choose another request_id");
            return Err(Answer::Refused(refusal(Code::Gone, text)));
        }
        let Some((session, fence)) = self.held_lease(principal, &ask.lock, request) else {
            return Ok(None);
        };
        if let Some(open) = self.open.get_mut(&session) {
            open.key = Some(key.clone());
            let answered = open.answered.get_or_insert_default();
            answered.insert(request, (ask.lock.clone(), fence));
        }
        let known =
            KnownRequest { session, ask: ask.clone(), withdrawn: false, ended: LeaseEnd::No };
        self.leases.known.insert(key.clone(), known);
        Ok(Some(session))
    }

    /// The lease by which this owner holds a lock, if it has one: its session and its fence. The
    /// owner is the one of [`LeaseKey::Owner`].
    pub fn owned_lease(
        &self,
        principal: &Principal,
        lock: &Name,
        owner: &str,
    ) -> Option<(u64, Fence)> {
        let request = number(&(principal.name.clone(), owner.to_owned()), lock);
        self.held_lease(principal, lock, request)
    }

    /// The lease that this request of this client holds, perhaps from the former process: its
    /// session and its fence.
    fn held_lease(&self, principal: &Principal, lock: &Name, request: u64) -> Option<(u64, Fence)> {
        self.client_leases(principal, lock).find(|(number, fence)| {
            self.open.get(number).is_some_and(|session| {
                session.grants.iter().any(|((name, its, _), grant)| {
                    (name, its) == (lock, fence) && grant.request == request
                })
            })
        })
    }

    /// The leases by which this client holds a lock: their sessions and their fences.
    pub fn client_leases(
        &self,
        principal: &Principal,
        lock: &Name,
    ) -> impl Iterator<Item = (u64, Fence)> {
        let all = self.detached.range((lock.clone(), Fence::new(0, 0))..);
        let held = all.take_while(move |((name, _), _)| name == lock);
        let all = held.flat_map(|((_, fence), numbers)| numbers.iter().map(|it| (*it, *fence)));
        all.filter(move |(number, _)| {
            self.open.get(number).is_some_and(|session| {
                session.life == Life::Lease && same_client(&session.principal, principal)
            })
        })
    }

    fn open_lease(
        &mut self,
        now: Moment,
        principal: &Arc<Principal>,
        lease: &LeaseAsk,
        key: Option<Key>,
        out: &mut Vec<Output>,
    ) -> Result<u64, Refusal> {
        self.check_grants()?;
        self.check_member(now)?;
        let who = ClientInfo { label: lease.label.clone(), ..ClientInfo::default() };
        let number = self.next_session();
        let asked = lease.ttl_ms.map(|ttl| Duration::from_millis(ttl.into()));
        let ttl = match asked {
            Some(asked) if lease.unattended => {
                // A window cannot be held for longer than it lasts, so no setting limits it.
                let window = Window::of(&lease.ask.lock).map(|(_, window)| window.longest_hold());
                let most = window.unwrap_or(self.setup.limits.terraform_ttl);
                asked.clamp(SHORTEST, most.max(SHORTEST))
            }
            Some(asked) => self.limited_lease(asked),
            None => self.check_endless().map(|()| UNLIMITED)?,
        };
        let new = NewSession {
            number,
            secret: lease.secret,
            principal: Arc::clone(principal),
            client: describe(&who, principal, self.setup.scope).into(),
            ttl,
            life: Life::Lease,
            remote: lease.remote,
            process: None,
        };
        self.open_session(now, new, out)?;
        if let Some(open) = self.open.get_mut(&number) {
            open.key.clone_from(&key);
        }
        if let Some(key) = key {
            let known = &mut self.leases.known;
            if known.len() >= self.setup.limits.sessions + ENDED {
                known.retain(|_, known| known.ended == LeaseEnd::No);
            }
            let ask = lease.ask.clone();
            known.insert(
                key,
                KnownRequest { session: number, ask, withdrawn: false, ended: LeaseEnd::No },
            );
        }
        Ok(number)
    }

    /// A client that calls does not want to wait any longer. Its request keeps its place if it can
    /// be repeated.
    pub(super) fn call_timed_out(
        &mut self,
        now: Moment,
        connection: Connection,
        out: &mut Vec<Output>,
    ) {
        if self.forget_withheld(now, connection, out) {
            return out.push(Output::Answer(connection, Answer::Refused(not_covered())));
        }
        let Some((number, request)) = self.leases.calls.remove(&connection) else { return };
        let Some(session) = self.open.get_mut(&number) else { return };
        session.callers.remove(&connection);
        if !session.standing {
            session.heard = now;
        }
        let Some(ask) = session.waiting.get(&request).copied() else { return };
        let Some(lock) = self.asks.get(&ask).map(|asking| asking.lock.clone()) else { return };
        let text = if session.key.is_some() {
            format!(
                "`{lock}` was not free in time; the request keeps its place for {} ms: ask again \
                 with the same request_id, or withdraw it",
                session.told_ttl().as_millis()
            )
        } else {
            self.abandon(ask, out);
            self.end_if_idle(number, out);
            format!("`{lock}` was not free in time")
        };
        out.push(Output::Answer(connection, Answer::Refused(refusal(Code::NotFree, text))));
    }

    /// A client that calls has gone away. A request that cannot be repeated is withdrawn: nobody
    /// could find it again.
    pub(super) fn caller_left(
        &mut self,
        now: Moment,
        connection: Connection,
        out: &mut Vec<Output>,
    ) {
        let Some((number, request)) = self.leases.calls.remove(&connection) else { return };
        let Some(session) = self.open.get_mut(&number) else { return };
        session.callers.remove(&connection);
        if !session.standing {
            session.heard = now;
        }
        let calls = &self.leases.calls;
        let others = session.callers.iter().any(|it| calls.get(it) == Some(&(number, request)));
        if session.key.is_none() && !others {
            let _ = self.withdraw(number, request, out);
            self.end_if_idle(number, out);
        }
    }

    /// End the request with this key, or the lease of this owner. True if it was waiting or held
    /// the lock until now.
    fn withdraw_key(
        &mut self,
        principal: &Principal,
        lock: &Name,
        id: String,
        out: &mut Vec<Output>,
    ) -> bool {
        let key = (principal.name.clone(), id);
        let request = number(&key, lock);
        let known = self.leases.known.get_mut(&key).filter(|known| known.ask.lock == *lock);
        let session = match known {
            Some(known) => {
                known.withdrawn = true;
                Some(known.session)
            }
            None => self.held_lease(principal, lock, request).map(|(session, _)| session),
        };
        let Some(number) = session else { return false };
        let waits = self.open.get(&number).is_some_and(|it| it.waiting.contains_key(&request));
        let held = self.withdraw(number, request, out).is_ok();
        self.end_withdrawn(number, out);
        waits || held
    }

    /// Answer the calls of a request that was withdrawn, and end its session.
    fn end_withdrawn(&mut self, number: u64, out: &mut Vec<Output>) {
        if let Some(session) = self.open.get_mut(&number) {
            for caller in std::mem::take(&mut session.callers) {
                self.leases.calls.remove(&caller);
                let refusal = super::refusals::withdrawn();
                out.push(Output::Answer(caller, Answer::Refused(refusal)));
            }
        }
        self.end_if_idle(number, out);
    }

    /// A session has ended. If it was a lease, its calls are answered, and its request is
    /// remembered for a while if it was granted or withdrawn.
    pub(super) fn lease_ended(&mut self, session: &Session, out: &mut Vec<Output>) {
        for caller in &session.callers {
            self.leases.calls.remove(caller);
            out.push(Output::Answer(*caller, Answer::Refused(gone())));
        }
        let Some(key) = &session.key else { return };
        let Some(known) = self.leases.known.get_mut(key) else { return };
        if known.session != session.number {
            return;
        }
        let request = number(key, &known.ask.lock);
        let granted =
            session.answered.as_ref().is_some_and(|answered| answered.contains_key(&request));
        if granted || known.withdrawn {
            known.ended = LeaseEnd::JustNow;
        } else {
            self.leases.known.remove(key);
        }
    }

    /// Forget requests whose lease ended some time ago.
    pub(super) fn forget_leases(&mut self, now: Moment) {
        self.leases.known.retain(|_, known| match known.ended {
            LeaseEnd::No => true,
            LeaseEnd::JustNow => {
                known.ended = LeaseEnd::Since(now);
                true
            }
            LeaseEnd::Since(moment) => now.since(moment) < REMEMBERED,
        });
    }
}

/// The number of a request in its lease: a hash of client, lock and `request_id`, which is the
/// same in every process. A client cannot reach the requests of another one by its choice of a
/// `request_id`, because a lease belongs to its client.
fn number((principal, id): &Key, lock: &Name) -> u64 {
    let parts = [principal.as_bytes(), &[0xff], lock.as_str().as_bytes(), &[0xff], id.as_bytes()];
    fnv1a(parts.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_request_is_the_same_in_every_version() {
        let key = ("user 7".to_owned(), "one".to_owned());
        assert_eq!(
            number(&key, &Name::new("deploy").unwrap()),
            0x259d_bdad_c546_d47c,
            "ledgers have it"
        );
    }
}
