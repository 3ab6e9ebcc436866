//! Watching keys.
//!
//! The most important watch is that of a client that waits for a lock: it watches the key that it
//! was shown as its predecessor, and the grant is the deletion of this key. To such a client a
//! deletion means that it holds the lock. So if its request ends in any other way, the watch is
//! cancelled with the reason, and never is a deletion told that did not happen.
//!
//! Any other watch is for clients that look at the holder of a lock: news of this node are told at
//! once, and those of other members after half a second.

use std::collections::BTreeMap;
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
use super::home::HomeCall;
use super::keys::{Key, Keys};
use super::kv;
use super::messages::{
    Event, EventType, FilterType, KeyValue, LeaderRequest, LeaderResponse, WatchCreateRequest,
    WatchRequest, WatchResponse,
};
use super::status::{Code, Status};
use super::wire::{EnumField, Message as _};
use crate::service::Listener;
use crate::task::boxed;

/// How many keys one stream may watch at a time.
const WATCHES: usize = 256;

/// The number of a watch that was not made.
const NONE: i64 = -1;

/// What a watch sees.
enum News {
    Events(Vec<Event>),
    Cancelled(Status),
}

/// What is watched.
#[derive(Clone, Debug)]
enum WatchTarget {
    /// The grant of the request with this revision.
    Grant(Name, i64, Vec<u8>),
    /// The key of a lease.
    Key(Name, i64, Vec<u8>),
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
            let mut listener = self.listener(&lock)?;
            let mut before = None;
            loop {
                let now = until_known(|| self.first_of(&lock)).await?;
                if let Some(kv) = now.clone().filter(|kv| before.as_ref() != Some(kv)) {
                    let header = self.header(kv.mod_revision);
                    let response = LeaderResponse { header, kv: Some(kv) };
                    if send.send(framed(&response)).await.is_err() {
                        return Ok(());
                    }
                    before = now;
                }
                changed(&mut listener, &lock).await;
            }
        });
        (work, answers)
    }

    /// Receive news about a lock.
    fn listener(&self, lock: &Name) -> Result<Listener, Status> {
        allowed(&self.client.principal, Right::Inspect, lock)?;
        Ok(self.routes.service().listen(&self.client.principal)?)
    }

    /// The first key of the queue of a lock.
    async fn first_of(&self, lock: &Name) -> Result<Option<KeyValue>, Status> {
        let owner = self.routes.owner(&self.client, lock).await?;
        Ok(owner.map(|owner| kv::kv_of(&owner, kv::owner_key(&owner, lock))))
    }

    /// The key that is watched, at the moment.
    async fn watched_key(&self, watched: &WatchTarget) -> Result<Option<KeyValue>, Status> {
        match watched {
            WatchTarget::Grant(..) => Err(Status::unexpected()),
            WatchTarget::Key(lock, lease, key) => {
                let now = self.key_now(lock, *lease).await?;
                Ok(now.map(|now| now.kv(key.clone())))
            }
            WatchTarget::Bare(lock, key) => {
                let owner = self.routes.owner(&self.client, lock).await?;
                Ok(owner.map(|owner| kv::kv_of(&owner, key.clone())))
            }
            WatchTarget::Queue(lock) => self.first_of(lock).await,
        }
    }

    /// Wait for the grant of a request.
    async fn granted(&self, lock: &Name, revision: i64, key: Vec<u8>) -> News {
        let call = HomeCall::Await { lock: lock.to_string(), revision };
        match self.routes.key_at_home(&self.client, revision, call).await {
            Ok(Some(state)) if state.fence.is_some() => {
                let kv = KeyValue { key, mod_revision: state.header(), ..KeyValue::default() };
                let kind = EnumField(EventType::Delete);
                News::Events(vec![Event { kind, kv: Some(kv), prev_kv: None }])
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
        let (WatchTarget::Key(lock, ..) | WatchTarget::Bare(lock, _) | WatchTarget::Queue(lock)) =
            watched
        else {
            return Err(Status::unexpected());
        };
        let mut listener = self.listener(lock)?;
        let start = request.start_revision;
        let leaves_out = |filter| request.filters.contains(&EnumField(filter));
        // What the client has seen. It says by its first revision which holder it knows.
        let mut before: Option<KeyValue> = None;
        let mut first = true;
        loop {
            let now = until_known(|| self.watched_key(watched)).await?;
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
                        WatchTarget::Key(.., key) | WatchTarget::Bare(_, key) => Some(key.clone()),
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
            changed(&mut listener, lock).await;
        }
    }
}

/// Ask until the answer is known, because nothing is told that is not known: the holder may be
/// about to change, or its node may be away.
async fn until_known<T, F>(ask: impl Fn() -> F) -> Result<T, Status>
where
    F: Future<Output = Result<T, Status>>,
{
    loop {
        match ask().await {
            Err(status) if status.code == Code::Unavailable => sleep(PAUSE).await,
            known => return known,
        }
    }
}

/// Wait until something has happened to a lock at this node, or for a while.
async fn changed(listener: &mut Listener, lock: &Name) {
    let here = async {
        loop {
            match listener.events.recv().await {
                Ok(event) if event.lock != *lock => {}
                // Something may have been missed.
                _ => return,
            }
        }
    };
    tokio::select! {
        () = here => {}
        () = sleep(PAUSE) => {}
    }
}

/// The watches of one stream.
struct Watches {
    calls: Calls,
    tasks: JoinSet<()>,
    running: BTreeMap<i64, AbortHandle>,
    tell: mpsc::Sender<(i64, News)>,
    last: i64,
}

impl Watches {
    fn request(&mut self, request: WatchRequest) -> Option<WatchResponse> {
        if let Some(create) = request.create_request {
            return Some(self.create(create));
        }
        if let Some(cancel) = request.cancel_request {
            let task = self.running.remove(&cancel.watch_id)?;
            task.abort();
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
