//! Keys: transactions, ranges, puts and deletes.

use doorway_protocol::{Fence, Holder, Name};
use doorway_sessions::principal::Right;

use super::calls::Calls;
use super::home::{HomeCall, HomeReply, KeyAsk, KeyState};
use super::ids;
use super::keys::{self, Key, Keys};
use super::messages::{
    DeleteRangeRequest, DeleteRangeResponse, KeyValue, PutRequest, PutResponse, RangeRequest,
    RangeResponse, ResponseHeader, ResponseOp, TxnRequest, TxnResponse,
};
use super::routes::Owner;
use super::shapes::{Guard, Op, Transaction};
use super::status::{Code, Status};
use crate::service::ListOrder;

/// How many locks a range lists at most.
const LISTED: usize = 1000;

impl Calls {
    pub(super) async fn txn(&self, request: TxnRequest) -> Result<TxnResponse, Status> {
        let transaction = Transaction::read(&request)?;
        match (&transaction.guard, transaction.put()) {
            (Guard::Absent, Some((value, lease))) => self.acquire(&transaction, value, lease).await,
            _ => self.change(&transaction).await,
        }
    }

    /// Acquire the lock of a key.
    async fn acquire(
        &self,
        transaction: &Transaction,
        value: &[u8],
        lease: i64,
    ) -> Result<TxnResponse, Status> {
        if lease == 0 {
            let text = "a lock needs a lease: without one the key would stay forever if its client \
                        ended";
            return Err(Status::invalid(text));
        }
        let (lock, queued) = match &transaction.key {
            Key::Queued(lock, its) if *its == lease => (lock, true),
            Key::Bare(lock) => (lock, false),
            _ => {
                let text = "the key ends with another lease than the one that it is put with";
                return Err(Status::invalid(text));
            }
        };
        let ask = KeyAsk {
            lease,
            lock: lock.to_string(),
            key: transaction.bytes.clone(),
            value: value.to_vec(),
        };
        if queued {
            return self.enter_queue(transaction, lock, ask).await;
        }
        let key = self.routes.key_at_home(&self.client, lease, HomeCall::Try(ask)).await?;
        if let Some(key) = key {
            let respond = |op: &Op| match op {
                Op::Put(..) | Op::Delete => put_response(self.header(key.header())),
                Op::Own | Op::Owner => self.found(&key, vec![key.kv(transaction.bytes.clone())]),
            };
            return Ok(TxnResponse {
                header: self.header(key.header()),
                succeeded: true,
                responses: transaction.success.iter().map(respond).collect(),
            });
        }
        let kv = self.holder_of(lock, &transaction.bytes).await?;
        let revision = kv.mod_revision;
        let respond = |_: &Op| range_response(self.header(revision), vec![kv.clone()]);
        Ok(TxnResponse {
            header: self.header(revision),
            succeeded: false,
            responses: transaction.failure.iter().map(respond).collect(),
        })
    }

    /// Put a key into the queue of a lock. The client is told that it is the first one, or else
    /// that a key is before it which only this client sees.
    async fn enter_queue(
        &self,
        transaction: &Transaction,
        lock: &Name,
        ask: KeyAsk,
    ) -> Result<TxnResponse, Status> {
        let lease = ask.lease;
        let first = transaction.success.contains(&Op::Owner);
        let own_key = HomeCall::Look { lease, lock: lock.to_string() };
        let before = self.routes.key_at_home(&self.client, lease, own_key).await?;
        let key = if let Some(key) = &before {
            key.clone()
        } else {
            let enter = HomeCall::Enter { ask, first };
            let key = self.routes.key_at_home(&self.client, lease, enter).await?;
            key.ok_or_else(Status::no_lease)?
        };
        // The client takes the revision of the response for that of its key, if it puts the key. If
        // it looks at the first key of the queue in this transaction, it takes it for the fence.
        let revision = if first { key.header() } else { key.created };
        let (succeeded, ops) = match before {
            None => (true, &transaction.success),
            Some(_) => (false, &transaction.failure),
        };
        let respond = |op: &Op| match op {
            Op::Put(..) | Op::Delete => put_response(self.header(revision)),
            Op::Own => self.found(&key, vec![key.kv(transaction.bytes.clone())]),
            Op::Owner if key.fence.is_some() => {
                self.found(&key, vec![key.kv(transaction.bytes.clone())])
            }
            Op::Owner => self.found(&key, vec![predecessor(lock, &key)]),
        };
        Ok(TxnResponse {
            header: self.header(revision),
            succeeded,
            responses: ops.iter().map(respond).collect(),
        })
    }

    /// Delete a key or set its value, if it is still what the client believes.
    async fn change(&self, transaction: &Transaction) -> Result<TxnResponse, Status> {
        let lock = transaction.key.lock().to_string();
        let done = match (&transaction.key, &transaction.guard, transaction.put()) {
            (Key::Queued(_, lease), Guard::Created(created), None) => {
                let (lease, created) = (*lease, Some(*created));
                let delete = HomeCall::Delete { lease, lock, created };
                self.done_at_home(lease, delete).await?.then_some(1)
            }
            (Key::Queued(_, lease), Guard::Created(created), Some((value, of))) => {
                if of != *lease {
                    return Err(Status::invalid("the key is put with another lease than its own"));
                }
                let (lease, created, value) = (*lease, Some(*created), value.to_vec());
                let put = HomeCall::Put { lease, lock, value, created };
                let key = self.routes.key_at_home(&self.client, lease, put).await?;
                key.map(|key| key.header())
            }
            (Key::Bare(name), Guard::Value(value), None) => {
                self.delete_value(name, value).await?.then_some(1)
            }
            _ => {
                let text = "this transaction does not fit its key: the key of a lease is deleted \
                            or put if its create revision is as given, and a bare key is deleted \
                            if its value is as given";
                return Err(Status::invalid(text));
            }
        };
        let (succeeded, ops) = match done {
            Some(_) => (true, &transaction.success),
            None => (false, &transaction.failure),
        };
        let revision = done.unwrap_or(1);
        let mut responses = Vec::new();
        for op in ops {
            responses.push(match op {
                Op::Put(..) => put_response(self.header(revision)),
                Op::Delete => delete_response(self.header(revision)),
                Op::Own | Op::Owner => {
                    let range = self.range_one(&transaction.bytes).await?;
                    ResponseOp { response_range: Some(range), ..ResponseOp::default() }
                }
            });
        }
        Ok(TxnResponse { header: self.header(revision), succeeded, responses })
    }

    /// Delete a bare key with this value, at the node where its holder is.
    async fn delete_value(&self, lock: &Name, value: &[u8]) -> Result<bool, Status> {
        let call = HomeCall::DeleteValue { lock: lock.to_string(), value: value.to_vec() };
        let here = self.routes.homes.carry_out(&self.client, call.clone()).await?;
        if here == HomeReply::Done(true) {
            return Ok(true);
        }
        let report = self.routes.service().report(lock).await;
        for holder in report.holders {
            if holder.node == self.routes.service().node().name() {
                continue;
            }
            match self.routes.at(&holder.node, &self.client, call.clone()).await {
                Ok(HomeReply::Done(true)) => return Ok(true),
                Ok(_) => {}
                // The holder may be a client of a node without this door.
                Err(status) if status.code == Code::Unavailable => {}
                Err(status) => return Err(status),
            }
        }
        Ok(false)
    }

    pub(super) async fn done_at_home(&self, id: i64, call: HomeCall) -> Result<bool, Status> {
        match self.routes.at_home(&self.client, id, call).await {
            Ok(HomeReply::Done(done)) => Ok(done),
            Ok(_) => Err(Status::unexpected()),
            // A key ends with its lease.
            Err(status) if status.code == Code::NotFound => Ok(false),
            Err(status) => Err(status),
        }
    }

    pub(super) async fn range(&self, request: RangeRequest) -> Result<RangeResponse, Status> {
        if request.revision != 0 {
            return Err(Status::invalid("earlier revisions are not kept: leave `revision` 0"));
        }
        match Keys::read(&request.key, &request.range_end)? {
            Keys::One(key) => self.range_one(&key).await,
            Keys::Queue(lock) if request.max_create_revision != 0 => {
                self.predecessor_of(&lock, request.max_create_revision).await
            }
            Keys::Queue(lock) => self.range_owner(&lock).await,
            Keys::Prefix(prefix) => self.range_prefix(&prefix, &request).await,
        }
    }

    async fn range_one(&self, bytes: &[u8]) -> Result<RangeResponse, Status> {
        match Key::read(bytes)? {
            Key::Queued(lock, lease) => match self.key_now(&lock, lease).await? {
                Some(key) => Ok(self.response(&key, vec![key.kv(bytes.to_vec())])),
                None => Ok(self.nothing()),
            },
            Key::Predecessor(lock, revision) => self.predecessor_of(&lock, revision - 1).await,
            Key::Holder(lock, fence) => match self.routes.owner(&self.client, &lock).await? {
                Some(owner) if owner.is(fence) => Ok(self.shown(&owner, bytes.to_vec())),
                _ => Ok(self.nothing()),
            },
            Key::Bare(lock) => match self.routes.owner(&self.client, &lock).await? {
                Some(owner) => Ok(self.shown(&owner, bytes.to_vec())),
                None => Ok(self.nothing()),
            },
        }
    }

    /// The key of a lease: one of this client, or the holder of a lock that the client may inspect.
    async fn key_now(&self, lock: &Name, lease: i64) -> Result<Option<KeyState>, Status> {
        if let Some(key) = self.own_key(lock, lease).await? {
            return Ok(Some(key));
        }
        if !self.client.principal.rights.may(Right::Inspect, lock) {
            return Ok(None);
        }
        let owner = self.routes.owner_with_key(&self.client, lock).await?;
        Ok(owner.and_then(|owner| owner.key).filter(|key| key.lease == lease))
    }

    /// The key of a lease of this client.
    pub(super) async fn own_key(
        &self,
        lock: &Name,
        lease: i64,
    ) -> Result<Option<KeyState>, Status> {
        let own_key = HomeCall::Look { lease, lock: lock.to_string() };
        match self.routes.key_at_home(&self.client, lease, own_key).await {
            // A key ends with its lease.
            Err(status) if status.code == Code::NotFound => Ok(None),
            key => key,
        }
    }

    /// The key before a waiting request in its queue: the one that only this request sees, or none
    /// if the request holds the lock.
    async fn predecessor_of(&self, lock: &Name, before: i64) -> Result<RangeResponse, Status> {
        let revision = before.saturating_add(1);
        let key = match ids::parts(revision) {
            Some(_) => {
                let call = HomeCall::Request { lock: lock.to_string(), revision };
                self.routes.key_at_home(&self.client, revision, call).await?
            }
            None => self.held_with(lock, revision).await?,
        };
        // To answer that there is no key would mean that the lock is held.
        let key = key.ok_or_else(|| {
            let text = "etcdserver: requested lease not found: the request for the lock has ended \
                        with its lease, or was withdrawn";
            Status::new(Code::NotFound, text)
        })?;
        let kvs = if key.fence.is_some() { Vec::new() } else { vec![predecessor(lock, &key)] };
        Ok(self.response(&key, kvs))
    }

    /// The key of this client that holds a lock with this fence.
    async fn held_with(&self, lock: &Name, fence: i64) -> Result<Option<KeyState>, Status> {
        let report = self.routes.service().report(lock).await;
        let same = |holder: &&Holder| holder.fence.get().cast_signed() == fence;
        let Some(holder) = report.holders.iter().find(same) else { return Ok(None) };
        let call = HomeCall::Holder { lock: lock.to_string() };
        let found = self.routes.at(&holder.node, &self.client, call).await?;
        let HomeReply::Key(Some(key)) = found else { return Ok(None) };
        let own_key = HomeCall::Look { lease: key.lease, lock: lock.to_string() };
        let own = self.routes.key_at_home(&self.client, key.lease, own_key).await?;
        Ok(own.filter(|own| own.header() == fence))
    }

    /// The key that holds a lock.
    async fn range_owner(&self, lock: &Name) -> Result<RangeResponse, Status> {
        match self.routes.owner(&self.client, lock).await? {
            Some(owner) => {
                let key = owner_key(&owner, lock);
                Ok(self.shown(&owner, key))
            }
            None => Ok(self.nothing()),
        }
    }

    /// The locks with this prefix that are held, as bare keys.
    async fn range_prefix(
        &self,
        prefix: &str,
        request: &RangeRequest,
    ) -> Result<RangeResponse, Status> {
        let service = self.routes.service();
        let principal = &self.client.principal;
        let list = service.list_ordered(principal, prefix, None, ListOrder::Name, true).await;
        let most = usize::try_from(request.limit).ok().filter(|it| *it > 0).unwrap_or(LISTED);
        let kvs: Vec<KeyValue> = list
            .locks
            .into_iter()
            .filter_map(|line| {
                let holder = line.line.holder?;
                let fence = holder.fence.get().cast_signed();
                let value = super::label::value(&holder.client);
                Some(KeyValue {
                    key: line.line.lock.into_bytes(),
                    create_revision: fence,
                    mod_revision: fence,
                    version: 1,
                    value: value.filter(|_| !request.keys_only).unwrap_or_default(),
                    lease: 0,
                })
            })
            .collect();
        let count = kvs.len();
        let kvs = if request.count_only { Vec::new() } else { kvs };
        Ok(RangeResponse {
            header: self.header(1),
            more: list.more || kvs.len() > most,
            kvs: kvs.into_iter().take(most).collect(),
            count: i64::try_from(count).unwrap_or(i64::MAX),
        })
    }

    pub(super) async fn put(&self, request: PutRequest) -> Result<PutResponse, Status> {
        let wrong = || {
            let text = "a put changes the value of a key that this lease has, and creates none: a \
                        lock is acquired by a transaction, or by the lock and election services";
            Status::new(Code::FailedPrecondition, text)
        };
        if request.prev_kv || request.ignore_value || request.ignore_lease || request.lease == 0 {
            return Err(wrong());
        }
        let lock = match Key::read(&request.key)? {
            Key::Queued(lock, lease) if lease == request.lease => lock,
            Key::Bare(lock) => lock,
            _ => return Err(wrong()),
        };
        let call = HomeCall::Put {
            lease: request.lease,
            lock: lock.to_string(),
            value: request.value,
            created: None,
        };
        let key = self.routes.key_at_home(&self.client, request.lease, call).await?;
        let key = key.ok_or_else(wrong)?;
        Ok(PutResponse { header: self.header(key.header()), prev_kv: None })
    }

    pub(super) async fn delete_range(
        &self,
        request: DeleteRangeRequest,
    ) -> Result<DeleteRangeResponse, Status> {
        let Keys::One(bytes) = Keys::read(&request.key, &request.range_end)? else {
            let text = "only single keys are deleted: locks are not taken from their holders by a \
                        range of keys";
            return Err(Status::invalid(text));
        };
        let done = match Key::read(&bytes)? {
            Key::Queued(lock, lease) => {
                let delete = HomeCall::Delete { lease, lock: lock.to_string(), created: None };
                self.done_at_home(lease, delete).await?
            }
            Key::Bare(lock) => self.delete_bare(&lock).await?,
            Key::Predecessor(..) | Key::Holder(..) => false,
        };
        Ok(DeleteRangeResponse {
            header: self.header(1),
            deleted: i64::from(done),
            prev_kvs: Vec::new(),
        })
    }

    /// Delete a bare key that a lease of this client has.
    async fn delete_bare(&self, lock: &Name) -> Result<bool, Status> {
        let report = self.routes.service().report(lock).await;
        for holder in report.holders {
            let call = HomeCall::Holder { lock: lock.to_string() };
            let found = self.routes.at(&holder.node, &self.client, call).await;
            let Ok(HomeReply::Key(Some(key))) = found else { continue };
            let delete =
                HomeCall::Delete { lease: key.lease, lock: lock.to_string(), created: None };
            if self.done_at_home(key.lease, delete).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The key of the holder of a lock that is not free. A client that may not inspect the lock is
    /// told nothing about its holder.
    async fn holder_of(&self, lock: &Name, bytes: &[u8]) -> Result<KeyValue, Status> {
        let unknown = || KeyValue {
            key: bytes.to_vec(),
            create_revision: 1,
            mod_revision: 1,
            version: 1,
            ..KeyValue::default()
        };
        if !self.client.principal.rights.may(Right::Inspect, lock) {
            return Ok(unknown());
        }
        match self.routes.owner(&self.client, lock).await {
            Ok(Some(owner)) => Ok(kv_of(&owner, bytes.to_vec())),
            // It may be free by now; then the client asks again.
            Ok(None) => Ok(unknown()),
            // The lock was not free, which is all that the client asked for.
            Err(status) if status.code == Code::Unavailable => Ok(unknown()),
            Err(status) => Err(status),
        }
    }

    fn shown(&self, owner: &Owner, key: Vec<u8>) -> RangeResponse {
        let kv = kv_of(owner, key);
        let header = self.header(kv.mod_revision);
        RangeResponse { header, kvs: vec![kv], more: false, count: 1 }
    }

    fn response(&self, key: &KeyState, kvs: Vec<KeyValue>) -> RangeResponse {
        let count = i64::from(!kvs.is_empty());
        RangeResponse { header: self.header(key.header()), kvs, more: false, count }
    }

    fn found(&self, key: &KeyState, kvs: Vec<KeyValue>) -> ResponseOp {
        range_response(self.header(key.header()), kvs)
    }

    fn nothing(&self) -> RangeResponse {
        RangeResponse { header: self.header(1), ..RangeResponse::default() }
    }
}

/// The key of the holder in the queue of a lock.
pub(super) fn owner_key(owner: &Owner, lock: &Name) -> Vec<u8> {
    match &owner.key {
        Some(key) if !key.bare => key.key.clone(),
        Some(key) => keys::queued(lock, key.lease),
        None => keys::holder(lock, owner.holder.fence),
    }
}

/// The holder of a lock as a key.
pub(super) fn kv_of(owner: &Owner, key: Vec<u8>) -> KeyValue {
    let fence = |fence: Fence| fence.get().cast_signed();
    match &owner.key {
        Some(state) => state.kv(key),
        None => KeyValue {
            key,
            create_revision: fence(owner.holder.fence),
            mod_revision: fence(owner.holder.fence),
            version: 1,
            value: owner.value(),
            lease: 0,
        },
    }
}

/// The key that a waiting request is shown as its predecessor. It is deleted by the grant.
fn predecessor(lock: &Name, key: &KeyState) -> KeyValue {
    KeyValue {
        key: keys::predecessor(lock, key.revision),
        create_revision: key.revision - 1,
        mod_revision: key.revision - 1,
        version: 1,
        ..KeyValue::default()
    }
}

fn put_response(header: Option<ResponseHeader>) -> ResponseOp {
    let put = PutResponse { header, prev_kv: None };
    ResponseOp { response_put: Some(put), ..ResponseOp::default() }
}

fn delete_response(header: Option<ResponseHeader>) -> ResponseOp {
    let delete = DeleteRangeResponse { header, deleted: 1, prev_kvs: Vec::new() };
    ResponseOp { response_delete_range: Some(delete), ..ResponseOp::default() }
}

fn range_response(header: Option<ResponseHeader>, kvs: Vec<KeyValue>) -> ResponseOp {
    let count = i64::from(!kvs.is_empty());
    let range = RangeResponse { header, kvs, more: false, count };
    ResponseOp { response_range: Some(range), ..ResponseOp::default() }
}
