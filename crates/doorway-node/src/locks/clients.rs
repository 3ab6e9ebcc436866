//! The clients of a shard, and the wakers of the tasks that wait for them.

use std::hash::{Hash, Hasher};
use std::task::{Poll, Waker};
use std::time::Duration;

use doorway_protocol::{Fence, Name};
use slab::Slab;
use smallvec::SmallVec;

use super::effects::{LostGrant, ShardEffects};
use super::lock::ClientId;
use super::machine::Fault;

/// Why a client has lost its lock, or why a waiting client will never get it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientEnd {
    /// The node has stopped, or its membership has ended.
    #[error("the node has stopped")]
    Lost,
    /// The lock cannot be used in this view.
    #[error("the lock is broken: {0}")]
    Broken(Fault),
    /// The client asked for the shared mode, which this algorithm does not have.
    #[error("the lock cannot be shared: its algorithm, {0}, serves exclusive locks only")]
    NotShared(&'static str),
}

/// How many wakers may watch one client for the loss of its lock. When there are more, all of them
/// are woken, and those that still watch register again.
const WATCHERS: usize = 8;

/// The memory of this many clients is kept even when no client is left.
const SPARE: usize = 64;

/// A client, from its request until it leaves.
#[derive(Clone, Debug)]
pub(super) struct Client {
    /// The lock, by its index in the table.
    pub(super) lock: u32,
    /// How many numbers after its fence belong to the client, which keeps the lock; 0 if it does
    /// not keep the lock, or not any more.
    pub(super) reserved: u32,
    /// The number of its session; 0 if it has none.
    pub(super) session: u64,
    /// When it made its request or entered, in nanoseconds since the node started. This takes half
    /// the memory of a [`Duration`].
    since: u64,
    state: State,
    /// While the client waits: the waker of the task that waits for it. While it is inside: the
    /// wakers of the tasks that watch for the loss of its lock.
    wakers: SmallVec<[Waker; 1]>,
}

#[derive(Clone, Debug)]
enum State {
    Waiting,
    /// With its fence, and whether it kept the lock until somebody else wanted it.
    Inside(Fence, bool),
    /// Boxed to keep clients small, because few ever get here. The fence is that of a client that
    /// was inside.
    Ended(Box<(ClientEnd, Option<Fence>)>),
}

impl Hash for Client {
    /// Wakers and times are left out: what a client may do next does not depend on them.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.lock, self.session, self.is_ended(), self.fence(), self.reserved).hash(state);
        self.uses_lock().hash(state);
    }
}

impl Client {
    /// When it made its request or entered, as the time since the node started.
    pub(super) fn since(&self) -> Duration {
        Duration::from_nanos(self.since)
    }

    /// Is the client inside, and has it not kept the lock after it had left? Such a client may have
    /// left long before its node hears of it.
    pub(super) fn uses_lock(&self) -> bool {
        matches!(self.state, State::Inside(_, false))
    }

    /// The fence of a client that is inside, or was inside until it lost its lock.
    pub(super) fn fence(&self) -> Option<Fence> {
        match &self.state {
            State::Waiting => None,
            State::Inside(fence, _) => Some(*fence),
            State::Ended(ended) => ended.1,
        }
    }
}

/// All clients of a shard.
#[derive(Clone, Debug, Default)]
pub(super) struct Clients(Slab<Client>);

impl Clients {
    /// Add a client that waits.
    pub(super) fn add(&mut self, lock: u32, session: u64, now: Duration) -> ClientId {
        let (since, state, wakers) = (nanoseconds(now), State::Waiting, SmallVec::new());
        let at = self.0.insert(Client { lock, reserved: 0, session, since, state, wakers });
        ClientId(u32::try_from(at).expect("fewer than 2^32 clients fit into memory"))
    }

    /// All clients with their numbers, in the order of the numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Client)> {
        self.0.iter()
    }

    pub(super) fn get(&self, client: ClientId) -> Option<&Client> {
        self.0.get(client.0 as usize)
    }

    /// Does a client keep its lock after it has left it?
    pub(super) fn keeps(&self, client: ClientId) -> bool {
        self.get(client).is_some_and(|client| client.reserved > 0)
    }

    /// Change how many numbers after its fence belong to a client.
    pub(super) fn set_reserved(&mut self, client: ClientId, numbers: u32) {
        if let Some(client) = self.0.get_mut(client.0 as usize) {
            client.reserved = numbers;
        }
    }

    /// Remove a client.
    pub(super) fn remove(&mut self, client: ClientId, out: &mut ShardEffects) -> Option<Client> {
        let mut gone = self.0.try_remove(client.0 as usize)?;
        out.discarded.extend(gone.wakers.drain(..));
        if self.0.is_empty() && self.0.capacity() > SPARE {
            self.0 = Slab::new(); // Give back the memory of many clients.
        }
        Some(gone)
    }

    /// Let a waiting client enter.
    pub(super) fn enter(
        &mut self,
        client: ClientId,
        fence: Fence,
        now: Duration,
        wakers: &mut Vec<Waker>,
    ) {
        let Some(client) = self.0.get_mut(client.0 as usize) else { return };
        client.state = State::Inside(fence, false);
        client.since = nanoseconds(now);
        wakers.extend(client.wakers.drain(..));
    }

    /// End a client that will never enter, or is not inside any more.
    pub(super) fn end(&mut self, client: ClientId, why: ClientEnd, wakers: &mut Vec<Waker>) {
        if let Some(client) = self.0.get_mut(client.0 as usize) {
            client.end(why, wakers);
        }
    }

    /// Take this lock from a client.
    pub(super) fn lose(
        &mut self,
        client: ClientId,
        lock: &Name,
        why: ClientEnd,
        out: &mut ShardEffects,
    ) {
        if let Some(lost) = self.0.get_mut(client.0 as usize) {
            lost.lose(client, lock, why, out);
        }
    }

    /// Somebody else wants the lock of a client, which does not keep it any more.
    pub(super) fn revoke(&mut self, client: ClientId, out: &mut ShardEffects) {
        if let Some(keeper) = self.0.get_mut(client.0 as usize) {
            keeper.revoke(client, out);
        }
    }

    /// Take the locks from all clients. `name` gives the name of the lock at an index.
    pub(super) fn end_all<'a>(
        &mut self,
        name: impl Fn(u32) -> &'a Name,
        why: ClientEnd,
        out: &mut ShardEffects,
    ) {
        for (at, client) in &mut self.0 {
            client.lose(ClientId(at as u32), name(client.lock), why, out);
        }
    }

    /// Is a client that was waiting inside now? If not, `waker` replaces the waker that is called
    /// when it is.
    pub(super) fn poll(
        &mut self,
        client: ClientId,
        waker: &Waker,
        out: &mut ShardEffects,
    ) -> Poll<Result<Fence, ClientEnd>> {
        let Some(client) = self.0.get_mut(client.0 as usize) else {
            return Poll::Ready(Err(ClientEnd::Lost));
        };
        match &client.state {
            State::Waiting => {
                if !client.knows(waker) {
                    out.discarded.extend(client.wakers.drain(..));
                    client.wakers.push(waker.clone());
                }
                Poll::Pending
            }
            State::Inside(fence, _) => Poll::Ready(Ok(*fence)),
            State::Ended(ended) => Poll::Ready(Err(ended.0)),
        }
    }

    /// Has a client that was inside lost its lock? If not, `waker` is called when it does.
    pub(super) fn poll_lost(
        &mut self,
        client: ClientId,
        waker: &Waker,
        out: &mut ShardEffects,
    ) -> Poll<ClientEnd> {
        let Some(client) = self.0.get_mut(client.0 as usize) else {
            return Poll::Ready(ClientEnd::Lost);
        };
        if let State::Ended(ended) = &client.state {
            return Poll::Ready(ended.0);
        }
        if !client.knows(waker) {
            if client.wakers.len() >= WATCHERS {
                // Tasks that still watch will register again.
                out.wakers.extend(client.wakers.drain(..));
            }
            client.wakers.push(waker.clone());
        }
        Poll::Pending
    }
}

impl Client {
    pub(super) fn is_ended(&self) -> bool {
        matches!(self.state, State::Ended(_))
    }

    fn knows(&self, waker: &Waker) -> bool {
        self.wakers.iter().any(|known| known.will_wake(waker))
    }

    fn lose(&mut self, me: ClientId, lock: &Name, why: ClientEnd, out: &mut ShardEffects) {
        if let State::Inside(fence, _) = self.state {
            out.lost.push(LostGrant { session: self.session, lock: lock.clone(), fence });
            self.revoke(me, out);
        }
        self.end(why, &mut out.wakers);
    }

    fn revoke(&mut self, me: ClientId, out: &mut ShardEffects) {
        if std::mem::take(&mut self.reserved) > 0 {
            out.revoked.push(me);
            if let State::Inside(_, kept) = &mut self.state {
                *kept = true;
            }
        }
    }

    fn end(&mut self, why: ClientEnd, wakers: &mut Vec<Waker>) {
        if !self.is_ended() {
            self.state = State::Ended(Box::new((why, self.fence())));
            wakers.extend(self.wakers.drain(..));
        }
    }
}

/// A time since the node started, in nanoseconds. 64 bits suffice for 584 years.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
