//! The arbiter of Maekawa's algorithm: how a node answers as a member of other nodes' quorums.

use super::{Message, Rules};
use crate::algorithms::prelude::*;
use crate::settle::each_of_queue;

/// An arbiter's answer to a requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The arbiter is locked for this request.
    Locked,
    /// An older request goes before this one.
    Failed,
    /// An older request waits: will this one, which has the lock, get all its locks?
    Inquire,
}

/// An answer and the request that it is about. An arbiter answers a message at most once.
pub type Reply = Option<(Timestamp, Answer)>;

/// The arbiter of a node, which is locked for one request at a time, the oldest first.
///
/// Two invariants make this enough to remember. The lock goes to the oldest request, so every
/// queued request that is older than the lock came after it was given; the first of them caused the
/// one INQUIRE. And of these requests only the oldest has not been told FAILED.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Arbiter {
    /// The request for which this node is locked.
    lock: Option<Timestamp>,
    /// The requests that wait for the lock, oldest first (the paper's WAITING QUEUE).
    queue: BTreeSet<Timestamp>,
    /// The nodes whose requests wait, so that a second request is refused. Only in refuted variants
    /// can a node have two.
    waiting: NodeSet,
}

impl Arbiter {
    /// An arbiter that is locked for the request `lock`, or unlocked.
    pub fn locked_for(lock: Option<Timestamp>) -> Self {
        Self { lock, queue: BTreeSet::new(), waiting: NodeSet::new() }
    }

    /// The arbiter of node `me` as a group begins: it is locked if `me` is in the quorum of a node
    /// that starts inside.
    pub fn start(me: NodeId, group: &Group, start: &Start) -> Self {
        let ours = |node| group.quorum(node, 0).binary_search(&me).is_ok();
        let holder = start.holders.iter().find(|holder| ours(holder.node));
        Self::locked_for(holder.map(|holder| Timestamp { clock: start.floor, node: holder.node }))
    }

    /// Call `each` with the sequence numbers of all requests known here.
    pub fn numbers(&mut self, each: NumberVisitor<'_>) {
        self.lock.iter_mut().for_each(|lock| each(&mut lock.clock));
        each_of_queue(&mut self.queue, each);
    }

    /// Whether it is unlocked. Then no request waits either.
    pub fn is_free(&self) -> bool {
        self.lock.is_none()
    }

    /// Handle a message for the arbiter.
    pub fn handle<R: Rules>(
        &mut self,
        from: NodeId,
        message: &Message,
    ) -> Result<Reply, &'static str> {
        match message {
            Message::Request(clock) => self.request::<R>(Timestamp { clock: *clock, node: from }),
            Message::Relinquish => self.relinquish::<R>(from),
            Message::Release => self.release::<R>(from),
            _ => Err("a message that is not for an arbiter"),
        }
    }

    /// Handle REQUEST.
    pub fn request<R: Rules>(&mut self, request: Timestamp) -> Result<Reply, &'static str> {
        let Some(lock) = self.lock else {
            self.lock = Some(request);
            return Ok(Some((request, Answer::Locked)));
        };
        let oldest = self.queue.first().map_or(lock, |first| *first.min(&lock));
        // Where messages keep no order, a node's next REQUEST may come before its RELEASE.
        let waits = self.waiting.contains(request.node);
        let has_lock = lock.node == request.node && R::INFO.channel == Channel::Fifo;
        if R::GUARDED && (waits || has_lock) || request == lock || !self.queue.insert(request) {
            return Err("a second request before the release of the first");
        }
        self.waiting.insert(request.node);
        let reply = if oldest < request && (lock < request || R::FAILED_BEHIND_QUEUED) {
            (request, Answer::Failed)
        } else if oldest == lock || R::INQUIRE_EACH_TIME {
            (lock, Answer::Inquire)
        } else if R::TELL_DISPLACED {
            (oldest, Answer::Failed)
        } else {
            return Ok(None);
        };
        Ok(Some(reply).filter(|(_, answer)| !R::EAGER || *answer != Answer::Failed))
    }

    /// Handle RELINQUISH: the request that had the lock waits again.
    fn relinquish<R: Rules>(&mut self, from: NodeId) -> Result<Reply, &'static str> {
        match self.lock {
            Some(lock) if lock.node != from && R::GUARDED => {
                return Err("a lock relinquished by a node that does not have it");
            }
            Some(lock) if lock.node == from || R::REQUEUE_OWNER => {
                self.queue.insert(lock);
                self.waiting.insert(lock.node);
            }
            Some(_) => {} // The sender waits already, and the owner loses the lock unnoticed.
            None => return Err("a lock relinquished that no node has"),
        }
        Ok(self.next())
    }

    /// Handle RELEASE: the request that had the lock is done.
    fn release<R: Rules>(&mut self, from: NodeId) -> Result<Reply, &'static str> {
        if R::GUARDED && self.lock.is_none_or(|lock| lock.node != from) {
            return Err("a lock released by a node that does not have it");
        }
        Ok(self.next())
    }

    /// Drop the request of `node`, which has crashed.
    pub fn remove(&mut self, node: NodeId) -> Reply {
        self.queue.retain(|request| request.node != node);
        self.waiting.remove(node);
        self.lock.filter(|lock| lock.node == node).and_then(|_| self.next())
    }

    /// Lock for the oldest waiting request, if there is one.
    fn next(&mut self) -> Reply {
        self.lock = self.queue.pop_first();
        let lock = self.lock?;
        self.waiting.remove(lock.node);
        Some((lock, Answer::Locked))
    }
}
