//! The clients of a node as people see them: by lock, and by what they say of themselves.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::{Fence, Name};

use crate::inner::Inner;
use crate::locks::LostGrant;
use crate::messages::{CLIENT_BYTES, ClientReport, ClientStatus};
use crate::questions::waiter;
use crate::wait_report::{ClientInfo, Waiter};

/// A lock of this node that has clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockClients {
    /// The lock.
    pub lock: Name,
    /// The clients of this node that are inside.
    pub inside: Vec<ClientInfo>,
    /// The clients of this node that wait, the next one first. Circles are not looked for.
    pub waiting: Vec<Waiter>,
}

/// What a session says of itself, by its number: a user and a command, say. It is asked when
/// somebody wants to know who is inside or waits, and must not call the node.
#[derive(Clone)]
pub struct Describe(Arc<dyn Fn(u64) -> Option<String> + Send + Sync>);

impl Describe {
    /// Sessions are described by this function.
    pub fn new(describe: impl Fn(u64) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(describe))
    }
}

impl fmt::Debug for Describe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Describe(..)")
    }
}

/// What is called for each lock that a session was inside of and has lost, with the number of the
/// session and the fence: the lock is out of order, what was reclaimed cannot have been held, or
/// the node has ended. It must not call the node.
#[derive(Clone)]
pub struct OnLost(Arc<Hears>);

type Hears = dyn Fn(u64, &Name, Fence) + Send + Sync;

impl OnLost {
    /// This function is called.
    pub fn new(lost: impl Fn(u64, &Name, Fence) + Send + Sync + 'static) -> Self {
        Self(Arc::new(lost))
    }
}

impl fmt::Debug for OnLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnLost(..)")
    }
}

/// As much of a text as is told to others: whole characters only.
pub(crate) fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(CLIENT_BYTES)]
}

impl Inner {
    /// Let those of our clients that have a session say who they are.
    pub(crate) fn describe(&self, clients: &mut [ClientReport]) {
        let Some(Describe(describe)) = &self.describe else { return };
        for client in clients.iter_mut().filter(|client| client.session != 0) {
            client.client = describe(client.session).map(|text| cut(&text).to_owned());
        }
    }

    /// Tell of those who have lost what they were inside of, if they have a session.
    pub(crate) fn tell_lost(&self, lost: impl Iterator<Item = LostGrant>) {
        let Some(OnLost(tell)) = &self.on_lost else { return };
        for LostGrant { session, lock, fence } in lost.filter(|lost| lost.session != 0) {
            tell(session, &lock, fence);
        }
    }

    /// The clients of this node by lock: the first locks that are wanted, whose names begin with
    /// `prefix` and come after `after`.
    pub(crate) fn locks(
        &self,
        prefix: &str,
        after: Option<&Name>,
        limit: usize,
        wanted: impl Fn(&Name) -> bool,
    ) -> Vec<LockClients> {
        let mut names = BTreeSet::new();
        for index in 0..self.shards() {
            let shard = self.shard(index);
            let fits = |name: &&Name| {
                name.as_str().starts_with(prefix)
                    && after.is_none_or(|after| *name > after)
                    && wanted(name)
            };
            for name in shard.busy().filter(fits) {
                // Only names that may be among the first are copied.
                if names.len() < limit || names.last().is_some_and(|last| name < last) {
                    names.insert(name.clone());
                    if names.len() > limit {
                        names.pop_last();
                    }
                }
            }
        }
        // Whoever has left since is gone from its lock, and a lock without clients from the list.
        names.into_iter().filter_map(|lock| self.clients_by(lock)).collect()
    }

    pub(crate) fn clients_by(&self, lock: Name) -> Option<LockClients> {
        let mut reports = self.shard(self.shard_of(&lock)).reports(Some(&lock), self.now());
        self.describe(&mut reports);
        let missing = self.unheard(&lock);
        let (mut inside, mut waiting) = (Vec::new(), Vec::new());
        for report in &reports {
            let who = self.who(self.setup.me, report, Duration::ZERO);
            match report.status {
                ClientStatus::Inside(_) => inside.push(who),
                ClientStatus::Waiting(place) => waiting.push(waiter(who, place, &missing)),
            }
        }
        (!reports.is_empty()).then_some(LockClients { lock, inside, waiting })
    }
}
