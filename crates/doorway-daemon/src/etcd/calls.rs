//! The calls of one client: what all of them need, leases, locks and elections.

use std::sync::Arc;
use std::time::{Duration, Instant};

use doorway_sessions::standing::lease_number;
use doorway_sessions::{Answer, Call, LeaseOpening};
use tokio::sync::Semaphore;

use super::home::{Client, HomeCall, HomeReply, KeyAsk, KeyState};
use super::keys::{self, Key};
use super::messages::{
    CampaignRequest, CampaignResponse, LeaderKey, LeaderRequest, LeaderResponse, LeaseGrantRequest,
    LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse, LeaseRevokeRequest,
    LeaseRevokeResponse, LeaseTimeToLiveRequest, LeaseTimeToLiveResponse, LockRequest,
    LockResponse, ProclaimRequest, ProclaimResponse, ResignRequest, ResignResponse, ResponseHeader,
    UnlockRequest, UnlockResponse,
};
use super::routes::Routes;
use super::status::{Code, Status};
use super::{kv, label};
use crate::service::secret;
use crate::task::boxed;

/// The time to live of the lease that a lock gets if its client names none, in seconds. Nobody
/// renews it.
const LOCK_TTL: i64 = 60;

/// The calls of one client.
#[derive(Clone)]
pub(super) struct Calls {
    pub(super) routes: Arc<Routes>,
    pub(super) client: Client,
    pub(super) identity: Identity,
    /// One permit for each key that the connection may watch.
    pub(super) watches: Arc<Semaphore>,
}

/// What the headers of responses say about the node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    pub(super) cluster_id: u64,
    pub(super) member_id: u64,
}

impl Calls {
    /// The header of a response with this revision.
    #[expect(clippy::unnecessary_wraps, reason = "the field of a message")]
    pub(super) fn header(&self, revision: i64) -> Option<ResponseHeader> {
        let Identity { cluster_id, member_id } = self.identity;
        Some(ResponseHeader { cluster_id, member_id, revision, raft_term: 1 })
    }

    pub(super) async fn lease_grant(
        &self,
        request: LeaseGrantRequest,
    ) -> Result<LeaseGrantResponse, Status> {
        if request.id != 0 {
            let text = "leave ID 0: the node chooses the number of a lease, because the number \
                        tells at which node the lease is at home";
            return Err(Status::invalid(text));
        }
        let most = self.routes.service().longest_ttl().as_secs();
        let ttl = u64::try_from(request.ttl).ok().filter(|ttl| *ttl >= 1);
        let Some(ttl) = ttl.filter(|ttl| *ttl <= most) else {
            // It must not be shortened instead: many clients do not look at the answer.
            let text = format!(
                "etcdserver: too large lease TTL: {} s, and this node allows 1 s to {most} s \
                 (`ttl` under [limits])",
                request.ttl
            );
            return Err(Status::new(Code::OutOfRange, text));
        };
        let secret = secret();
        let id = self.routes.homes.lease_id(lease_number(&secret));
        let opening = LeaseOpening {
            ttl_ms: u32::try_from(ttl.saturating_mul(1000)).unwrap_or(u32::MAX),
            label: label::of_lease(id),
            remote: self.client.remote,
            secret,
        };
        let call = Call::Open(Box::new(opening));
        match self.routes.service().call(&self.client.principal, call).answer().await {
            Answer::Alive(time) => Ok(LeaseGrantResponse {
                header: self.header(1),
                id,
                ttl: i64::try_from(time.ttl.as_secs()).unwrap_or(i64::MAX),
                error: String::new(),
            }),
            Answer::Refused(refusal) => Err(refusal.into()),
            _ => Err(Status::unexpected()),
        }
    }

    pub(super) async fn lease_keep_alive(
        &self,
        request: LeaseKeepAliveRequest,
    ) -> Result<LeaseKeepAliveResponse, Status> {
        let id = request.id;
        let asked = Instant::now();
        let reply = self.routes.at_home(&self.client, id, HomeCall::KeepAlive(id)).await;
        // The lease counts from when its home heard of this, and the client from when it is told.
        let late = asked.elapsed().as_secs();
        let late = i64::try_from(if late > 0 { late + 1 } else { 0 }).unwrap_or(i64::MAX);
        let ttl = match reply {
            Ok(HomeReply::Time { left, .. }) if left <= 0 => 0,
            Ok(HomeReply::Time { left, .. }) if left > late => left - late,
            Ok(HomeReply::Time { .. }) => {
                let text = "the node at which the lease is at home answered too late";
                return Err(Status::new(Code::Unavailable, text));
            }
            Ok(_) => return Err(Status::unexpected()),
            // A lease that does not exist is not an error here, but has no time left.
            Err(status) if status.code == Code::NotFound => 0,
            Err(status) => return Err(status),
        };
        Ok(LeaseKeepAliveResponse { header: self.header(1), id, ttl })
    }

    pub(super) async fn lease_revoke(
        &self,
        request: LeaseRevokeRequest,
    ) -> Result<LeaseRevokeResponse, Status> {
        let revoke = HomeCall::Revoke(request.id);
        self.routes.at_home(&self.client, request.id, revoke).await?;
        Ok(LeaseRevokeResponse { header: self.header(1) })
    }

    pub(super) async fn lease_time_to_live(
        &self,
        request: LeaseTimeToLiveRequest,
    ) -> Result<LeaseTimeToLiveResponse, Status> {
        let id = request.id;
        let reply = self.routes.at_home(&self.client, id, HomeCall::TimeToLive(id)).await;
        let (ttl, granted_ttl, keys) = match reply {
            Ok(HomeReply::Time { left, granted, keys }) => (left, granted, keys),
            Ok(_) => return Err(Status::unexpected()),
            Err(status) if status.code == Code::NotFound => (-1, 0, Vec::new()),
            Err(status) => return Err(status),
        };
        let keys = if request.keys { keys } else { Vec::new() };
        Ok(LeaseTimeToLiveResponse { header: self.header(1), id, ttl, granted_ttl, keys })
    }

    /// Wait until the key of a lease holds a lock. Without a lease, one is made.
    async fn hold(&self, name: &[u8], lease: i64, value: Vec<u8>) -> Result<KeyState, Status> {
        let lock = keys::lock(name)?;
        let made = lease == 0;
        let lease = if made {
            let most = i64::try_from(self.routes.service().longest_ttl().as_secs());
            let ttl = LOCK_TTL.min(most.unwrap_or(LOCK_TTL));
            self.lease_grant(LeaseGrantRequest { ttl, id: 0 }).await?.id
        } else {
            lease
        };
        let mut own = made.then(|| OwnLease { calls: self, lease, used: false });
        let ask = KeyAsk { lease, lock: lock.to_string(), key: keys::queued(&lock, lease), value };
        let held = self.routes.key_at_home(&self.client, lease, HomeCall::Lock(ask)).await;
        match held {
            Ok(Some(key)) => {
                if let Some(own) = &mut own {
                    own.used = true;
                }
                Ok(key)
            }
            Ok(None) => Err(Status::unexpected()),
            // As etcd does it: clients compare the text.
            Err(status) if status.code == Code::NotFound => {
                Err(Status { code: Code::Unknown, ..status })
            }
            Err(status) => Err(status),
        }
    }

    pub(super) async fn lock(&self, request: LockRequest) -> Result<LockResponse, Status> {
        let key = self.hold(&request.name, request.lease, Vec::new()).await?;
        Ok(LockResponse { header: self.header(key.header()), key: key.key })
    }

    pub(super) async fn unlock(&self, request: UnlockRequest) -> Result<UnlockResponse, Status> {
        if let Key::Queued(lock, lease) = Key::read(&request.key)? {
            let delete = HomeCall::Delete { lease, lock: lock.to_string(), created: None };
            self.done_at_home(lease, delete).await?;
        }
        Ok(UnlockResponse { header: self.header(1) })
    }

    pub(super) async fn campaign(
        &self,
        request: CampaignRequest,
    ) -> Result<CampaignResponse, Status> {
        let value = request.value.clone();
        let mut key = self.hold(&request.name, request.lease, value).await?;
        if key.value != request.value {
            // The lease campaigned before, with another value.
            let put = HomeCall::Put {
                lease: key.lease,
                lock: keys::lock(&request.name)?.to_string(),
                value: request.value,
                created: None,
            };
            let put = self.routes.key_at_home(&self.client, key.lease, put).await?;
            key = put.ok_or_else(no_leader)?;
        }
        let header = self.header(key.header());
        let leader =
            LeaderKey { name: request.name, key: key.key, rev: key.created, lease: key.lease };
        Ok(CampaignResponse { header, leader: Some(leader) })
    }

    pub(super) async fn proclaim(
        &self,
        request: ProclaimRequest,
    ) -> Result<ProclaimResponse, Status> {
        let leader = request.leader.unwrap_or_default();
        let Key::Queued(lock, lease) = Key::read(&leader.key)? else { return Err(no_leader()) };
        let put = HomeCall::Put {
            lease,
            lock: lock.to_string(),
            value: request.value,
            created: Some(leader.rev),
        };
        let key = self.routes.key_at_home(&self.client, lease, put).await?;
        let key = key.ok_or_else(no_leader)?;
        Ok(ProclaimResponse { header: self.header(key.header()) })
    }

    pub(super) async fn leader(&self, request: LeaderRequest) -> Result<LeaderResponse, Status> {
        let lock = keys::lock(&request.name)?;
        let owner = self.routes.owner(&self.client, &lock).await?;
        let owner = owner.ok_or_else(|| Status::new(Code::Unknown, "election: no leader"))?;
        let kv = kv::kv_of(&owner, kv::owner_key(&owner, &lock));
        Ok(LeaderResponse { header: self.header(kv.mod_revision), kv: Some(kv) })
    }

    pub(super) async fn resign(&self, request: ResignRequest) -> Result<ResignResponse, Status> {
        let leader = request.leader.unwrap_or_default();
        if let Key::Queued(lock, lease) = Key::read(&leader.key)? {
            let created = Some(leader.rev);
            let delete = HomeCall::Delete { lease, lock: lock.to_string(), created };
            self.done_at_home(lease, delete).await?;
        }
        Ok(ResignResponse { header: self.header(1) })
    }
}

/// A lease that was made for a call. It ends with the call, unless the call gets its lock.
struct OwnLease<'a> {
    calls: &'a Calls,
    lease: i64,
    used: bool,
}

impl Drop for OwnLease<'_> {
    fn drop(&mut self) {
        if self.used {
            return;
        }
        let (calls, lease) = (self.calls.clone(), self.lease);
        tokio::spawn(boxed(async move {
            let _ = calls.lease_revoke(LeaseRevokeRequest { id: lease }).await;
        }));
    }
}

fn no_leader() -> Status {
    Status::new(Code::Unknown, "election: not leader")
}

/// A pause between two looks at what other members do.
pub(super) const PAUSE: Duration = Duration::from_millis(500);
