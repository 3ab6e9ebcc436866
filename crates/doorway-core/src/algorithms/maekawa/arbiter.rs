//! The arbiter's half of Maekawa's algorithm: what a node does as a member of others' quorums.

use super::{Message, Rules};
use crate::algorithms::prelude::*;
use crate::settle::each_of_queue;

/// What an arbiter tells a requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The arbiter is locked for this request.
    Locked,
    /// An older request is before this one.
    Failed,
    /// An older request waits: will this one, which has the lock, succeed?
    Inquire,
}

/// An answer and the request it is about. An arbiter answers a message at most once.
pub type Reply = Option<(Timestamp, Answer)>;

/// Locked for one request at a time, handed to the oldest first.
///
/// Two invariants make this all there is to remember. The lock goes to the oldest, so whatever in
/// the queue precedes the lock came after it; the first such to come caused the one INQUIRE. And of
/// these only the oldest has not been told FAILED.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Arbiter {
    /// The request that this node is locked for.
    lock: Option<Timestamp>,
    /// Those that wait for it, oldest first (the paper's WAITING QUEUE).
    queue: BTreeSet<Timestamp>,
    /// Whose they are, so that nobody asks twice; nobody's but a refuted variant's are two.
    waiting: NodeSet,
}

impl Arbiter {
    /// An arbiter locked for `lock`, if anything.
    pub fn locked_for(lock: Option<Timestamp>) -> Self {
        Self { lock, queue: BTreeSet::new(), waiting: NodeSet::new() }
    }

    /// An arbiter as a group begins: locked if its node is in the quorum of one that starts inside.
    pub fn start(me: NodeId, group: &Group, start: &Start) -> Self {
        let ours = |node| group.quorum(node, 0).binary_search(&me).is_ok();
        let holder = start.holders.iter().find(|holder| ours(holder.node));
        Self::locked_for(holder.map(|holder| Timestamp { clock: start.floor, node: holder.node }))
    }

    /// The numbers of all requests known here.
    pub fn numbers(&mut self, each: NumberVisitor<'_>) {
        self.lock.iter_mut().for_each(|lock| each(&mut lock.clock));
        each_of_queue(&mut self.queue, each);
    }

    /// Is it locked for nobody, so that nobody waits either?
    pub fn is_free(&self) -> bool {
        self.lock.is_none()
    }

    /// A message for the arbiter has come.
    pub fn hear<R: Rules>(
        &mut self,
        from: NodeId,
        message: &Message,
    ) -> Result<Reply, &'static str> {
        match message {
            Message::Request(clock) => self.request::<R>(Timestamp { clock: *clock, node: from }),
            Message::Relinquish => self.relinquish::<R>(from),
            Message::Release => self.release::<R>(from),
            _ => Err("not for an arbiter"),
        }
    }

    /// REQUEST has come.
    pub fn request<R: Rules>(&mut self, request: Timestamp) -> Result<Reply, &'static str> {
        let Some(lock) = self.lock else {
            self.lock = Some(request);
            return Ok(Some((request, Answer::Locked)));
        };
        let oldest = self.queue.first().map_or(lock, |first| *first.min(&lock));
        // Where messages keep no order, the next REQUEST may come before the RELEASE.
        let waits = self.waiting.contains(request.node);
        let has_lock = lock.node == request.node && R::INFO.channel == Channel::Fifo;
        if R::GUARDED && (waits || has_lock) || request == lock || !self.queue.insert(request) {
            return Err("a second request before the first is done");
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

    /// RELINQUISH has come: the one that had the lock waits again.
    fn relinquish<R: Rules>(&mut self, from: NodeId) -> Result<Reply, &'static str> {
        match self.lock {
            Some(lock) if lock.node != from && R::GUARDED => {
                return Err("a lock relinquished by another than its owner");
            }
            Some(lock) if lock.node == from || R::REQUEUE_OWNER => {
                self.queue.insert(lock);
                self.waiting.insert(lock.node);
            }
            Some(_) => {} // The sender waits already, and the owner is forgotten.
            None => return Err("a lock relinquished that nobody has"),
        }
        Ok(self.next())
    }

    /// RELEASE has come: the one that had the lock is done.
    fn release<R: Rules>(&mut self, from: NodeId) -> Result<Reply, &'static str> {
        if R::GUARDED && self.lock.is_none_or(|lock| lock.node != from) {
            return Err("a lock released by another than its owner");
        }
        Ok(self.next())
    }

    /// `node` has crashed, and its request with it.
    pub fn remove(&mut self, node: NodeId) -> Reply {
        self.queue.retain(|request| request.node != node);
        self.waiting.remove(node);
        self.lock.filter(|lock| lock.node == node).and_then(|_| self.next())
    }

    /// Lock for the oldest request, if there is any.
    fn next(&mut self) -> Reply {
        self.lock = self.queue.pop_first();
        let lock = self.lock?;
        self.waiting.remove(lock.node);
        Some((lock, Answer::Locked))
    }
}
