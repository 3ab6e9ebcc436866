//! Redlock over the nodes of a group: a client asks several nodes for one lock with one value, and
//! has the lock if most of them say OK.
//!
//! One node has the lease. Another node says OK, too, if the node with the lease confirms within
//! the call that this client holds the lock with this value. That is a *vote*. Two rules keep a
//! vote true until the time to live that the client has asked for is over:
//!
//! - A lease is confirmed only when its own acquisition is complete: until then it may be undone,
//!   because its client disconnects or another key of the call is not free.
//! - With the vote the lease is extended to the time to live of this call. An earlier attempt of
//!   the client may have begun the lease.
//!
//! A vote is what the key would be in an independent Redis. It has a time to live, is extended and
//! released by its value, and keeps the node from saying OK again for this grant. If the client
//! releases the lock at all nodes, the first of them ends the lease. The node that had the lease
//! remembers that for a while, so that the other nodes can say that they have released it, too.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use doorway_node::members::BoxedFuture;
use doorway_protocol::{Fence, Name};
use doorway_sessions::principal::Principal;
use doorway_sessions::{Answer, Call};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::service::{CallDoor, OwnLease, PassedClient, Service};
use crate::task::boxed;

/// How long other members may take to confirm a lease, to extend it or to release it.
pub(super) const CONFIRMING: Duration = Duration::from_secs(1);

/// The pause before members are asked again that are just acquiring the lock.
pub(super) const PAUSE: Duration = Duration::from_millis(10);

/// How long a node remembers that a lease of its own was released.
const REMEMBERED: Duration = Duration::from_secs(10);

/// A client, a lock, and the key of the value by which the client holds the lock.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OwnerKey {
    pub(super) client: String,
    pub(super) lock: Name,
    pub(super) owner: String,
}

/// The lease of another node, of which this node has said OK.
#[derive(Clone, Debug)]
pub(super) struct Vote {
    pub(super) node: String,
    pub(super) fence: Fence,
    until: Instant,
}

/// A lease of this node, of which other nodes have said OK.
struct ConfirmedLease {
    principal: Arc<Principal>,
    fence: Fence,
    released: Option<Instant>,
    /// The nodes that have said OK, of which this one is the first, and have not released it.
    voters: Vec<String>,
}

impl ConfirmedLease {
    /// Strike a node off the voters. True if it was one of them.
    fn strike(&mut self, node: &str) -> bool {
        let voter = self.voters.iter().position(|voter| voter == node);
        voter.map(|voter| self.voters.swap_remove(voter)).is_some()
    }
}

/// What this node knows about leases that count at several nodes.
#[derive(Default)]
struct Table {
    /// How many calls of each owner are acquiring a lock at this node.
    acquiring: BTreeMap<OwnerKey, usize>,
    votes: BTreeMap<OwnerKey, Vote>,
    confirmed: BTreeMap<OwnerKey, ConfirmedLease>,
    /// At these numbers of votes and of confirmed leases, those that have ended are removed.
    full: (usize, usize),
}

/// What a node wants of the node with a lease.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RedlockCall {
    /// Does this owner hold the lock? Then its lease is to last for this time at least. A grant of
    /// which the node has said OK before does not count.
    Confirm { ttl_ms: u64, voted: Option<Fence> },
    /// Let the lease end after this time.
    Extend { fence: Fence, ttl_ms: u64 },
    /// How much longer does the lease last?
    Look { fence: Fence },
    /// End the lease.
    Release { fence: Fence },
}

/// The answer to a [`RedlockCall`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RedlockReply {
    /// The owner holds the lock.
    Held { fence: Fence, left_ms: u64 },
    /// The owner held the lock, and the client of the asking node has released it.
    Released,
    /// The owner is acquiring the lock at this moment: ask again.
    Acquiring,
    /// The owner does not hold the lock here.
    No,
}

/// A call as it is passed on.
#[derive(Debug, Serialize, Deserialize)]
struct PassedCall {
    #[serde(flatten)]
    client: PassedClient,
    /// The node that asks.
    from: String,
    lock: Name,
    owner: String,
    call: RedlockCall,
}

/// What the other members say about an owner.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Confirmation {
    /// One of them has its lease, and this node has a vote now.
    Held,
    /// One of them is acquiring the lock.
    Acquiring,
    /// None of those that answer has it.
    No,
}

/// The part of a node in Redlock.
pub(super) struct Redlock {
    service: Service,
    table: Mutex<Table>,
}

impl Redlock {
    pub(super) fn new(service: &Service) -> Arc<Self> {
        let redlock = Arc::new(Self { service: service.clone(), table: Mutex::default() });
        // Not an `Arc`: the service is in it, and would keep itself alive.
        let here = Arc::downgrade(&redlock);
        let carry_out = Arc::new(move |text| answer(here.upgrade(), text));
        service.carry_out_by(CallDoor::Redis, carry_out);
        redlock
    }

    /// Count a call that is acquiring a lock at this node, until the guard is dropped. Until then a
    /// lease that it gets is not confirmed.
    pub(super) fn acquiring(self: &Arc<Self>, owner: OwnerKey) -> AcquiringGuard {
        *self.table.lock().acquiring.entry(owner.clone()).or_default() += 1;
        AcquiringGuard { redlock: Arc::clone(self), owner }
    }

    /// The vote for this owner, if its time to live is not over.
    pub(super) fn vote(&self, owner: &OwnerKey) -> Option<Vote> {
        let vote = self.table.lock().votes.get(owner).cloned();
        vote.filter(|vote| vote.until > Instant::now())
    }

    /// Forget the vote for this owner, if there is one.
    pub(super) fn forget_vote(&self, owner: &OwnerKey) {
        self.table.lock().votes.remove(owner);
    }

    /// A new lease of this owner has begun at this node, so what this node has said about earlier
    /// ones counts no longer.
    pub(super) fn begin(&self, owner: &OwnerKey) {
        let mut table = self.table.lock();
        table.votes.remove(owner);
        if let Some(confirmed) = table.confirmed.get_mut(owner) {
            confirmed.strike(self.service.node().name());
        }
    }

    /// Ask the other members whether this owner holds the lock at one of them.
    pub(super) async fn confirm(
        &self,
        principal: &Principal,
        owner: &OwnerKey,
        ttl: Duration,
    ) -> Confirmation {
        let node = self.service.node();
        let away = node.away();
        let mut members = node.members();
        members.retain(|name| name != node.name() && !away.iter().any(|(it, _)| it == name));
        let voted = self.vote(owner).map(|vote| vote.fence);
        let call = RedlockCall::Confirm { ttl_ms: milliseconds(ttl), voted };
        let mut asked = JoinSet::new();
        for member in members {
            let passed = self.passed(principal, owner, call.clone());
            let service = self.service.clone();
            asked.spawn(boxed(async move {
                let reply = pass_on(&service, &member, &passed).await;
                (member, reply)
            }));
        }
        let mut seen = Confirmation::No;
        while let Some(reply) = asked.join_next().await {
            match reply {
                Ok((node, Some(RedlockReply::Held { fence, .. }))) => {
                    let vote = Vote { node, fence, until: Instant::now() + ttl };
                    self.keep_vote(owner.clone(), vote);
                    return Confirmation::Held;
                }
                Ok((_, Some(RedlockReply::Acquiring))) => seen = Confirmation::Acquiring,
                _ => {}
            }
        }
        seen
    }

    fn keep_vote(&self, owner: OwnerKey, vote: Vote) {
        let mut table = self.table.lock();
        if table.votes.len() >= table.full.0 {
            let now = Instant::now();
            table.votes.retain(|_, vote| vote.until > now);
            table.full.0 = (2 * table.votes.len()).max(256);
        }
        table.votes.insert(owner, vote);
    }

    /// Extend the lease behind a vote. False if the owner holds it no longer; `None` if its node
    /// does not answer.
    pub(super) async fn extend(
        &self,
        principal: &Principal,
        owner: &OwnerKey,
        vote: Vote,
        ttl: Duration,
    ) -> Option<bool> {
        let call = RedlockCall::Extend { fence: vote.fence, ttl_ms: milliseconds(ttl) };
        let reply = self.ask(principal, owner, &vote.node, call).await?;
        let held = matches!(reply, RedlockReply::Held { .. });
        if held {
            self.keep_vote(owner.clone(), Vote { until: Instant::now() + ttl, ..vote });
        } else {
            self.forget_vote(owner);
        }
        Some(held)
    }

    /// The lease behind a vote, if the owner still holds it; `None` if its node does not answer.
    pub(super) async fn look(
        &self,
        principal: &Principal,
        owner: &OwnerKey,
        vote: &Vote,
    ) -> Option<Option<OwnLease>> {
        let call = RedlockCall::Look { fence: vote.fence };
        Some(match self.ask(principal, owner, &vote.node, call).await? {
            RedlockReply::Held { fence, left_ms } => Some(OwnLease { fence, left_ms }),
            _ => None,
        })
    }

    /// End the lease behind a vote, and the vote. False if the owner has lost it; `None` if its
    /// node does not answer.
    pub(super) async fn release_vote(
        &self,
        principal: &Principal,
        owner: &OwnerKey,
        vote: &Vote,
    ) -> Option<bool> {
        let call = RedlockCall::Release { fence: vote.fence };
        let reply = self.ask(principal, owner, &vote.node, call).await?;
        self.forget_vote(owner);
        Some(reply == RedlockReply::Released)
    }

    async fn ask(
        &self,
        principal: &Principal,
        owner: &OwnerKey,
        node: &str,
        call: RedlockCall,
    ) -> Option<RedlockReply> {
        let passed = self.passed(principal, owner, call);
        timeout(CONFIRMING, pass_on(&self.service, node, &passed)).await.ok().flatten()
    }

    fn passed(&self, principal: &Principal, owner: &OwnerKey, call: RedlockCall) -> PassedCall {
        let OwnerKey { lock, owner, .. } = owner.clone();
        let client = PassedClient::new(&self.service, principal);
        let from = self.service.node().name().to_owned();
        PassedCall { client, from, lock, owner, call }
    }

    /// The lease of an owner at this node, by which a node that asks may count it.
    fn own(&self, principal: &Principal, owner: &OwnerKey) -> Option<OwnLease> {
        self.service.own_lease(principal, &owner.lock, &owner.owner)
    }

    /// Carry out a call that another member has passed on.
    async fn carry_out(&self, passed: PassedCall) -> RedlockReply {
        let PassedCall { client, from, lock, owner, call } = passed;
        let principal = client.principal();
        let owner = OwnerKey { client: principal.name.clone(), lock, owner };
        let (fence, ttl_ms) = match call {
            RedlockCall::Confirm { ttl_ms, voted } => {
                let lease = match self.count_voter(&principal, &owner, &from, voted) {
                    Ok(lease) => lease,
                    Err(reply) => return reply,
                };
                (lease.fence, Some(ttl_ms).filter(|ttl_ms| lease.left_ms < *ttl_ms))
            }
            RedlockCall::Extend { fence, ttl_ms } => (fence, Some(ttl_ms)),
            RedlockCall::Look { fence } => (fence, None),
            RedlockCall::Release { fence } => {
                return self.release_for(&principal, &owner, &from, fence).await;
            }
        };
        if let Some(ttl_ms) = ttl_ms {
            let ttl = Duration::from_millis(ttl_ms);
            let renew = Call::Renew(owner.lock.clone(), fence, Some(ttl));
            match self.service.call(&principal, renew).answer().await {
                Answer::Leased(lease) if lease.ttl >= ttl => {}
                _ => return RedlockReply::No,
            }
        }
        match self.own(&principal, &owner) {
            Some(OwnLease { fence: held, left_ms }) if held == fence => {
                RedlockReply::Held { fence, left_ms }
            }
            _ => RedlockReply::No,
        }
    }

    /// Note that another node is about to say OK for a lease of this node, and return this lease.
    fn count_voter(
        &self,
        principal: &Arc<Principal>,
        owner: &OwnerKey,
        from: &str,
        voted: Option<Fence>,
    ) -> Result<OwnLease, RedlockReply> {
        let mut table = self.table.lock();
        if table.acquiring.contains_key(owner) {
            return Err(RedlockReply::Acquiring);
        }
        let lease = self.own(principal, owner).filter(|lease| Some(lease.fence) != voted);
        let lease = lease.ok_or(RedlockReply::No)?;
        if table.confirmed.len() >= table.full.1 {
            table.confirmed.retain(|owner, confirmed| {
                let own = self.own(&confirmed.principal, owner);
                let holds = own.is_some_and(|own| own.fence == confirmed.fence);
                let released = confirmed.released.map(|released| released.elapsed());
                released.map_or(holds, |elapsed| elapsed < REMEMBERED)
            });
            table.full.1 = (2 * table.confirmed.len()).max(256);
        }
        let fresh = || ConfirmedLease {
            principal: Arc::clone(principal),
            fence: lease.fence,
            released: None,
            voters: vec![self.service.node().name().to_owned()],
        };
        let confirmed = table.confirmed.entry(owner.clone()).or_insert_with(fresh);
        if confirmed.fence != lease.fence {
            *confirmed = fresh();
        }
        if !confirmed.voters.iter().any(|voter| voter == from) {
            confirmed.voters.push(from.to_owned());
        }
        Ok(lease)
    }

    /// Release a lease of this node. The answer is also true if another node has released it, and
    /// this node has not said so.
    pub(super) async fn release(&self, principal: &Arc<Principal>, owner: &OwnerKey) -> Answer {
        let answer = self.end(principal, owner).await;
        let strike = || self.strike(owner, self.service.node().name(), None);
        match answer {
            Answer::Withdrawn(released) => Answer::Withdrawn(strike() || released),
            refused => refused,
        }
    }

    /// End a lease of this node, and note that its owner wants that.
    async fn end(&self, principal: &Arc<Principal>, owner: &OwnerKey) -> Answer {
        let mut calling = {
            // No voter is counted between the look at the lease and its end.
            let mut table = self.table.lock();
            let held = self.own(principal, owner);
            let withdraw = Call::Withdraw(owner.lock.clone(), owner.owner.clone());
            let calling = self.service.call(principal, withdraw);
            if let Some((confirmed, held)) = table.confirmed.get_mut(owner).zip(held)
                && confirmed.fence == held.fence
            {
                confirmed.released = Some(Instant::now());
            }
            calling
        };
        calling.answer().await
    }

    /// Whether a lease of this node was released, and the node `voter` has said OK of it and has
    /// not said that it is released. If a fence is given, it is the one of the lease.
    fn strike(&self, owner: &OwnerKey, voter: &str, fence: Option<Fence>) -> bool {
        let mut table = self.table.lock();
        let Some(confirmed) = table.confirmed.get_mut(owner) else { return false };
        if confirmed.released.is_none() || fence.is_some_and(|fence| confirmed.fence != fence) {
            return false;
        }
        let struck = confirmed.strike(voter);
        if confirmed.voters.is_empty() {
            table.confirmed.remove(owner);
        }
        struck
    }

    /// Release the lease with this fence for a client of another node.
    async fn release_for(
        &self,
        principal: &Arc<Principal>,
        owner: &OwnerKey,
        from: &str,
        fence: Fence,
    ) -> RedlockReply {
        if self.own(principal, owner).is_some_and(|own| own.fence == fence)
            && !matches!(self.end(principal, owner).await, Answer::Withdrawn(_))
        {
            return RedlockReply::No;
        }
        let struck = self.strike(owner, from, Some(fence));
        if struck { RedlockReply::Released } else { RedlockReply::No }
    }
}

/// A call that is acquiring a lock at this node.
pub(super) struct AcquiringGuard {
    redlock: Arc<Redlock>,
    owner: OwnerKey,
}

impl Drop for AcquiringGuard {
    fn drop(&mut self) {
        let mut table = self.redlock.table.lock();
        if let Some(calls) = table.acquiring.get_mut(&self.owner) {
            *calls -= 1;
            if *calls == 0 {
                table.acquiring.remove(&self.owner);
            }
        }
    }
}

/// Pass a call on to another member; none if it does not answer, or has another version.
async fn pass_on(service: &Service, node: &str, call: &PassedCall) -> Option<RedlockReply> {
    let text = serde_json::to_string(call).ok()?;
    let answer = service.pass_on(node, CallDoor::Redis, &call.client, text).await.ok()?;
    serde_json::from_str(&answer).ok()
}

/// Answer a call that another member has passed on.
fn answer(redlock: Option<Arc<Redlock>>, text: String) -> BoxedFuture<'static, String> {
    Box::pin(async move {
        let reply = match (serde_json::from_str::<PassedCall>(&text), redlock) {
            (Ok(call), Some(redlock)) => redlock.carry_out(call).await,
            _ => RedlockReply::No,
        };
        serde_json::to_string(&reply).unwrap_or_default()
    })
}

fn milliseconds(time: Duration) -> u64 {
    doorway_sessions::clock::ms(time)
}

#[cfg(test)]
mod tests {
    use doorway_protocol::{Ask, Mode, Wait};
    use doorway_sessions::{LeaseAsk, LeaseKey};

    use super::*;
    use crate::service::secret;
    use crate::settings::{Overrides, Settings};

    const TTL: Duration = Duration::from_secs(30);

    async fn redlock() -> Arc<Redlock> {
        let file = std::path::Path::new("/nowhere/doorway.toml");
        let settings = Settings::parse("", file, &Overrides::default());
        let mut settings = settings.unwrap_or_else(|mistakes| panic!("{mistakes}"));
        settings.node.data = None;
        Redlock::new(&Service::start(&settings, None).await.unwrap())
    }

    fn principal() -> Arc<Principal> {
        let rights = doorway_sessions::principal::Rights::all();
        Arc::new(Principal { name: "client all".to_owned(), uid: None, rights })
    }

    fn owner() -> OwnerKey {
        let lock = Name::new("k").unwrap();
        OwnerKey { client: principal().name.clone(), lock, owner: "mine".to_owned() }
    }

    /// Acquire the lock with a lease of this node.
    async fn acquire(redlock: &Redlock, ttl: Duration) -> Fence {
        let OwnerKey { lock, owner, .. } = owner();
        let ask = Ask { lock, mode: Mode::Exclusive, permits: None, wait: Wait::No };
        let lease = LeaseAsk {
            ask,
            key: Some(LeaseKey::Owner(owner)),
            unattended: false,
            ttl_ms: Some(u32::try_from(ttl.as_millis()).unwrap()),
            label: String::new(),
            remote: true,
            secret: secret(),
        };
        let mut calling = redlock.service.call(&principal(), Call::Acquire(Box::new(lease)));
        let Answer::Leased(lease) = calling.answer().await else { panic!("it is free") };
        lease.fence
    }

    /// Carry out a call of another node.
    async fn carry_out(redlock: &Redlock, from: &str, call: RedlockCall) -> RedlockReply {
        let OwnerKey { lock, owner, .. } = owner();
        let client = PassedClient::new(&redlock.service, &principal());
        redlock.carry_out(PassedCall { client, from: from.to_owned(), lock, owner, call }).await
    }

    fn confirm(voted: Option<Fence>) -> RedlockCall {
        RedlockCall::Confirm { ttl_ms: milliseconds(TTL), voted }
    }

    #[tokio::test]
    async fn a_lease_is_confirmed_when_its_acquisition_is_complete() {
        let redlock = redlock().await;
        assert_eq!(carry_out(&redlock, "b", confirm(None)).await, RedlockReply::No);
        let (one, other) = (redlock.acquiring(owner()), redlock.acquiring(owner()));
        let fence = acquire(&redlock, Duration::from_secs(5)).await;
        for guard in [one, other] {
            assert_eq!(carry_out(&redlock, "b", confirm(None)).await, RedlockReply::Acquiring);
            drop(guard);
        }
        let RedlockReply::Held { fence: told, left_ms } =
            carry_out(&redlock, "b", confirm(None)).await
        else {
            panic!("it is complete");
        };
        assert_eq!(told, fence);
        assert!(left_ms > 25_000, "it lasts as long as the vote: {left_ms}");
        let again = carry_out(&redlock, "b", confirm(Some(fence))).await;
        assert_eq!(again, RedlockReply::No, "a node says OK once for a grant");
    }

    #[tokio::test]
    async fn every_node_that_has_said_ok_releases_a_lease_once() {
        let redlock = redlock().await;
        let fence = acquire(&redlock, TTL).await;
        for node in ["b", "c"] {
            let reply = carry_out(&redlock, node, confirm(None)).await;
            assert!(matches!(reply, RedlockReply::Held { .. }), "{reply:?}");
        }
        let release = RedlockCall::Release { fence };
        for (node, expected) in [
            ("c", RedlockReply::Released),
            ("c", RedlockReply::No),
            ("d", RedlockReply::No),
            ("b", RedlockReply::Released),
        ] {
            assert_eq!(carry_out(&redlock, node, release.clone()).await, expected, "{node}");
        }
        for expected in [true, false] {
            let answer = redlock.release(&principal(), &owner()).await;
            assert!(matches!(answer, Answer::Withdrawn(done) if done == expected), "{answer:?}");
        }
        // The release of an earlier grant does not end a later one.
        let later = acquire(&redlock, TTL).await;
        redlock.begin(&owner());
        assert!(later > fence);
        assert_eq!(carry_out(&redlock, "b", release).await, RedlockReply::No);
        let reply = carry_out(&redlock, "b", RedlockCall::Look { fence: later }).await;
        assert!(matches!(reply, RedlockReply::Held { .. }), "{reply:?}");
    }
}
