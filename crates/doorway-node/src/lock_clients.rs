//! The clients of a node for people: listed by lock, and described by their sessions.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::text::cut;
use doorway_protocol::{Fence, Name};

use crate::locks::{BusyLock, LostGrant};
use crate::messages::{CLIENT_BYTES, ClientReport, ClientStatus};
use crate::questions::waiter;
use crate::shell::NodeShell;
use crate::wait_report::{LockClient, Waiter};

/// The clients of one lock at this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockClients {
    /// The lock.
    pub lock: Name,
    /// The clients of this node that hold the lock.
    pub inside: Vec<LockClient>,
    /// The clients of this node that wait, the next one first. Deadlocks are not looked for.
    pub waiting: Vec<Waiter>,
}

/// A function that describes a session, given its number: by user and command, for example. The
/// node calls it when somebody asks who holds a lock or waits for it. It must not call the node.
#[derive(Clone)]
pub struct SessionDescriber(Arc<dyn Fn(u64) -> Option<String> + Send + Sync>);

impl SessionDescriber {
    /// Describe sessions by this function.
    pub fn new(describe: impl Fn(u64) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(describe))
    }
}

impl fmt::Debug for SessionDescriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionDescriber(..)")
    }
}

/// A function that the node calls for each lock that a session has lost, with the number of the
/// session, the lock and the fence. A lock is lost when it breaks, when it was reclaimed but cannot
/// have been held, or when the node stops. The function must not call the node.
#[derive(Clone)]
pub struct OnLost(Arc<LostCallback>);

type LostCallback = dyn Fn(u64, &Name, Fence) + Send + Sync;

impl OnLost {
    /// Call this function for each lost lock.
    pub fn new(lost: impl Fn(u64, &Name, Fence) + Send + Sync + 'static) -> Self {
        Self(Arc::new(lost))
    }
}

impl fmt::Debug for OnLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnLost(..)")
    }
}

/// A function that the node calls for each lock that a client keeps and that somebody else wants.
/// It must not call the node.
#[derive(Clone)]
pub struct OnWanted(Arc<WantedCallback>);

type WantedCallback = dyn Fn(Name) + Send + Sync;

impl OnWanted {
    /// Call this function for each lock that is wanted.
    pub fn new(wanted: impl Fn(Name) + Send + Sync + 'static) -> Self {
        Self(Arc::new(wanted))
    }
}

impl fmt::Debug for OnWanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnWanted(..)")
    }
}

/// A function that answers a question of the service at another member, in bytes that only services
/// can read. The node calls it on the thread that has read the question, so it must not wait.
#[derive(Clone)]
pub struct AnswerMembers(Arc<AnswerFunction>);

type AnswerFunction = dyn Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync;

impl AnswerMembers {
    /// Answer by this function.
    pub fn new(answer: impl Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(answer))
    }

    pub(crate) fn answer(&self, question: &[u8]) -> Option<Vec<u8>> {
        self.0(question)
    }
}

impl fmt::Debug for AnswerMembers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnswerMembers(..)")
    }
}

impl NodeShell {
    /// Fill in the descriptions of the clients that have a session.
    pub(crate) fn describe(&self, clients: &mut [ClientReport]) {
        let Some(SessionDescriber(describe)) = &self.describe else { return };
        for client in clients.iter_mut().filter(|client| client.session != 0) {
            client.client =
                describe(client.session).map(|text| cut(&text, CLIENT_BYTES).to_owned());
        }
    }

    /// Call [`OnLost`] for each lost grant that belongs to a session.
    pub(crate) fn tell_lost(&self, lost: impl Iterator<Item = LostGrant>) {
        let Some(OnLost(tell)) = &self.on_lost else { return };
        for LostGrant { session, lock, fence } in lost.filter(|lost| lost.session != 0) {
            tell(session, &lock, fence);
        }
    }

    /// Call [`OnWanted`] for each lock that is kept and wanted.
    pub(crate) fn tell_wanted(&self, wanted: impl Iterator<Item = Name>) {
        if let Some(OnWanted(tell)) = &self.on_wanted {
            wanted.for_each(tell.as_ref());
        }
    }

    /// The clients of this node by lock: see [`Node::locks`](crate::Node::locks).
    pub(crate) fn locks(
        &self,
        prefix: &str,
        after: Option<&Name>,
        limit: usize,
        wanted: impl Fn(&Name) -> bool,
    ) -> Vec<LockClients> {
        let fits = |name: &Name| {
            name.as_str().starts_with(prefix)
                && after.is_none_or(|after| name > after)
                && wanted(name)
        };
        self.first_busy(limit, fits, |_| ())
    }

    /// The clients of this node by lock: see [`Node::locks_by_wait`](crate::Node::locks_by_wait).
    pub(crate) fn locks_by_wait(
        &self,
        prefix: &str,
        limit: usize,
        wanted: impl Fn(&Name) -> bool,
    ) -> Vec<LockClients> {
        let fits = |name: &Name| name.as_str().starts_with(prefix) && wanted(name);
        let rank = |lock: &BusyLock<'_>| lock.urgency();
        self.first_busy(limit, fits, rank)
    }

    /// The clients of the first `limit` locks that fit, in the order of this rank, and of the names
    /// of locks with the same rank.
    fn first_busy<R: Ord>(
        &self,
        limit: usize,
        fits: impl Fn(&Name) -> bool,
        rank: impl Fn(&BusyLock<'_>) -> R,
    ) -> Vec<LockClients> {
        let mut first: BTreeSet<(R, Name)> = BTreeSet::new();
        for index in 0..self.shards() {
            let shard = self.shard(index);
            for lock in shard.busy().filter(|lock| fits(lock.name())) {
                let rank = rank(&lock);
                // Copy only names that may be among the first `limit`.
                let before = |(its, name): &(R, Name)| (&rank, lock.name()) < (its, name);
                if first.len() < limit || first.last().is_some_and(before) {
                    first.insert((rank, lock.name().clone()));
                    if first.len() > limit {
                        first.pop_last();
                    }
                }
            }
        }
        // Clients may have left since, and locks that have no clients any more are left out.
        first.into_iter().filter_map(|(_, lock)| self.clients_by(lock)).collect()
    }

    pub(crate) fn clients_by(&self, lock: Name) -> Option<LockClients> {
        let mut reports = self.shard(self.shard_of(&lock)).reports(Some(&lock), self.now());
        self.describe(&mut reports);
        let missing = self.unheard(&lock);
        let (mut inside, mut waiting) = (Vec::new(), Vec::new());
        for report in &reports {
            let who = self.who(self.me, report, Duration::ZERO);
            match report.status {
                ClientStatus::Inside(_) => inside.push(who),
                ClientStatus::Waiting(place) => waiting.push(waiter(who, place, &missing)),
            }
        }
        (!reports.is_empty()).then_some(LockClients { lock, inside, waiting })
    }
}
