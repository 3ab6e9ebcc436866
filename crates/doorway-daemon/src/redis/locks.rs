//! Commands about locks, translated for the service.
//!
//! A key is a lock, and its value tells who owns it: see `owner`. A lock that is acquired here is
//! held by a lease, as over HTTP, so it survives the connection and a crash of the node.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::{Ask, Code, Mode, Name, Wait};
use doorway_sessions::principal::{Principal, Right};
use doorway_sessions::{Answer, Call, LeaseAsk, LeaseKey, allowed};
use tokio::time::{sleep, timeout};

use super::command::{LockCommand, Parameters, SetCondition, lock, milliseconds, seconds};
use super::owner;
use super::redlock::{AcquiringGuard, CONFIRMING, Confirmation, OwnerKey, PAUSE, Redlock, Vote};
use super::resp::Reply;
use super::script::Shape;
use crate::members::audit::Operator;
use crate::service::{ASKING, OwnLease, Service, secret};

/// What became of a command: a reply, or an error, which is a reply, too.
type Outcome<T> = Result<T, Reply>;

/// The locks, as one client sees them in one database.
pub(super) struct Locks<'a> {
    pub(super) service: &'a Service,
    pub(super) principal: Arc<Principal>,
    /// Whether the client may be on another machine.
    pub(super) remote: bool,
    /// Its address, if it came over TCP.
    pub(super) from: Option<IpAddr>,
    pub(super) database: u32,
    /// Whether the leases of other nodes count, and how they do.
    pub(super) redlock: Option<&'a Arc<Redlock>>,
}

/// How the owner of a value has a lock.
enum OwnLock {
    /// By a lease of this node.
    Here(OwnLease),
    /// By a lease of another node, of which this node has said OK.
    Elsewhere(Vote),
}

/// A lock that has been acquired by a call that goes on.
enum AcquiredLock {
    /// By a lease of this node, which no other node counts before the call has ended.
    Here(#[expect(dead_code, reason = "it acts when it is dropped")] Option<AcquiringGuard>),
    Elsewhere,
}

impl Locks<'_> {
    /// Carry out a command.
    pub(super) async fn answer(&self, command: LockCommand) -> Outcome<Reply> {
        match command {
            LockCommand::Set { key, value, ttl, when } => {
                self.set(&self.lock(&key)?, &value, ttl, when).await
            }
            LockCommand::Get(key) => self.get(&self.lock(&key)?).await,
            LockCommand::Exists(keys) => {
                let mut count = 0;
                for key in &keys {
                    let held = self.service.holding(&self.principal, &self.lock(key)?).await;
                    count += i64::from(held?.is_some());
                }
                Ok(Reply::Integer(count))
            }
            LockCommand::Ttl(key) => {
                let left = self.left_ms(&self.lock(&key)?).await?;
                // As Redis does it, to the nearest second.
                Ok(Reply::Integer(if left < 0 { left } else { (left + 500) / 1000 }))
            }
            LockCommand::Pttl(key) => Ok(Reply::Integer(self.left_ms(&self.lock(&key)?).await?)),
            LockCommand::Expire(key, ttl) => {
                let lock = self.lock(&key)?;
                Ok(flag(self.expire(&lock, ttl).await?))
            }
            LockCommand::Delete(keys) => self.delete(&keys).await,
            LockCommand::DeleteIfOwner(key, value) => {
                Ok(flag(self.release(&self.lock(&key)?, &value).await?))
            }
            LockCommand::Fence(key, value) => self.fence(&self.lock(&key)?, value.as_deref()).await,
        }
    }

    /// Carry out a script.
    pub(super) async fn run(&self, shape: Shape, parameters: &Parameters) -> Outcome<Reply> {
        let Parameters { keys, arguments } = parameters;
        let locks: BTreeSet<Name> =
            keys.iter().map(|key| self.lock(key)).collect::<Outcome<_>>()?;
        let [value, more @ ..] = arguments.as_slice() else {
            return Err(Reply::error("this script needs the value of the owner as an argument"));
        };
        let ttl = || match more.first() {
            Some(time) if shape == Shape::SetTtlSeconds => seconds(time).map_err(Reply::error),
            Some(time) => milliseconds(time).map_err(Reply::error),
            None => Err(Reply::error("this script needs a time to live as its second argument")),
        };
        let every = i64::try_from(keys.len()).unwrap_or(i64::MAX);
        match shape {
            Shape::AcquireAll => {
                let all = self.acquire_all(&locks, value, ttl()?).await?;
                return Ok(Reply::Integer(if all { every } else { 0 }));
            }
            Shape::ExtendAll => {
                let all = self.renew_all(&locks, value, ttl()?).await?;
                return Ok(Reply::Integer(if all { every } else { 0 }));
            }
            Shape::ReleaseAll => {
                let mut count = 0;
                for lock in &locks {
                    count += i64::from(self.release(lock, value).await?);
                }
                return Ok(Reply::Integer(count));
            }
            _ => {}
        }
        let Some(lock) = locks.first().filter(|_| keys.len() == 1) else {
            let text = format!("this script is for one key, and {} were given", keys.len());
            return Err(Reply::error(text));
        };
        match shape {
            Shape::Release => Ok(flag(self.release(lock, value).await?)),
            Shape::ReleaseOrAbsent => {
                if self.release(lock, value).await? {
                    return Ok(Reply::Integer(1));
                }
                // A client that may not look, or cannot know, is told the same as of another owner.
                let held = self.service.holding(&self.principal, lock).await;
                Ok(Reply::Integer(if matches!(held, Ok(None)) { -1 } else { 0 }))
            }
            Shape::SetTtl | Shape::SetTtlSeconds => {
                Ok(flag(self.renew(lock, value, ttl()?).await?))
            }
            Shape::SetTtlOrAcquire => {
                let ttl = ttl()?;
                let renewed = self.renew(lock, value, ttl).await?;
                Ok(flag(renewed || self.acquire(lock, value, ttl).await?.is_some()))
            }
            Shape::AddTtl => {
                let own = self.own_lease(lock, value).await?;
                let left = Duration::from_millis(own.map_or(0, |own| own.left_ms));
                let adds = more.get(1).is_some_and(|how| how == b"0");
                let ttl = ttl()?.saturating_add(if adds { left } else { Duration::ZERO });
                Ok(flag(self.renew(lock, value, ttl).await?))
            }
            Shape::Ttl => {
                let own = self.own_lease(lock, value).await?;
                Ok(Reply::Integer(own.map_or(0, |own| integer(own.left_ms))))
            }
            Shape::AcquireAll | Shape::ExtendAll | Shape::ReleaseAll => Ok(Reply::Integer(0)),
        }
    }

    fn lock(&self, key: &[u8]) -> Outcome<Name> {
        lock(self.database, key).map_err(Reply::error)
    }

    fn owner(&self, lock: &Name, value: &[u8]) -> OwnerKey {
        OwnerKey {
            client: self.principal.name.clone(),
            lock: lock.clone(),
            owner: owner::key(value),
        }
    }

    /// How the owner of this value has a lock, if it has.
    fn own(&self, lock: &Name, value: &[u8]) -> Option<OwnLock> {
        let here = self.service.own_lease(&self.principal, lock, &owner::key(value));
        let elsewhere = || self.redlock?.vote(&self.owner(lock, value));
        here.map(OwnLock::Here).or_else(|| elsewhere().map(OwnLock::Elsewhere))
    }

    /// The lease by which the owner of this value holds a lock, here or elsewhere.
    async fn own_lease(&self, lock: &Name, value: &[u8]) -> Outcome<Option<OwnLease>> {
        match (self.own(lock, value), self.redlock) {
            (Some(OwnLock::Here(own)), _) => Ok(Some(own)),
            (Some(OwnLock::Elsewhere(vote)), Some(redlock)) => {
                let owner = self.owner(lock, value);
                let own = redlock.look(&self.principal, &owner, &vote).await;
                own.ok_or_else(|| silent(&vote))
            }
            _ => Ok(None),
        }
    }

    async fn set(
        &self,
        lock: &Name,
        value: &[u8],
        ttl: Duration,
        when: SetCondition,
    ) -> Outcome<Reply> {
        allowed(&self.principal, Right::Acquire, lock)?;
        if when != SetCondition::Free && self.renew(lock, value, ttl).await? {
            return Ok(Reply::OK);
        }
        if when != SetCondition::Owned && self.acquire(lock, value, ttl).await?.is_some() {
            return Ok(Reply::OK);
        }
        let held = when == SetCondition::FreeOrOwned
            || when == SetCondition::Owned && self.service.is_held(lock).await?;
        if held {
            let text = format!(
                "`{lock}` is held with another value, and SET without NX would take it from its \
                 holder: write SET key value NX PX milliseconds"
            );
            return Err(Reply::error(text));
        }
        Ok(Reply::Null)
    }

    /// Acquire a lock if it is free, or if another node confirms that the owner of this value has
    /// it there.
    async fn acquire(
        &self,
        lock: &Name,
        value: &[u8],
        ttl: Duration,
    ) -> Outcome<Option<AcquiredLock>> {
        self.check_ttl(ttl)?;
        let acquired = self.acquire_here(lock, value, ttl).await?;
        let (None, Some(redlock)) = (&acquired, self.redlock) else { return Ok(acquired) };
        let owner = self.owner(lock, value);
        let confirming = async {
            loop {
                match redlock.confirm(&self.principal, &owner, ttl).await {
                    Confirmation::Held => return Ok(Some(AcquiredLock::Elsewhere)),
                    Confirmation::No => return Ok(None),
                    // If that fails, the lock may be free.
                    Confirmation::Acquiring => sleep(PAUSE).await,
                }
                let acquired = self.acquire_here(lock, value, ttl).await?;
                if acquired.is_some() {
                    return Ok(acquired);
                }
            }
        };
        timeout(CONFIRMING, confirming).await.unwrap_or(Ok(None))
    }

    /// Acquire a lock by a lease of this node if it is free.
    async fn acquire_here(
        &self,
        lock: &Name,
        value: &[u8],
        ttl: Duration,
    ) -> Outcome<Option<AcquiredLock>> {
        // It is dropped after the call, which may end a lease when it is dropped.
        let guard = self.redlock.map(|redlock| redlock.acquiring(self.owner(lock, value)));
        let ask = Ask { lock: lock.clone(), mode: Mode::Exclusive, permits: None, wait: Wait::No };
        let lease = LeaseAsk {
            ask,
            key: Some(LeaseKey::Owner(owner::key(value))),
            unattended: false,
            ttl_ms: Some(u32::try_from(ttl.as_millis()).unwrap_or(u32::MAX)),
            label: owner::description(value),
            remote: self.remote,
            secret: secret(),
        };
        let mut calling = self.service.call(&self.principal, Call::Acquire(Box::new(lease)));
        match calling.answer_within(ASKING).await {
            Answer::Leased(lease) if lease.ttl < ttl => {
                self.release(lock, value).await?;
                Err(shorter(lease.ttl))
            }
            Answer::Leased(_) => {
                if let Some(redlock) = self.redlock {
                    redlock.begin(&self.owner(lock, value));
                }
                Ok(Some(AcquiredLock::Here(guard)))
            }
            Answer::Refused(refusal) => {
                let refusal = self.service.explained(lock, refusal).await;
                if refusal.code == Code::NotFree { Ok(None) } else { Err(refusal.into()) }
            }
            _ => Err(unexpected()),
        }
    }

    /// Let the lease of the owner of this value end after this time. False if it has none.
    async fn renew(&self, lock: &Name, value: &[u8], ttl: Duration) -> Outcome<bool> {
        match (self.own(lock, value), self.redlock) {
            (Some(OwnLock::Elsewhere(vote)), Some(redlock)) => {
                self.check_ttl(ttl)?;
                let owner = self.owner(lock, value);
                let extended = redlock.extend(&self.principal, &owner, vote.clone(), ttl).await;
                extended.ok_or_else(|| silent(&vote))
            }
            (Some(OwnLock::Here(own)), _) => self.renew_here(lock, Some(own), ttl).await,
            _ => self.renew_here(lock, None, ttl).await,
        }
    }

    /// Let a lease by which a Redis client of this name holds a lock end after this time, whatever
    /// its value is. False if there is none. Leases of other doors are not for this command: those
    /// of Terraform and of `doorway run --once-per` are meant to last.
    async fn expire(&self, lock: &Name, ttl: Duration) -> Outcome<bool> {
        let leases = self.service.own_leases(&self.principal, lock);
        let by_redis = |lease: &&(OwnLease, String)| owner::is_description(&lease.1);
        match leases.iter().find(by_redis) {
            Some((own, _)) => self.renew_here(lock, Some(*own), ttl).await,
            None if leases.is_empty() => self.renew_here(lock, None, ttl).await,
            None => Err(Reply::error(format!(
                "`{lock}` is held by this client with a lease that was not acquired by a Redis \
                 client, so EXPIRE and PEXPIRE do not change its time to live: renew it where it \
                 was acquired"
            ))),
        }
    }

    /// Let a lease of this node end after this time. False if it has ended already.
    async fn renew_here(&self, lock: &Name, own: Option<OwnLease>, ttl: Duration) -> Outcome<bool> {
        self.check_ttl(ttl)?;
        let Some(OwnLease { fence, .. }) = own else { return Ok(false) };
        let call = Call::Renew(lock.clone(), fence, Some(ttl));
        match self.service.call(&self.principal, call).answer().await {
            Answer::Leased(lease) if lease.ttl < ttl => Err(shorter(lease.ttl)),
            Answer::Leased(_) => Ok(true),
            Answer::Refused(refusal) if refusal.code == Code::Gone => Ok(false),
            Answer::Refused(refusal) => Err(refusal.into()),
            _ => Err(unexpected()),
        }
    }

    /// Release a lock that the owner of this value holds. True if it was held until now.
    async fn release(&self, lock: &Name, value: &[u8]) -> Outcome<bool> {
        let owner = self.owner(lock, value);
        let answer = match (self.own(lock, value), self.redlock) {
            (Some(OwnLock::Elsewhere(vote)), Some(redlock)) => {
                let released = redlock.release_vote(&self.principal, &owner, &vote).await;
                return released.ok_or_else(|| silent(&vote));
            }
            (_, Some(redlock)) => redlock.release(&self.principal, &owner).await,
            (_, None) => {
                let call = Call::Withdraw(owner.lock, owner.owner);
                self.service.call(&self.principal, call).answer().await
            }
        };
        match answer {
            Answer::Withdrawn(released) => Ok(released),
            Answer::Refused(refusal) => Err(refusal.into()),
            _ => Err(unexpected()),
        }
    }

    /// Acquire all these locks, or none. They are acquired in the order of their names, so that of
    /// two clients that want the same locks one gets them.
    async fn acquire_all(
        &self,
        locks: &BTreeSet<Name>,
        value: &[u8],
        ttl: Duration,
    ) -> Outcome<bool> {
        let mut acquired = AcquiredLocks { locks: self, value, held: Vec::new() };
        for lock in locks {
            let Some(acquired_lock) = self.acquire(lock, value, ttl).await? else {
                return Ok(false);
            };
            acquired.held.push((lock.clone(), acquired_lock));
        }
        // The first leases began before the last lock was acquired.
        if acquired.held.len() > 1 && !self.renew_all(locks, value, ttl).await? {
            return Ok(false);
        }
        acquired.held.clear();
        Ok(true)
    }

    /// Let the leases of all these locks end after this time, if the owner of this value holds them
    /// all.
    async fn renew_all(
        &self,
        locks: &BTreeSet<Name>,
        value: &[u8],
        ttl: Duration,
    ) -> Outcome<bool> {
        if locks.iter().any(|lock| self.own(lock, value).is_none()) {
            return Ok(false);
        }
        for lock in locks {
            if !self.renew(lock, value, ttl).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Take locks from their owners, which needs the right to break them.
    async fn delete(&self, keys: &[Vec<u8>]) -> Outcome<Reply> {
        let operator = Operator { principal: Arc::clone(&self.principal), from: self.from };
        let mut count = 0;
        for key in keys {
            let lock = self.lock(key)?;
            let held = self.service.holding(&self.principal, &lock).await?;
            let Some(held) = held else { continue };
            match self.service.break_for(&operator, &lock, held.holder.fence).await {
                Ok(()) => count += 1,
                Err(refusal) if refusal.code == Code::Gone => {}
                Err(refusal) if refusal.code == Code::Forbidden => {
                    let text = format!(
                        "NOPERM DEL takes a lock from its holder, and {}: release it by its \
                         value, with DELIFEQ key value or the script of your lock client, or give \
                         the client the right \"break\"",
                        refusal.text
                    );
                    return Err(Reply::Error(text));
                }
                Err(refusal) => return Err(refusal.into()),
            }
        }
        Ok(Reply::Integer(count))
    }

    async fn get(&self, lock: &Name) -> Outcome<Reply> {
        let held = self.service.holding(&self.principal, lock).await?;
        Ok(held.map_or(Reply::Null, |held| {
            let value = owner::value(&held.holder.client);
            Reply::Bulk(value.unwrap_or_else(|| format!("doorway:{}", held.holder.fence).into()))
        }))
    }

    async fn fence(&self, lock: &Name, value: Option<&[u8]>) -> Outcome<Reply> {
        let fence = if let Some(value) = value {
            self.own_lease(lock, value).await?.map(|own| own.fence)
        } else {
            let held = self.service.holding(&self.principal, lock).await?;
            held.map(|held| held.holder.fence)
        };
        // A text, because some clients round integers above 2^53.
        Ok(fence.map_or(Reply::Null, |fence| Reply::bulk(fence.to_string())))
    }

    /// How much longer the lease of a lock lasts, in milliseconds; as in Redis, -1 if it does not
    /// end, and `ABSENT` if nobody holds the lock.
    async fn left_ms(&self, lock: &Name) -> Outcome<i64> {
        let held = self.service.holding(&self.principal, lock).await?;
        Ok(held.map_or(ABSENT, |held| held.left_ms.map_or(-1, integer)))
    }

    /// Refuse a lease that is longer than the node allows. It must not be shortened instead,
    /// because the client would not learn it.
    fn check_ttl(&self, ttl: Duration) -> Outcome<()> {
        let most = self.service.longest_ttl();
        if ttl <= most {
            return Ok(());
        }
        Err(Reply::error(format!(
            "a time to live of {} ms is more than the {} ms that this node allows (`ttl` under \
             [limits]): ask for less, and extend the lock in time",
            ttl.as_millis(),
            most.as_millis()
        )))
    }
}

/// What Redis answers instead of a time to live if there is no such key.
const ABSENT: i64 = -2;

/// Locks that are held while others are being acquired. They are released if that fails, or if the
/// client disconnects meanwhile.
struct AcquiredLocks<'a> {
    locks: &'a Locks<'a>,
    value: &'a [u8],
    held: Vec<(Name, AcquiredLock)>,
}

impl Drop for AcquiredLocks<'_> {
    fn drop(&mut self) {
        let Self { locks, value, held } = self;
        for (lock, acquired) in held.drain(..) {
            if let (AcquiredLock::Elsewhere, Some(redlock)) = (&acquired, locks.redlock) {
                redlock.forget_vote(&locks.owner(&lock, value));
                continue;
            }
            let call = Call::Withdraw(lock, owner::key(value));
            // Nobody waits for the answer.
            drop(locks.service.call(&locks.principal, call));
        }
    }
}

fn flag(done: bool) -> Reply {
    Reply::Integer(done.into())
}

fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The node promises less time than the client asks for: a limit was lowered, or the lease of the
/// node itself.
fn shorter(ttl: Duration) -> Reply {
    let ms = ttl.as_millis();
    Reply::error(format!("the node promises {ms} ms at most at the moment: ask for no more"))
}

/// The node with the lease does not answer.
fn silent(vote: &Vote) -> Reply {
    let text =
        format!("TRYAGAIN the node {} has the lease of this lock, and does not answer", vote.node);
    Reply::Error(text)
}

/// An answer that does not fit its call, which never comes.
fn unexpected() -> Reply {
    Reply::error("the node gave an answer that does not fit the request")
}
