//! The clients of a shard, and who is to be woken for them.

use std::task::{Poll, Waker};
use std::time::Duration;

use doorway_protocol::{Fence, Name};
use slab::Slab;
use smallvec::SmallVec;

use super::effects::{LostGrant, ShardEffects};
use super::lock::ClientId;
use super::machine::Fault;

/// Why a client that was inside is so no more, or why one that waits will never be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientEnd {
    /// The node has stopped.
    #[error("the node has stopped")]
    Lost,
    /// The lock cannot be used in this view.
    #[error("the lock is broken: {0}")]
    Broken(Fault),
}

/// So many may watch one lock for its loss before all of them are asked whether they still do.
const WATCHERS: usize = 8;

/// So many places are kept in any case.
const SPARE: usize = 64;

/// A client, from when it asks until it leaves.
#[derive(Debug)]
pub(super) struct Client {
    /// The lock, by its place in the table.
    pub(super) lock: u32,
    /// The session for which it asks.
    pub(super) session: u64,
    /// When it asked, or went inside: nanoseconds since the node started, half as long as a
    /// [`Duration`].
    since: u64,
    state: State,
    /// The one who waits for it to enter, or those who wait for it to lose its lock.
    wakers: SmallVec<[Waker; 1]>,
}

#[derive(Debug)]
enum State {
    Waiting,
    Inside(Fence),
    /// Kept small: few ever get here. The fence is that of a client that was inside.
    Ended(Box<(ClientEnd, Option<Fence>)>),
}

impl Client {
    /// When it asked, or went inside.
    pub(super) fn since(&self) -> Duration {
        Duration::from_nanos(self.since)
    }

    /// The fence of a client that is inside, or was until its lock broke.
    pub(super) fn fence(&self) -> Option<Fence> {
        match &self.state {
            State::Waiting => None,
            State::Inside(fence) => Some(*fence),
            State::Ended(ended) => ended.1,
        }
    }
}

/// All clients of a shard.
#[derive(Debug, Default)]
pub(super) struct Clients(Slab<Client>);

impl Clients {
    /// Somebody asks.
    pub(super) fn add(&mut self, lock: u32, session: u64, now: Duration) -> ClientId {
        let (since, state, wakers) = (nanoseconds(now), State::Waiting, SmallVec::new());
        let at = self.0.insert(Client { lock, session, since, state, wakers });
        ClientId(u32::try_from(at).expect("fewer than 2^32 clients fit into memory"))
    }

    pub(super) fn get(&self, client: ClientId) -> Option<&Client> {
        self.0.get(client.0 as usize)
    }

    /// Somebody has left: the lock that it was a client of comes back.
    pub(super) fn remove(&mut self, client: ClientId, out: &mut ShardEffects) -> Option<u32> {
        let gone = self.0.try_remove(client.0 as usize)?;
        out.discarded.extend(gone.wakers);
        if self.0.is_empty() && self.0.capacity() > SPARE {
            self.0 = Slab::new(); // What many of them needed is given back.
        }
        Some(gone.lock)
    }

    /// A waiting client goes inside.
    pub(super) fn enter(
        &mut self,
        client: ClientId,
        fence: Fence,
        now: Duration,
        wakers: &mut Vec<Waker>,
    ) {
        let Some(client) = self.0.get_mut(client.0 as usize) else { return };
        client.state = State::Inside(fence);
        client.since = nanoseconds(now);
        wakers.extend(client.wakers.drain(..));
    }

    /// A client will never be inside, or is so no more.
    pub(super) fn end(&mut self, client: ClientId, why: ClientEnd, wakers: &mut Vec<Waker>) {
        if let Some(client) = self.0.get_mut(client.0 as usize) {
            client.end(why, wakers);
        }
    }

    /// A client that is inside of this lock is so no more.
    pub(super) fn lose(
        &mut self,
        client: ClientId,
        lock: &Name,
        why: ClientEnd,
        out: &mut ShardEffects,
    ) {
        if let Some(client) = self.0.get_mut(client.0 as usize) {
            client.lose(lock, why, out);
        }
    }

    /// None of the clients, each of the lock at that place, will ever be inside again.
    pub(super) fn end_all<'a>(
        &mut self,
        name: impl Fn(u32) -> &'a Name,
        why: ClientEnd,
        out: &mut ShardEffects,
    ) {
        for (_, client) in &mut self.0 {
            client.lose(name(client.lock), why, out);
        }
    }

    /// Is a client that was waiting inside? If not, `waker` hears of it, and no other.
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
            State::Inside(fence) => Poll::Ready(Ok(*fence)),
            State::Ended(ended) => Poll::Ready(Err(ended.0)),
        }
    }

    /// Is a client that was inside so no more? If it still is, `waker` hears of it.
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
                // Those who still want to know will say so again.
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

    fn lose(&mut self, lock: &Name, why: ClientEnd, out: &mut ShardEffects) {
        if let State::Inside(fence) = self.state {
            out.lost.push(LostGrant { session: self.session, lock: lock.clone(), fence });
        }
        self.end(why, &mut out.wakers);
    }

    fn end(&mut self, why: ClientEnd, wakers: &mut Vec<Waker>) {
        if !self.is_ended() {
            self.state = State::Ended(Box::new((why, self.fence())));
            wakers.extend(self.wakers.drain(..));
        }
    }
}

/// A time since the node started, which will not run for 584 years.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
