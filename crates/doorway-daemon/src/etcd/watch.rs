//! Watching keys.
//!
//! The most important watch is that of a client that waits for a lock: it watches the key that it
//! was shown as its predecessor, and the grant is the deletion of this key. To such a client a
//! deletion means that it holds the lock. So if its request ends in any other way, the watch is
//! cancelled with the reason, and never is a deletion told that did not happen.
//!
//! Any other watch is for clients that look at the holder of a lock (`holders`): news of this node
//! are told at once, and those of other members after half a second.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use doorway_node::members::BoxedFuture;
use doorway_protocol::Name;
use doorway_sessions::allowed;
use doorway_sessions::principal::Right;
use hyper::body::Bytes;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

use super::calls::{Calls, PAUSE};
use super::grpc::{Messages, QUEUE, framed};
use super::holders::HolderWatch;
use super::home::HomeCall;
use super::keys::{Key, Keys};
use super::kv;
use super::messages::{
    Event, EventType, FilterType, KeyValue, LeaderRequest, LeaderResponse, WatchCreateRequest,
    WatchRequest, WatchResponse,
};
use super::routes::Owner;
use super::status::{Code, Status};
use super::wire::{EnumField, Message as _};
use crate::task::boxed;

/// How many keys one stream may watch at a time.
const WATCHES: usize = 256;

/// The number of a watch that was not made.
const NONE: i64 = -1;

/// What a watch sees.
enum News {
    Events(Vec<Event>),
    /// The grant, after which there is nothing to be seen any more.
    Granted(Event),
    Cancelled(Status),
}

/// What is watched.
#[derive(Clone, Debug)]
enum WatchTarget {
    /// The grant of the request with this revision.
    Grant(Name, i64, Vec<u8>),
    /// The key of a lease.
    Key(Name, i64, Vec<u8>),
    /// The key of the holder with this fence, whose client has none.
    Holder(Name, i64, Vec<u8>),
    /// A bare key.
    Bare(Name, Vec<u8>),
    /// The first key of a queue.
    Queue(Name),
}

impl Calls {
    /// Serve a stream of watches.
    pub(super) fn watch(
        self,
        mut requests: Messages,
    ) -> (BoxedFuture<'static, Result<(), Status>>, mpsc::Receiver<Bytes>) {
        let (send, answers) = mpsc::channel(QUEUE);
        let work = Box::pin(async move {
            let (tell, mut news) = mpsc::channel(QUEUE);
            let mut watches = Watches {
                calls: self,
                tasks: JoinSet::new(),
                running: BTreeMap::new(),
                granted: BTreeSet::new(),
                tell,
                last: NONE,
            };
            loop {
                let response = tokio::select! {
                    request = requests.next() => match request? {
                        Some(bytes) => watches.request(WatchRequest::decode(&bytes)?),
                        None => return Ok(()),
                    },
                    Some((id, seen)) = news.recv() => watches.respond(id, seen),
                    Some(_) = watches.tasks.join_next() => None,
                };
                // If the client has gone, so has this work.
                if let Some(response) = response
                    && send.send(framed(&response)).await.is_err()
                {
                    return Ok(());
                }
            }
        });
        (work, answers)
    }

    /// Send the leader of an election whenever it changes.
    pub(super) fn observe(
        self,
        request: LeaderRequest,
    ) -> (BoxedFuture<'static, Result<(), Status>>, mpsc::Receiver<Bytes>) {
        let (send, answers) = mpsc::channel(QUEUE);
        let work = Box::pin(async move {
            let lock = super::keys::lock(&request.name)?;
            let mut holders = self.follow(&lock)?;
            let mut before = None;
            loop {
                let now = holders.next().await?.map(|owner| first_of(&owner, &lock));
                if let Some(kv) = now.clone().filter(|kv| before.as_ref() != Some(kv)) {
                    let header = self.header(kv.mod_revision);
                    let response = LeaderResponse { header, kv: Some(kv) };
                    if send.send(framed(&response)).await.is_err() {
                        return Ok(());
                    }
                    before = now;
                }
            }
        });
        (work, answers)
    }

    /// Follow the holder of a lock that the client may inspect.
    fn follow(&self, lock: &Name) -> Result<HolderWatch, Status> {
        allowed(&self.client.principal, Right::Inspect, lock)?;
        Ok(self.routes.follow(lock))
    }

    /// The key that is watched, if this is the holder of its lock.
    async fn watched_key(
        &self,
        watched: &WatchTarget,
        holder: Option<&Owner>,
    ) -> Result<Option<KeyValue>, Status> {
        match watched {
            WatchTarget::Grant(..) => Err(Status::unexpected()),
            WatchTarget::Key(lock, lease, key) => {
                let holds = holder.and_then(|owner| owner.key.as_ref());
                if let Some(state) = holds.filter(|state| state.lease == *lease) {
                    return Ok(Some(state.kv(key.clone())));
                }
                // It may wait, or hold the lock since the holder was asked for.
                let own = self.own_key(lock, *lease).await?;
                Ok(own.map(|state| state.kv(key.clone())))
            }
            WatchTarget::Holder(_, fence, key) => {
                let holder = holder.filter(|owner| owner.is(*fence));
                Ok(holder.map(|owner| kv::kv_of(owner, key.clone())))
            }
            WatchTarget::Bare(_, key) => Ok(holder.map(|owner| kv::kv_of(owner, key.clone()))),
            WatchTarget::Queue(lock) => Ok(holder.map(|owner| first_of(owner, lock))),
        }
    }

    /// Wait for the grant of a request.
    async fn granted(&self, lock: &Name, revision: i64, key: Vec<u8>) -> News {
        let call = HomeCall::Await { lock: lock.to_string(), revision };
        match self.routes.key_at_home(&self.client, revision, call).await {
            Ok(Some(state)) if state.fence.is_some() => {
                let kv = KeyValue { key, mod_revision: state.header(), ..KeyValue::default() };
                let kind = EnumField(EventType::Delete);
                News::Granted(Event { kind, kv: Some(kv), prev_kv: None })
            }
            Ok(_) => News::Cancelled(Status::no_lease()),
            Err(status) => News::Cancelled(status),
        }
    }

    /// Watch a key from a revision on, until the watch is cancelled.
    async fn see(
        self,
        id: i64,
        watched: WatchTarget,
        request: WatchCreateRequest,
        tell: mpsc::Sender<(i64, News)>,
    ) {
        if let WatchTarget::Grant(lock, revision, key) = &watched {
            let news = self.granted(lock, *revision, key.clone()).await;
            let _ = tell.send((id, news)).await;
            return;
        }
        let Err(status) = self.see_holder(id, &watched, &request, &tell).await;
        let _ = tell.send((id, News::Cancelled(status))).await;
    }

    async fn see_holder(
        &self,
        id: i64,
        watched: &WatchTarget,
        request: &WatchCreateRequest,
        tell: &mpsc::Sender<(i64, News)>,
    ) -> Result<std::convert::Infallible, Status> {
        let (WatchTarget::Key(lock, ..)
        | WatchTarget::Holder(lock, ..)
        | WatchTarget::Bare(lock, _)
        | WatchTarget::Queue(lock)) = watched
        else {
            return Err(Status::unexpected());
        };
        let mut holders = self.follow(lock)?;
        let start = request.start_revision;
        let leaves_out = |filter| request.filters.contains(&EnumField(filter));
        // What the client has seen. It says by its first revision which holder it knows.
        let mut before: Option<KeyValue> = None;
        let mut first = true;
        loop {
            let holder = holders.next().await?;
            let now = match self.watched_key(watched, holder.as_deref()).await {
                // Nothing is told that is not known: the home of the lease may be away.
                Err(status) if status.code == Code::Unavailable => {
                    holders.renew();
                    sleep(PAUSE).await;
                    continue;
                }
                known => known?,
            };
            let mut events = Vec::new();
            let known =
                first && now.as_ref().is_some_and(|kv| start == 0 || kv.mod_revision < start);
            let same = |one: &KeyValue, other: &KeyValue| {
                (&one.key, one.mod_revision) == (&other.key, other.mod_revision)
            };
            let gone = match (&before, &now) {
                (Some(before), Some(now)) if !same(before, now) => Some(before.clone()),
                (Some(before), None) => Some(before.clone()),
                // The holder that the client knows has gone before the watch began.
                (None, now) if first && start > 1 && !known => {
                    let key = match watched {
                        WatchTarget::Key(.., key)
                        | WatchTarget::Holder(.., key)
                        | WatchTarget::Bare(_, key) => Some(key.clone()),
                        _ => None,
                    };
                    let later = now.as_ref().map_or(start, |kv| kv.mod_revision);
                    key.map(|key| KeyValue { key, mod_revision: later, ..KeyValue::default() })
                }
                _ => None,
            };
            if let Some(gone) = gone.filter(|_| !leaves_out(FilterType::NoDelete)) {
                let kv = KeyValue {
                    key: gone.key,
                    mod_revision: now.as_ref().map_or(gone.mod_revision, |kv| kv.mod_revision),
                    ..KeyValue::default()
                };
                events.push(Event {
                    kind: EnumField(EventType::Delete),
                    kv: Some(kv),
                    prev_kv: None,
                });
            }
            let put = now.clone().filter(|now| !known && before.as_ref() != Some(now));
            if let Some(kv) = put.filter(|_| !leaves_out(FilterType::NoPut)) {
                events.push(Event { kind: EnumField(EventType::Put), kv: Some(kv), prev_kv: None });
            }
            if !events.is_empty() && tell.send((id, News::Events(events))).await.is_err() {
                return Err(Status::unexpected());
            }
            before = now;
            first = false;
        }
    }
}

/// The holder of a lock as the first key of its queue.
fn first_of(owner: &Owner, lock: &Name) -> KeyValue {
    kv::kv_of(owner, kv::owner_key(owner, lock))
}

/// The watches of one stream.
struct Watches {
    calls: Calls,
    tasks: JoinSet<()>,
    running: BTreeMap<i64, AbortHandle>,
    /// The last watches that have told of a grant, and that the client has not cancelled. Many
    /// clients never do so.
    granted: BTreeSet<i64>,
    tell: mpsc::Sender<(i64, News)>,
    last: i64,
}

impl Watches {
    fn request(&mut self, request: WatchRequest) -> Option<WatchResponse> {
        if let Some(create) = request.create_request {
            return Some(self.create(create));
        }
        if let Some(cancel) = request.cancel_request {
            match self.running.remove(&cancel.watch_id) {
                Some(task) => task.abort(),
                None => self.granted.take(&cancel.watch_id).map(drop)?,
            }
            return Some(WatchResponse {
                header: self.calls.header(1),
                watch_id: cancel.watch_id,
                canceled: true,
                ..WatchResponse::default()
            });
        }
        request.progress_request.map(|_| WatchResponse {
            header: self.calls.header(1),
            watch_id: NONE,
            ..WatchResponse::default()
        })
    }

    fn create(&mut self, request: WatchCreateRequest) -> WatchResponse {
        let (watch_id, cancel_reason) = match self.start_watch(request) {
            Ok(id) => (id, String::new()),
            Err(status) => (NONE, status.text),
        };
        WatchResponse {
            header: self.calls.header(1),
            watch_id,
            created: true,
            canceled: watch_id == NONE,
            cancel_reason,
            ..WatchResponse::default()
        }
    }

    fn start_watch(&mut self, request: WatchCreateRequest) -> Result<i64, Status> {
        if self.running.len() >= WATCHES {
            let text = format!("one stream may watch {WATCHES} keys at most");
            return Err(Status::new(Code::ResourceExhausted, text));
        }
        let watched = match Keys::read(&request.key, &request.range_end)? {
            Keys::Queue(lock) => WatchTarget::Queue(lock),
            Keys::One(key) => match Key::read(&key)? {
                Key::Predecessor(lock, revision) => WatchTarget::Grant(lock, revision, key),
                Key::Queued(lock, lease) => WatchTarget::Key(lock, lease, key),
                Key::Holder(lock, fence) => WatchTarget::Holder(lock, fence, key),
                Key::Bare(lock) => WatchTarget::Bare(lock, key),
            },
            Keys::Prefix(prefix) => {
                let text = format!(
                    "the keys that begin with {prefix:?} cannot be watched: watch one key, or the \
                     queue of a lock, NAME/"
                );
                return Err(Status::invalid(text));
            }
        };
        let id = if request.watch_id > 0 { request.watch_id } else { self.last.saturating_add(1) };
        if self.running.contains_key(&id) {
            return Err(Status::invalid(format!("there is a watch with the number {id} already")));
        }
        self.last = self.last.max(id);
        self.granted.remove(&id);
        let permit = Arc::clone(&self.calls.watches).try_acquire_owned();
        let permit = permit.map_err(|_| {
            let text = "this connection watches as many keys as a connection may";
            Status::new(Code::ResourceExhausted, text)
        })?;
        let seen = self.calls.clone().see(id, watched, request, self.tell.clone());
        let seeing = async move {
            let _permit = permit;
            seen.await;
        };
        self.running.insert(id, self.tasks.spawn(boxed(seeing)));
        Ok(id)
    }

    /// What a watch sees, for the client. A watch that was cancelled meanwhile sees nothing.
    fn respond(&mut self, id: i64, news: News) -> Option<WatchResponse> {
        let response = WatchResponse { watch_id: id, ..WatchResponse::default() };
        match news {
            News::Granted(event) => {
                self.running.remove(&id)?;
                self.granted.insert(id);
                if self.granted.len() > WATCHES {
                    self.granted.pop_first();
                }
                let revision = event.kv.as_ref().map_or(1, |kv| kv.mod_revision);
                let events = vec![event];
                Some(WatchResponse { header: self.calls.header(revision), events, ..response })
            }
            News::Events(events) => {
                self.running.get(&id)?;
                let revision = events.iter().filter_map(|event| event.kv.as_ref());
                let revision = revision.map(|kv| kv.mod_revision).max().unwrap_or(1);
                Some(WatchResponse { header: self.calls.header(revision), events, ..response })
            }
            News::Cancelled(status) => {
                self.running.remove(&id)?;
                Some(WatchResponse {
                    header: self.calls.header(1),
                    canceled: true,
                    cancel_reason: status.text,
                    ..response
                })
            }
        }
    }
}
