//! What clients want of leases and keys, carried out at the node where these are at home.
//!
//! The sessions of the service decide everything: a lease is a session, and a key is what the lease
//! holds or waits for. This module keeps only what etcd has besides: the value of a key, the
//! revision that its client was told, and the requests that wait. All of that ends with the lease.
//! After a crash of the node, values are what the description of the session tells.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::{Ask, Code as RefusalCode, Fence, Mode, Name, Wait};
use doorway_sessions::principal::Principal;
use doorway_sessions::standing::StandingKey;
use doorway_sessions::{Answer, Call, StandingAsk};
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::timeout;

use super::ids::{self, Home, Revisions};
use super::messages::KeyValue;
use super::status::{Code, Status};
use super::{keys, label};
use crate::service::{ASKING, Service, secret};

/// How long a transaction waits until its request is granted. Then the client is told to wait for
/// its predecessor.
const AT_ONCE: Duration = Duration::from_millis(50);

/// How many bytes a value may have.
const VALUE: usize = 4096;

/// Marks the number of a request for a bare key, which follows from the value of the key. The
/// revisions of other requests are never that high.
const BARE: u64 = 1 << 63;

/// The client of a call.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) principal: Arc<Principal>,
    /// Whether it may be on another machine.
    pub(super) remote: bool,
}

/// Something that a client wants of a lease or a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum HomeCall {
    /// The heartbeat of a lease. Answered by [`HomeReply::Time`], with 0 if there is no such lease.
    KeepAlive(i64),
    /// End a lease.
    Revoke(i64),
    /// How long does a lease live, and which keys does it have?
    TimeToLive(i64),
    /// Ask for the lock with the key of a lease, and wait for a moment only. If `first` is false,
    /// the client asks for its predecessor afterwards, even if the lock is granted at once.
    Enter { ask: KeyAsk, first: bool },
    /// Ask for the lock with the key of a lease, and wait until the lock is held. A client that
    /// goes away does not want it any more.
    Lock(KeyAsk),
    /// Ask for a lock that is a bare key, if it is free. The answer has no key if it is not.
    Try(KeyAsk),
    /// The key of a lease.
    Look { lease: i64, lock: String },
    /// The request with this revision.
    Request { lock: String, revision: i64 },
    /// Wait until the request with this revision holds its lock.
    Await { lock: String, revision: i64 },
    /// The key that holds this lock at this node.
    Holder { lock: String },
    /// Delete the key of a lease; with a revision, only if the key was created with it.
    Delete { lease: i64, lock: String, created: Option<i64> },
    /// Delete a bare key that has this value.
    DeleteValue { lock: String, value: Vec<u8> },
    /// Give the key of a lease another value; with a revision, only if the key was created with it.
    /// The answer has no key if there is none.
    Put { lease: i64, lock: String, value: Vec<u8>, created: Option<i64> },
}

/// A request for a lock by a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeyAsk {
    pub(super) lease: i64,
    pub(super) lock: String,
    /// The key as the client writes it.
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
}

/// The answer to a [`HomeCall`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum HomeReply {
    /// The times of a lease in seconds, and its keys.
    Time {
        left: i64,
        granted: i64,
        keys: Vec<Vec<u8>>,
    },
    Key(Option<KeyState>),
    /// Whether there was anything to do.
    Done(bool),
}

/// A key at the moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeyState {
    pub(super) lease: i64,
    pub(super) key: Vec<u8>,
    /// Whether the key is the lock itself.
    pub(super) bare: bool,
    /// The revision of the request, by which a waiting client asks for it.
    pub(super) revision: i64,
    /// The revision with which the key was created, as its client was told.
    pub(super) created: i64,
    /// The fence, if the key holds the lock.
    pub(super) fence: Option<Fence>,
    pub(super) value: Vec<u8>,
    /// How many times the value was set.
    pub(super) version: i64,
}

impl KeyState {
    /// The revision of a response about this key: the fence, if the key holds the lock.
    pub(super) fn header(&self) -> i64 {
        self.fence.map_or(self.created, |fence| fence.get().cast_signed())
    }

    /// The key as clients see it, under this name.
    pub(super) fn kv(&self, key: Vec<u8>) -> KeyValue {
        KeyValue {
            key,
            create_revision: self.created,
            mod_revision: self.header(),
            version: self.version,
            value: self.value.clone(),
            lease: self.lease,
        }
    }
}

/// The leases and keys of this node.
pub(super) struct Homes {
    pub(super) service: Service,
    home: Home,
    revisions: Revisions,
    table: Mutex<Table>,
}

/// The keys that clients have put since the node was started, by session and lock.
#[derive(Default)]
struct Table {
    entries: BTreeMap<(u64, Name), Arc<Entry>>,
    /// The keys of `entries` by lock and revision.
    by_revision: BTreeMap<(Name, i64), Arc<Entry>>,
    /// At this number of entries, those that have ended are removed.
    full: usize,
}

impl Table {
    /// Put an entry into the table. It replaces another one of its session and lock.
    fn insert(&mut self, entry: &Arc<Entry>) {
        let key = (entry.session, entry.lock.clone());
        if let Some(before) = self.entries.insert(key, Arc::clone(entry)) {
            self.by_revision.remove(&before.by_revision());
        }
        self.by_revision.insert(entry.by_revision(), Arc::clone(entry));
    }

    fn forget(&mut self, entry: &Arc<Entry>) {
        let key = (entry.session, entry.lock.clone());
        if self.entries.get(&key).is_some_and(|known| Arc::ptr_eq(known, entry)) {
            self.entries.remove(&key);
            self.by_revision.remove(&entry.by_revision());
        }
    }

    /// Keep only the entries for which this holds.
    fn retain(&mut self, lives: impl Fn(&Entry) -> bool) {
        self.entries.retain(|_, entry| lives(entry));
        let entries = &self.entries;
        self.by_revision
            .retain(|_, entry| entries.contains_key(&(entry.session, entry.lock.clone())));
    }
}

/// A key that a client has put.
struct Entry {
    session: u64,
    lease: i64,
    lock: Name,
    key: Vec<u8>,
    bare: bool,
    revision: i64,
    told: Mutex<KeyKnowledge>,
    state: watch::Sender<State>,
}

/// What the client of a key knows, and what it has said.
#[derive(Default)]
struct KeyKnowledge {
    created: Option<i64>,
    value: Vec<u8>,
    version: i64,
    /// How many calls wait until the key holds the lock.
    waiting: usize,
    /// The client knows of the key, and deletes it when it does not want it any more.
    kept: bool,
}

impl KeyKnowledge {
    /// Count a call that wants the key.
    fn count(&mut self, kept: bool) {
        self.kept |= kept;
        self.waiting += usize::from(!kept);
    }
}

#[derive(Clone, Debug)]
enum State {
    Waiting,
    Held,
    Ended(Status),
}

impl Homes {
    pub(super) fn new(service: &Service) -> Arc<Self> {
        let home = Home::of(service.node().name());
        Arc::new(Self {
            service: service.clone(),
            home,
            revisions: Revisions::new(home, random()),
            table: Mutex::default(),
        })
    }

    /// The lease with this number at this node, as clients know it.
    pub(super) fn lease_id(&self, number: u64) -> i64 {
        self.home.id(number)
    }

    /// The members at which a lease or a revision may be at home: this node if the first value is
    /// true, and these others. Names of different members may give the same number.
    pub(super) fn homes_of(&self, id: i64) -> (bool, Vec<String>) {
        let Some((home, _)) = ids::parts(id) else { return (false, Vec::new()) };
        let node = self.service.node();
        let mut members = node.members();
        members.retain(|name| name != node.name() && Home::of(name) == home);
        (home == self.home, members)
    }

    /// Carry out a call at this node.
    pub(super) async fn carry_out(
        self: &Arc<Self>,
        client: &Client,
        call: HomeCall,
    ) -> Result<HomeReply, Status> {
        match call {
            HomeCall::KeepAlive(lease) => self.keep_alive(client, lease).await,
            HomeCall::Revoke(lease) => {
                let number = self.number(lease)?;
                match self.call(client, Call::Revoke(number)).await? {
                    Answer::Released(true) => Ok(HomeReply::Done(true)),
                    Answer::Released(false) => Err(Status::no_lease()),
                    _ => Err(Status::unexpected()),
                }
            }
            HomeCall::TimeToLive(lease) => Ok(self.time_to_live(client, lease)),
            HomeCall::Enter { ask, first } => self.enter_queue(client, ask, first).await,
            HomeCall::Lock(ask) => {
                let entry = self.enter(client, ask, false)?;
                let interest = Interest { homes: self, client, entry };
                interest.entry.settled().await;
                interest.entry.held()?;
                interest.entry.told.lock().kept = true;
                let key = self.key_of(&interest.entry).ok_or_else(Status::no_lease)?;
                Ok(HomeReply::Key(Some(key)))
            }
            HomeCall::Try(ask) => self.try_bare(client, ask).await.map(HomeReply::Key),
            HomeCall::Look { lease, lock } => {
                let known = self.known(client, lease, &name(&lock)?);
                Ok(HomeReply::Key(known.and_then(|entry| self.key_of(&entry))))
            }
            HomeCall::Request { lock, revision } => {
                let entry = self.by_revision(client, &name(&lock)?, revision);
                Ok(HomeReply::Key(entry.and_then(|entry| self.key_of(&entry))))
            }
            HomeCall::Await { lock, revision } => {
                let entry = self.by_revision(client, &name(&lock)?, revision);
                let entry = entry.ok_or_else(Status::no_lease)?;
                entry.settled().await;
                entry.held()?;
                self.key_of(&entry)
                    .map(|key| HomeReply::Key(Some(key)))
                    .ok_or_else(Status::no_lease)
            }
            HomeCall::Holder { lock } => Ok(HomeReply::Key(self.holder(&name(&lock)?))),
            HomeCall::Delete { lease, lock, created } => {
                self.delete(client, lease, &name(&lock)?, created).await.map(HomeReply::Done)
            }
            HomeCall::DeleteValue { lock, value } => {
                self.delete_value(client, &name(&lock)?, &value).await.map(HomeReply::Done)
            }
            HomeCall::Put { lease, lock, value, created } => {
                self.put(client, lease, &name(&lock)?, value, created).map(HomeReply::Key)
            }
        }
    }

    /// Put a key into the queue of a lock, and wait for a moment until it holds the lock.
    async fn enter_queue(
        self: &Arc<Self>,
        client: &Client,
        ask: KeyAsk,
        first: bool,
    ) -> Result<HomeReply, Status> {
        let entry = self.enter(client, ask, true)?;
        let _ = timeout(AT_ONCE, entry.settled()).await;
        if !first {
            entry.told.lock().created.get_or_insert(entry.revision);
        }
        if let State::Ended(status) = &*entry.state.borrow() {
            return Err(status.clone());
        }
        Ok(HomeReply::Key(self.key_of(&entry)))
    }

    fn put(
        &self,
        client: &Client,
        lease: i64,
        lock: &Name,
        value: Vec<u8>,
        created: Option<i64>,
    ) -> Result<Option<KeyState>, Status> {
        check_value(&value)?;
        let Some(entry) = self.known(client, lease, lock) else { return Ok(None) };
        let Some(key) = self.key_of(&entry) else { return Ok(None) };
        if created.is_some_and(|created| !entry.was_created(created, &key)) {
            return Ok(None);
        }
        let mut told = entry.told.lock();
        told.value = value;
        told.version += 1;
        drop(told);
        self.insert(&mut self.table.lock(), &entry);
        Ok(self.key_of(&entry))
    }

    async fn call(&self, client: &Client, call: Call) -> Result<Answer, Status> {
        match self.service.call(&client.principal, call).answer().await {
            Answer::Refused(refusal) => Err(refusal.into()),
            answer => Ok(answer),
        }
    }

    /// The number at this node of a lease that is at home here.
    fn number(&self, lease: i64) -> Result<u64, Status> {
        let parts = ids::parts(lease).filter(|(home, _)| *home == self.home);
        parts.map(|(_, number)| number).ok_or_else(Status::no_lease)
    }

    /// The session of a lease of this client.
    fn session(&self, client: &Client, lease: i64) -> Result<u64, Status> {
        let number = self.number(lease)?;
        let session = self.service.standing_session(&client.principal, number);
        session.ok_or_else(Status::no_lease)
    }

    async fn keep_alive(&self, client: &Client, lease: i64) -> Result<HomeReply, Status> {
        let number = self.number(lease)?;
        let (left, granted) = match self.call(client, Call::KeepAlive(number)).await {
            // The client is told whole seconds, and must not count on more than there are.
            Ok(Answer::Alive(time)) => (seconds(time.ttl), seconds(time.ttl)),
            Err(status) if status.code == Code::NotFound => (0, 0),
            Err(status) => return Err(status),
            Ok(_) => return Err(Status::unexpected()),
        };
        Ok(HomeReply::Time { left, granted, keys: Vec::new() })
    }

    fn time_to_live(&self, client: &Client, lease: i64) -> HomeReply {
        let session = self.session(client, lease).ok();
        let time = session.and_then(|session| self.service.standing_time(session));
        let Some((session, (left, granted))) = session.zip(time) else {
            return HomeReply::Time { left: -1, granted: 0, keys: Vec::new() };
        };
        let key = |key: StandingKey| match self.entry(session, &key.lock) {
            Some(entry) => entry.key.clone(),
            None if key.request & BARE != 0 => key.lock.as_str().as_bytes().to_vec(),
            None => keys::queued(&key.lock, lease),
        };
        let keys = self.service.standing_keys(session).into_iter().map(key).collect();
        HomeReply::Time { left: seconds(left), granted: seconds(granted), keys }
    }

    /// Ask for a lock with the key of a lease. If the key is there already, this is the same
    /// request. It is kept until the client deletes its key, or else as long as an [`Interest`]
    /// in it, of which the caller makes one, exists.
    fn enter(
        self: &Arc<Self>,
        client: &Client,
        ask: KeyAsk,
        kept: bool,
    ) -> Result<Arc<Entry>, Status> {
        let KeyAsk { lease, lock, key, value } = ask;
        check_value(&value)?;
        let (lock, number) = (name(&lock)?, self.number(lease)?);
        let session = self.session(client, lease)?;
        let mut table = self.table.lock();
        if let Some(entry) = self.living(&table, session, &lock) {
            entry.told.lock().count(kept);
            return Ok(entry);
        }
        let revision = self.revisions.next(self.service.node().process_number());
        let label = label::of(&value, lease);
        let entry = Arc::new(Entry {
            session,
            lease,
            lock: lock.clone(),
            key,
            bare: false,
            revision,
            told: Mutex::new(KeyKnowledge { value, version: 1, ..KeyKnowledge::default() }),
            state: watch::Sender::new(State::Waiting),
        });
        entry.told.lock().count(kept);
        let asked = StandingAsk {
            lease: number,
            request: revision.cast_unsigned(),
            ask: ask_for(&lock, Wait::Forever),
            joins: true,
            label: Some(label),
        };
        let call = Call::AcquireWith(Box::new(asked));
        let mut calling = self.service.call(&client.principal, call);
        self.insert(&mut table, &entry);
        drop(table);
        let (homes, waits) = (Arc::clone(self), Arc::clone(&entry));
        // The request lives as long as its lease, not as long as the call that has made it.
        tokio::spawn(async move {
            let state = match calling.answer().await {
                Answer::Leased(_) => State::Held,
                Answer::Refused(refusal) => State::Ended(refusal.into()),
                _ => State::Ended(Status::unexpected()),
            };
            if matches!(state, State::Ended(_)) {
                homes.table.lock().forget(&waits);
            }
            waits.state.send_replace(state);
        });
        Ok(entry)
    }

    /// Ask for a lock that is a bare key.
    async fn try_bare(&self, client: &Client, ask: KeyAsk) -> Result<Option<KeyState>, Status> {
        let KeyAsk { lease, lock, key, value } = ask;
        check_value(&value)?;
        let (lock, number) = (name(&lock)?, self.number(lease)?);
        let session = self.session(client, lease)?;
        let asked = StandingAsk {
            lease: number,
            request: request_of(&lock, &value),
            ask: ask_for(&lock, Wait::No),
            joins: false,
            label: Some(label::of(&value, lease)),
        };
        let call = Call::AcquireWith(Box::new(asked));
        let mut calling = self.service.call(&client.principal, call);
        let fence = match calling.answer_within(ASKING).await {
            Answer::Leased(lease) => lease.fence,
            Answer::Refused(refusal) => {
                let refusal = self.service.explained(&lock, refusal).await;
                if refusal.code == RefusalCode::NotFree {
                    return Ok(None);
                }
                return Err(refusal.into());
            }
            _ => return Err(Status::unexpected()),
        };
        let created = fence.get().cast_signed();
        let told =
            KeyKnowledge { created: Some(created), value, version: 1, kept: true, waiting: 0 };
        let entry = Arc::new(Entry {
            session,
            lease,
            lock,
            key,
            bare: true,
            revision: created,
            told: Mutex::new(told),
            state: watch::Sender::new(State::Held),
        });
        self.insert(&mut self.table.lock(), &entry);
        self.key_of(&entry).map(Some).ok_or_else(Status::no_lease)
    }

    async fn delete(
        &self,
        client: &Client,
        lease: i64,
        lock: &Name,
        created: Option<i64>,
    ) -> Result<bool, Status> {
        let Some(entry) = self.known(client, lease, lock) else { return Ok(false) };
        let Some(key) = self.key_of(&entry) else { return Ok(false) };
        if created.is_some_and(|created| !entry.was_created(created, &key)) {
            return Ok(false);
        }
        self.unlock(client, &entry).await
    }

    async fn delete_value(
        &self,
        client: &Client,
        lock: &Name,
        value: &[u8],
    ) -> Result<bool, Status> {
        let Some((session, number, held)) = self.service.standing_holder(lock) else {
            return Ok(false);
        };
        let lease = self.lease_id(number);
        if self.session(client, lease).ok() != Some(session) {
            return Ok(false); // It belongs to another client.
        }
        let same = match self.entry(session, lock) {
            Some(entry) => entry.bare && entry.told.lock().value == value,
            None => held.request == request_of(lock, value),
        };
        let entry = self.known(client, lease, lock).filter(|_| same);
        let Some(entry) = entry else { return Ok(false) };
        self.unlock(client, &entry).await
    }

    async fn unlock(&self, client: &Client, entry: &Arc<Entry>) -> Result<bool, Status> {
        let call = self.unlocking(&mut self.table.lock(), entry);
        let Some(call) = call else { return Ok(false) };
        match self.call(client, call).await? {
            Answer::Withdrawn(done) => Ok(done),
            _ => Err(Status::unexpected()),
        }
    }

    /// The call that ends what a key holds or waits for, and nothing that came after it.
    fn unlocking(&self, table: &mut Table, entry: &Arc<Entry>) -> Option<Call> {
        table.forget(entry);
        let known = self.service.standing_key(entry.session, &entry.lock)?;
        let number = self.number(entry.lease).ok()?;
        let own = entry.is(&known);
        own.then(|| Call::Unlock(number, entry.lock.clone(), Some(known.request)))
    }

    fn insert(&self, table: &mut Table, entry: &Arc<Entry>) {
        if table.entries.len() >= table.full {
            table.retain(|entry| self.lives(entry));
            table.full = (2 * table.entries.len()).max(256);
        }
        table.insert(entry);
    }

    /// Whether a key still waits, or holds its lock.
    fn lives(&self, entry: &Entry) -> bool {
        let known = self.service.standing_key(entry.session, &entry.lock);
        known.is_some_and(|known| entry.is(&known))
    }

    fn entry(&self, session: u64, lock: &Name) -> Option<Arc<Entry>> {
        self.table.lock().entries.get(&(session, lock.clone())).cloned()
    }

    fn living(&self, table: &Table, session: u64, lock: &Name) -> Option<Arc<Entry>> {
        let entry = table.entries.get(&(session, lock.clone())).cloned();
        if let Some(entry) = entry.filter(|entry| self.lives(entry)) {
            return Some(entry);
        }
        self.restored(session, lock)
    }

    /// The key by which a lease of this client holds a lock or waits for it.
    fn known(&self, client: &Client, lease: i64, lock: &Name) -> Option<Arc<Entry>> {
        let session = self.session(client, lease).ok()?;
        self.living(&self.table.lock(), session, lock)
    }

    /// A key that the former process left: the ledger has its request and its fence.
    fn restored(&self, session: u64, lock: &Name) -> Option<Arc<Entry>> {
        let known = self.service.standing_key(session, lock)?;
        let fence = known.fence?;
        let lease = self.lease_id(self.service.standing_lease(session)?);
        let bare = known.request & BARE != 0;
        let revision = if bare { fence.get().cast_signed() } else { known.request.cast_signed() };
        let value = label::value(&self.service.described(session).unwrap_or_default());
        let told = KeyKnowledge {
            created: Some(revision),
            value: value.unwrap_or_default(),
            version: 1,
            waiting: 0,
            kept: true,
        };
        let key = if bare { lock.as_str().into() } else { keys::queued(lock, lease) };
        Some(Arc::new(Entry {
            session,
            lease,
            lock: lock.clone(),
            key,
            bare,
            revision,
            told: Mutex::new(told),
            state: watch::Sender::new(State::Held),
        }))
    }

    /// The request of this client with this revision.
    fn by_revision(&self, client: &Client, lock: &Name, revision: i64) -> Option<Arc<Entry>> {
        let entry = self.table.lock().by_revision.get(&(lock.clone(), revision)).cloned();
        let entry = entry.or_else(|| {
            let (session, _, held) = self.service.standing_holder(lock)?;
            let restored = || self.restored(session, lock);
            (held.request == revision.cast_unsigned()).then(restored).flatten()
        })?;
        let own = self.session(client, entry.lease).ok() == Some(entry.session);
        own.then_some(entry)
    }

    /// The key of any client that holds a lock at this node.
    fn holder(&self, lock: &Name) -> Option<KeyState> {
        let (session, ..) = self.service.standing_holder(lock)?;
        let entry = self.living(&self.table.lock(), session, lock)?;
        self.key_of(&entry)
    }

    /// The key of an entry at the moment; none if it has ended.
    fn key_of(&self, entry: &Entry) -> Option<KeyState> {
        let known = self.service.standing_key(entry.session, &entry.lock);
        let known = known.filter(|known| entry.is(known))?;
        // A grant counts when it may be told: before that, the node may not last for it.
        let told = matches!(*entry.state.borrow(), State::Held);
        let fence = known.fence.filter(|_| told);
        let mut told = entry.told.lock();
        // A key that holds its lock before its client knows of it was created by its grant.
        let first = fence.map_or(entry.revision, |fence| fence.get().cast_signed());
        let created = *told.created.get_or_insert(first);
        Some(KeyState {
            lease: entry.lease,
            key: entry.key.clone(),
            bare: entry.bare,
            revision: entry.revision,
            created,
            fence,
            value: told.value.clone(),
            version: told.version,
        })
    }
}

impl Entry {
    fn by_revision(&self) -> (Name, i64) {
        (self.lock.clone(), self.revision)
    }

    /// Whether this is what the key holds or waits for.
    fn is(&self, known: &StandingKey) -> bool {
        if self.bare {
            known.fence.is_some_and(|fence| fence.get().cast_signed() == self.revision)
        } else {
            known.request == self.revision.cast_unsigned()
        }
    }

    /// Wait until the key holds its lock, or has ended.
    async fn settled(&self) {
        let mut state = self.state.subscribe();
        // The sender is in the entry, so it cannot be gone.
        let _ = state.wait_for(|state| !matches!(state, State::Waiting)).await;
    }

    /// Why the key does not hold its lock.
    fn held(&self) -> Result<(), Status> {
        match &*self.state.borrow() {
            State::Held => Ok(()),
            State::Ended(status) => Err(status.clone()),
            State::Waiting => Err(Status::unexpected()),
        }
    }

    /// Whether the key was created with this revision. The client knows the one or the other.
    fn was_created(&self, created: i64, key: &KeyState) -> bool {
        let fence = key.fence.map(|fence| fence.get().cast_signed());
        [Some(key.created), Some(self.revision), fence].contains(&Some(created))
    }
}

/// A call that waits until a key holds its lock. If the last such call is dropped before the client
/// knows of the key, nobody wants the key any more.
struct Interest<'a> {
    homes: &'a Arc<Homes>,
    client: &'a Client,
    entry: Arc<Entry>,
}

impl Drop for Interest<'_> {
    fn drop(&mut self) {
        // While the table is locked, no other call can join this one.
        let mut table = self.homes.table.lock();
        let mut told = self.entry.told.lock();
        told.waiting -= 1;
        let unwanted = told.waiting == 0 && !told.kept;
        drop(told);
        if unwanted && let Some(call) = self.homes.unlocking(&mut table, &self.entry) {
            // Nobody waits for the answer.
            drop(self.homes.service.call(&self.client.principal, call));
        }
    }
}

fn ask_for(lock: &Name, wait: Wait) -> Ask {
    Ask { lock: lock.clone(), mode: Mode::Exclusive, permits: None, wait }
}

/// The number of the request for a lock by a bare key with this value, by which the key is found
/// after a crash of the node. One lease may use the same value for several locks.
fn request_of(lock: &Name, value: &[u8]) -> u64 {
    let hash = digest(&SHA256, &[lock.as_str().as_bytes(), &[0], value].concat());
    let first = hash.as_ref().first_chunk().map_or(0, |first| u64::from_be_bytes(*first));
    first | BARE
}

fn check_value(value: &[u8]) -> Result<(), Status> {
    if value.len() <= VALUE {
        return Ok(());
    }
    let length = value.len();
    Err(Status::invalid(format!("a value has {length} bytes, and may have {VALUE} at most")))
}

fn name(text: &str) -> Result<Name, Status> {
    Name::new(text).map_err(|why| Status::invalid(why.to_string()))
}

/// Whole seconds. A client must not count on more than there are.
fn seconds(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}

fn random() -> u64 {
    secret().0.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
}
