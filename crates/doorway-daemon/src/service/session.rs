//! A session: on whose behalf locks are held and waited for, and until when.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use doorway_node::OwnedGuard;
use doorway_protocol::{Fence, Life, Name, Refusal, Secret, SessionId};
use hashbrown::HashTable;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::outbox::Outbox;
use super::permits::visible;
use super::process::Process;
use super::shares::Share;
use crate::clock::Moment;
use crate::principal::Principal;

/// A session of a client.
pub struct Session {
    pub(crate) number: u64,
    pub(crate) secret: Secret,
    pub(crate) principal: Principal,
    /// What the client says of itself, for people.
    pub(crate) client: Arc<str>,
    /// How long it lives without being heard of, in milliseconds; a lease may get another time.
    ttl_ms: AtomicU32,
    pub(crate) life: Life,
    /// It came from another machine, so the end of its connection means nothing yet.
    pub(crate) remote: bool,
    /// The process that it lives with, or that opened its connection.
    pub(crate) pid: Option<u32>,
    /// That process, where its end must be seen: each needs a descriptor.
    pub(crate) process: Option<Process>,
    /// When that was started, if it lives with it.
    pub(crate) started: Option<u64>,
    /// That process has been seen to be gone.
    pub(crate) orphan: AtomicBool,
    heard: AtomicU64,
    state: Mutex<State>,
}

/// What changes while a session lives.
#[derive(Default)]
pub(crate) struct State {
    /// It has ended: nothing may be added any more.
    pub(crate) over: bool,
    pub(crate) grants: Grants,
    /// Requests that wait, by their numbers.
    pub(crate) waiting: BTreeMap<u64, Waiting>,
    /// Requests may come again, so it is kept which of them was granted what.
    pub(crate) answered: Option<BTreeMap<u64, (Name, Fence)>>,
    /// Where its client is told what happens.
    pub(crate) outbox: Option<Arc<Outbox>>,
    /// Its place in the ledger, once it has held anything.
    pub(crate) written: Option<u32>,
    /// The places of its grants in the ledger, where those are written too.
    pub(crate) written_grants: BTreeMap<(Name, Fence), u32>,
    /// Its part of what all sessions share.
    pub(crate) shares: [Option<Share>; 2],
    /// What waits for the end of its process.
    pub(crate) watcher: Option<AbortHandle>,
}

/// A request that waits.
pub(crate) struct Waiting {
    pub(crate) task: AbortHandle,
    /// Who wants to know besides the session's connection.
    pub(crate) told: Vec<oneshot::Sender<Result<Fence, Refusal>>>,
    /// Its client's part of what all who wait share.
    pub(crate) _shares: [Option<Share>; 2],
}

/// A lock that the session holds.
pub(crate) struct Grant {
    pub(crate) guard: OwnedGuard,
    /// The request to which it was the answer.
    pub(crate) request: u64,
}

impl Grant {
    /// The lock, as clients know it.
    pub(crate) fn lock(&self) -> &str {
        visible(self.guard.handle().name())
    }

    pub(crate) fn fence(&self) -> Fence {
        self.guard.fence()
    }
}

/// The grants of a session, by lock and fence: fences repeat from lock to lock, and a lock that is
/// shared may be held several times.
#[derive(Default)]
pub(crate) struct Grants(HashTable<Grant>);

impl Grants {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Grant> {
        self.0.iter()
    }

    pub(crate) fn insert(&mut self, hasher: &RandomState, grant: Grant) {
        let hash = |grant: &Grant| hash_of(hasher, grant.lock(), grant.fence());
        self.0.insert_unique(hash(&grant), grant, hash);
    }

    pub(crate) fn contains(&self, hasher: &RandomState, lock: &str, fence: Fence) -> bool {
        self.0.find(hash_of(hasher, lock, fence), fits(lock, fence)).is_some()
    }

    pub(crate) fn remove(
        &mut self,
        hasher: &RandomState,
        lock: &str,
        fence: Fence,
    ) -> Option<Grant> {
        let hash = hash_of(hasher, lock, fence);
        let (grant, _) = self.0.find_entry(hash, fits(lock, fence)).ok()?.remove();
        // What a burst of grants needed is given back.
        if self.0.capacity() > 256 && self.0.len() * 8 < self.0.capacity() {
            let rehash = |grant: &Grant| hash_of(hasher, grant.lock(), grant.fence());
            self.0.shrink_to(self.0.len() * 2, rehash);
        }
        Some(grant)
    }

    /// Take those out that do not fit.
    pub(crate) fn extract(&mut self, leave: impl Fn(&Grant) -> bool) -> Vec<Grant> {
        self.0.extract_if(|grant| !leave(grant)).collect()
    }

    pub(crate) fn into_vec(self) -> Vec<Grant> {
        self.0.into_iter().collect()
    }
}

fn hash_of(hasher: &RandomState, lock: &str, fence: Fence) -> u64 {
    hasher.hash_one((lock, fence))
}

fn fits(lock: &str, fence: Fence) -> impl Fn(&Grant) -> bool {
    move |grant| grant.fence() == fence && grant.lock() == lock
}

/// How a session begins.
pub(crate) struct Begin {
    pub(crate) number: u64,
    pub(crate) secret: Secret,
    pub(crate) principal: Principal,
    pub(crate) client: Arc<str>,
    pub(crate) ttl: Duration,
    pub(crate) life: Life,
    pub(crate) remote: bool,
    pub(crate) pid: Option<u32>,
    pub(crate) process: Option<Process>,
    pub(crate) started: Option<u64>,
}

impl Session {
    pub(crate) fn new(begin: Begin) -> Self {
        let Begin { number, secret, principal, client, ttl, life, .. } = begin;
        let Begin { remote, pid, process, started, .. } = begin;
        // A lease has no connection, so those who use it may ask twice whenever they like.
        let answered = (life == Life::Lease).then(BTreeMap::new);
        Self {
            number,
            secret,
            principal,
            client,
            ttl_ms: AtomicU32::new(ttl.as_millis() as u32),
            life,
            remote,
            pid,
            process,
            started,
            orphan: AtomicBool::new(false),
            heard: AtomicU64::new(Moment::now().0),
            state: Mutex::new(State { answered, ..State::default() }),
        }
    }

    /// Its number.
    pub fn id(&self) -> SessionId {
        SessionId(self.number)
    }

    /// What proves that it is someone's.
    pub fn secret(&self) -> Secret {
        self.secret
    }

    /// How long it lives without being heard of.
    pub fn ttl(&self) -> Duration {
        Duration::from_millis(self.ttl_ms.load(Ordering::Relaxed).into())
    }

    pub(crate) fn set_ttl(&self, ttl: Duration) {
        self.ttl_ms.store(ttl.as_millis() as u32, Ordering::Relaxed);
    }

    /// With what it ends.
    pub fn life(&self) -> Life {
        self.life
    }

    /// Who opened it.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// What the client says of itself.
    pub fn client(&self) -> &str {
        &self.client
    }

    /// Does it live without a connection?
    pub fn is_loose(&self) -> bool {
        !matches!(self.life, Life::Connection { .. })
    }

    /// Has it ended?
    pub fn is_over(&self) -> bool {
        self.state().over
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    #[cfg(test)]
    pub(crate) fn is_locked(&self) -> bool {
        self.state.is_locked()
    }

    /// Something came from its client.
    pub(crate) fn heard(&self, now: Moment) {
        self.heard.store(now.0, Ordering::Relaxed);
    }

    /// When it ends if nothing more is heard; never if it lives with a process.
    pub(crate) fn deadline(&self) -> Option<Moment> {
        let heard = Moment(self.heard.load(Ordering::Relaxed));
        (!matches!(self.life, Life::Process { .. })).then(|| heard.after(self.ttl()))
    }

    /// The process that opened its connection is gone, or may be, as far as can be seen; others may
    /// have the connection.
    pub(crate) fn is_orphan(&self) -> bool {
        let gone = || self.process.as_ref().is_none_or(Process::is_gone);
        let orphan = self.orphan.load(Ordering::Relaxed) || gone();
        self.orphan.store(orphan, Ordering::Relaxed);
        orphan
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("number", &self.number)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}
