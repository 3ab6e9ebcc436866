//! The clients of a shard, and who is to be woken for them.

use std::task::{Poll, Waker};
use std::time::Duration;

use slab::Slab;

use super::lock::ClientId;
use super::machine::Fault;
use crate::fence::Fence;

/// Why a client that was inside is so no more, or why one that waits will never be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// The node has stopped.
    #[error("the node has stopped")]
    Lost,
    /// The lock cannot be used in this view.
    #[error("the lock is broken: {0}")]
    Broken(Fault),
}

/// A client, from when it asks until it leaves.
#[derive(Debug)]
pub(super) struct Client {
    /// The lock, by its place in the table.
    pub(super) lock: u32,
    /// The session for which it asks.
    pub(super) session: u64,
    /// When it asked, or went inside.
    pub(super) since: Duration,
    state: State,
    waker: Option<Waker>,
}

#[derive(Debug)]
enum State {
    Waiting,
    Inside(Fence),
    /// Kept small: few ever get here. The fence is that of a client that was inside.
    Ended(Box<(Ended, Option<Fence>)>),
}

impl Client {
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
        let state = State::Waiting;
        let at = self.0.insert(Client { lock, session, since: now, state, waker: None });
        ClientId(u32::try_from(at).expect("fewer than 2^32 clients fit into memory"))
    }

    pub(super) fn get(&self, client: ClientId) -> Option<&Client> {
        self.0.get(client.0 as usize)
    }

    /// Somebody has left.
    pub(super) fn remove(&mut self, client: ClientId) -> Option<Client> {
        self.0.try_remove(client.0 as usize)
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
        client.since = now;
        wakers.extend(client.waker.take());
    }

    /// A client will never be inside, or is so no more.
    pub(super) fn end(&mut self, client: ClientId, why: Ended, wakers: &mut Vec<Waker>) {
        if let Some(client) = self.0.get_mut(client.0 as usize) {
            client.end(why, wakers);
        }
    }

    /// None of the clients will ever be inside again.
    pub(super) fn end_all(&mut self, why: Ended, wakers: &mut Vec<Waker>) {
        for (_, client) in &mut self.0 {
            client.end(why, wakers);
        }
    }

    /// Is a client that was waiting inside? If not, `waker` hears of it.
    pub(super) fn poll(&mut self, client: ClientId, waker: &Waker) -> Poll<Result<Fence, Ended>> {
        let Some(client) = self.0.get_mut(client.0 as usize) else {
            return Poll::Ready(Err(Ended::Lost));
        };
        match &client.state {
            State::Waiting => {
                client.listen(waker);
                Poll::Pending
            }
            State::Inside(fence) => Poll::Ready(Ok(*fence)),
            State::Ended(ended) => Poll::Ready(Err(ended.0)),
        }
    }

    /// Is a client that was inside so no more? If it still is, `waker` hears of it.
    pub(super) fn poll_lost(&mut self, client: ClientId, waker: &Waker) -> Poll<Ended> {
        let Some(client) = self.0.get_mut(client.0 as usize) else {
            return Poll::Ready(Ended::Lost);
        };
        if let State::Ended(ended) = &client.state {
            return Poll::Ready(ended.0);
        }
        client.listen(waker);
        Poll::Pending
    }
}

impl Client {
    pub(super) fn is_ended(&self) -> bool {
        matches!(self.state, State::Ended(_))
    }

    fn listen(&mut self, waker: &Waker) {
        if !self.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            self.waker = Some(waker.clone());
        }
    }

    fn end(&mut self, why: Ended, wakers: &mut Vec<Waker>) {
        if !self.is_ended() {
            self.state = State::Ended(Box::new((why, self.fence())));
            wakers.extend(self.waker.take());
        }
    }
}
