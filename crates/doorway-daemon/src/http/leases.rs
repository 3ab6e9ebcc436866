//! Requests by their `request_id`, so that a repeated request finds the lease of the first one.
//!
//! Every request has a lease of its own. Its number in that lease is computed from its
//! `request_id`, so a repeated request finds its lease even after a crash: the ledger holds that
//! number.

use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::http::StatusCode;
use doorway_protocol::{Ask, ClientInfo, Code, Life, Mode, Name, Refusal, Wait};
use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::time::sleep;

use super::gate::Caller;
use super::problem::{Kind, Problem};
use super::schemas::AcquireRequest;
use crate::clock::Moment;
use crate::service::{Peer, Service, Session, Standing};

/// How long a request is remembered after its lease has ended.
const REMEMBERED: Duration = Duration::from_secs(10);

/// How often requests whose lease has ended are looked for.
const LOOK: Duration = Duration::from_secs(2);

/// How many requests whose lease has ended are remembered at most.
const ENDED: usize = 10_000;

/// The client of a request, and its `request_id`.
type Key = (String, String);

/// All requests that have a `request_id`.
pub(crate) struct Leases {
    service: Service,
    known: Mutex<HashMap<Key, RememberedRequest, std::hash::RandomState>>,
}

/// A request that may be repeated.
struct RememberedRequest {
    made: Arc<LeaseRequest>,
    /// Its client has withdrawn it.
    withdrawn: bool,
    /// When its lease was found to have ended.
    ended: Option<Moment>,
}

/// A request with its lease.
pub(crate) struct LeaseRequest {
    pub(crate) session: Arc<Session>,
    /// Its number in that session.
    pub(crate) number: u64,
    pub(crate) lock: Name,
    mode: Mode,
    permits: Option<u32>,
    key: Option<Key>,
}

impl LeaseRequest {
    /// The request as the service understands it.
    pub(crate) fn ask(&self, wait: Wait) -> Ask {
        Ask { lock: self.lock.clone(), mode: self.mode, permits: self.permits, wait }
    }

    /// Whether the request may be repeated: it has a `request_id`.
    pub(crate) fn may_come_again(&self) -> bool {
        self.key.is_some()
    }

    /// The state of the request.
    pub(crate) fn standing(&self) -> Standing {
        Service::standing(&self.session, self.number)
    }

    /// Whether the request is in the queue.
    pub(crate) fn is_waiting(&self) -> bool {
        self.standing() == Standing::Waiting
    }

    fn is_same(&self, lock: &Name, body: &AcquireRequest) -> bool {
        self.lock == *lock && self.mode == mode(body) && self.permits == body.permits
    }
}

impl Leases {
    pub(crate) fn new(service: &Service) -> Arc<Self> {
        let leases = Arc::new(Self { service: service.clone(), known: Mutex::default() });
        tokio::spawn(forget(Arc::downgrade(&leases)));
        leases
    }

    /// Find the request that this one repeats, or make a new one with a lease.
    pub(crate) fn request(
        &self,
        caller: &Caller,
        lock: &Name,
        body: &AcquireRequest,
    ) -> Result<Arc<LeaseRequest>, Problem> {
        let Some(id) = &body.request_id else {
            return Ok(Arc::new(self.make(caller, lock, body, None)?));
        };
        check_id(id)?;
        let key = (caller.principal.name.clone(), id.clone());
        let mut known = self.known.lock();
        if let Some(before) = known.get(&key) {
            let made = &before.made;
            if !made.is_same(lock, body) {
                let text = format!(
                    "the request_id {id:?} was used for a different request; choose another one"
                );
                return Err(Problem::invalid(text).with(StatusCode::UNPROCESSABLE_ENTITY));
            }
            let granted = Service::was_granted(&made.session, made.number);
            if self.service.alive(&made.session).is_ok() && !before.withdrawn {
                return Ok(Arc::clone(made));
            }
            if before.withdrawn || granted.is_some() {
                let what = if before.withdrawn {
                    "withdrawn"
                } else {
                    "granted, and that grant has ended"
                };
                let text = format!("the request {id:?} was {what}; choose another request_id");
                return Err(Problem::new(Kind::Gone, text));
            }
        }
        let most = self.service.limits().sessions + ENDED;
        if known.len() >= most {
            known.retain(|_, known| !known.made.session.is_over());
        }
        let made = match self.service.lease_of(&caller.principal, lock, number(&key, lock)) {
            Some(session) => Arc::new(LeaseRequest {
                session,
                number: number(&key, lock),
                lock: lock.clone(),
                mode: mode(body),
                permits: body.permits,
                key: Some(key.clone()),
            }),
            None => Arc::new(self.make(caller, lock, body, Some(key.clone()))?),
        };
        known.insert(
            key,
            RememberedRequest { made: Arc::clone(&made), withdrawn: false, ended: None },
        );
        Ok(made)
    }

    fn make(
        &self,
        caller: &Caller,
        lock: &Name,
        body: &AcquireRequest,
        key: Option<Key>,
    ) -> Result<LeaseRequest, Refusal> {
        let mut peer = Peer { principal: None, process: None, remote: caller.remote };
        let who = ClientInfo { label: body.label.clone(), ..ClientInfo::default() };
        let session =
            self.service.open(&mut peer, &caller.principal, &who, body.ttl_ms, Life::Lease)?;
        let number = key.as_ref().map_or(1, |key| number(key, lock));
        let (lock, mode, permits) = (lock.clone(), mode(body), body.permits);
        Ok(LeaseRequest { session, number, lock, mode, permits, key })
    }

    /// End the lease of a request that was refused, unless it waits or holds something after all.
    pub(crate) fn drop_idle(&self, made: &LeaseRequest) {
        self.service.0.end_if_idle(&made.session);
        let Some(key) = &made.key else { return };
        let mut known = self.known.lock();
        let same = |known: &RememberedRequest| Arc::ptr_eq(&known.made.session, &made.session);
        let granted = Service::was_granted(&made.session, made.number).is_some();
        if known.get(key).is_some_and(same) && made.session.is_over() && !granted {
            known.remove(key);
        }
    }

    /// End a request, whatever its state. True if it was still waiting or held the lock.
    pub(crate) fn withdraw(&self, made: &LeaseRequest) -> bool {
        let waits = made.is_waiting();
        let held = self.service.withdraw(&made.session, made.number).is_ok();
        self.service.0.end_if_idle(&made.session);
        waits || held
    }

    /// End the request with this `request_id`. True if it was still waiting or held the lock.
    pub(crate) fn withdraw_id(
        &self,
        caller: &Caller,
        lock: &Name,
        id: &str,
    ) -> Result<bool, Problem> {
        check_id(id)?;
        let key = (caller.principal.name.clone(), id.to_owned());
        let made = {
            let mut known = self.known.lock();
            let known = known.get_mut(&key).filter(|known| known.made.lock == *lock);
            known.map(|known| {
                known.withdrawn = true;
                Arc::clone(&known.made)
            })
        };
        if let Some(made) = made {
            return Ok(self.withdraw(&made));
        }
        let number = number(&key, lock);
        let session = self.service.lease_of(&caller.principal, lock, number);
        Ok(session.is_some_and(|session| {
            let held = self.service.withdraw(&session, number).is_ok();
            self.service.0.end_if_idle(&session);
            held
        }))
    }

    fn look(&self) {
        let now = Moment::now();
        self.known.lock().retain(|_, known| {
            if known.made.session.is_over() {
                let ended = *known.ended.get_or_insert(now);
                return now.since(ended) < REMEMBERED;
            }
            true
        });
    }
}

/// Forget ended requests from time to time, for as long as the service lives.
async fn forget(leases: Weak<Leases>) {
    loop {
        sleep(LOOK).await;
        let Some(leases) = leases.upgrade() else { return };
        leases.look();
    }
}

/// Whether the lease of a request ended before it was granted anything, so that a new lease may
/// help.
pub(crate) fn ended_unused(made: &LeaseRequest, refusal: &Refusal) -> bool {
    refusal.code == Code::Gone
        && made.session.is_over()
        && Service::was_granted(&made.session, made.number).is_none()
}

fn mode(body: &AcquireRequest) -> Mode {
    if body.shared { Mode::Shared } else { Mode::Exclusive }
}

fn check_id(id: &str) -> Result<(), Problem> {
    if (1..=200).contains(&id.chars().count()) {
        return Ok(());
    }
    Err(Problem::invalid("a request_id has 1 to 200 characters"))
}

/// The number of a request in its lease: an FNV-1a of client, lock and `request_id`, which is the
/// same in every process. A client cannot reach the requests of another one by its choice of a
/// `request_id`, because a lease belongs to its client.
fn number((principal, id): &Key, lock: &Name) -> u64 {
    let parts = [principal.as_bytes(), &[0xff], lock.as_str().as_bytes(), &[0xff], id.as_bytes()];
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    parts.concat().iter().fold(0xcbf2_9ce4_8422_2325, step)
}
