//! Why a request waits: who holds the lock, whose answer is missing, and which sessions wait for
//! each other in a circle (deadlock).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use doorway_protocol::{Fence, Mode, Name};

use crate::holds::ClosedLock;
use crate::messages::{ClientReport, ClientStatus};
use crate::net::PeerId;

/// What this node has found out about a lock and about the clients that wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitReport {
    /// The lock.
    pub lock: Name,
    /// The number of the view that is running; none while the members agree on the next one.
    pub view: Option<u64>,
    /// The clients that hold the lock, at all nodes that answered.
    pub holders: Vec<LockClient>,
    /// The clients of this node that wait, the next one first.
    pub waiters: Vec<Waiter>,
    /// The clients that wait at other nodes.
    pub elsewhere: Vec<LockClient>,
    /// The members that cannot be reached, and for how long.
    pub away: Vec<(String, Duration)>,
    /// The members for which the next view waits, if one is due: they cannot be reached, or they
    /// have not yet told what they hold.
    pub awaited: Vec<String>,
    /// The members, possibly including this one, that were killed and still wait for their former
    /// holders to reclaim their locks: see
    /// [`Node::start_reclaiming`](crate::Node::start_reclaiming).
    pub reclaiming: Vec<String>,
    /// The members that are connected but did not answer in time.
    pub silent: Vec<String>,
    /// The promises of members that are gone, because of which the lock is closed.
    pub closed: Vec<ClosedLock>,
}

/// A client that holds a lock or waits for it, at any node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockClient {
    /// The name of its node.
    pub node: String,
    /// The session of the client, if it has one.
    pub session: Option<u64>,
    /// The description of its session: see [`Config::describe`](crate::Config::describe).
    pub client: Option<String>,
    /// The mode in which it holds the lock, or wants to hold it.
    pub mode: Mode,
    /// The fence of the grant, if the client is inside.
    pub fence: Option<Fence>,
    /// How long it had been inside or had waited when its node answered.
    pub since: Duration,
    /// How old that answer is; zero for clients of this node.
    pub age: Duration,
    /// If it waits and its session is part of a deadlock: the node and number of each session in
    /// the circle, its own first. Only [`WaitReport::elsewhere`] has it.
    pub circle: Option<Vec<(String, u64)>>,
}

/// A client of this node that waits for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiter {
    /// The session of the client, if it has one.
    pub session: Option<u64>,
    /// The description of its session, if it has one.
    pub client: Option<String>,
    /// The mode in which it wants to hold the lock.
    pub mode: Mode,
    /// The place of the request in the queue of this node, counted from 0.
    pub place: usize,
    /// How long it has waited.
    pub since: Duration,
    /// The members to which this node has sent something for its request, and from which it has
    /// heard nothing since.
    pub missing: Vec<String>,
    /// If its session is part of a deadlock: the node and number of each session in the circle, its
    /// own first.
    pub circle: Option<Vec<(String, u64)>>,
}

/// A session, by its node and its number there. Requests without a session have the number 0 and
/// cannot be part of a circle.
pub(crate) type SessionOf = (PeerId, u64);

/// The wait-for graph: which session waits for which, put together from the answers of the nodes.
#[derive(Debug, Default)]
pub(crate) struct WaitGraph {
    inside: BTreeMap<Name, BTreeSet<SessionOf>>,
    wanted: BTreeMap<SessionOf, BTreeSet<Name>>,
}

impl WaitGraph {
    pub(crate) fn add(&mut self, node: PeerId, client: &ClientReport) {
        let session = (node, client.session);
        if client.session == 0 {
            return;
        }
        match client.status {
            ClientStatus::Inside(_) => {
                self.inside.entry(client.lock.clone()).or_default().insert(session);
            }
            ClientStatus::Waiting(_) => {
                self.wanted.entry(session).or_default().insert(client.lock.clone());
            }
        }
    }

    /// The locks for which the sessions that hold `lock` wait.
    pub(crate) fn beyond(&self, lock: &Name) -> BTreeSet<Name> {
        let inside = self.inside.get(lock).into_iter().flatten();
        inside.filter_map(|session| self.wanted.get(session)).flatten().cloned().collect()
    }

    /// The shortest circle of sessions that begins with `first`: each waits for a lock that the
    /// next one holds.
    pub(crate) fn circle(&self, first: SessionOf) -> Option<Vec<SessionOf>> {
        let mut came_from = BTreeMap::new();
        let mut queue = std::collections::VecDeque::from([first]);
        while let Some(session) = queue.pop_front() {
            let wanted = self.wanted.get(&session).into_iter().flatten();
            for next in wanted.filter_map(|lock| self.inside.get(lock)).flatten() {
                if *next == first {
                    return Some(path(&came_from, first, session));
                }
                if !came_from.contains_key(next) {
                    came_from.insert(*next, session);
                    queue.push_back(*next);
                }
            }
        }
        None
    }
}

fn path(
    came_from: &BTreeMap<SessionOf, SessionOf>,
    first: SessionOf,
    last: SessionOf,
) -> Vec<SessionOf> {
    let mut path = vec![last];
    while let Some(at) = path.last()
        && *at != first
    {
        path.push(came_from[at]);
    }
    path.reverse();
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(inside: &[(&str, u64)], wanted: &[(u64, &str)]) -> WaitGraph {
        let mut waits = WaitGraph::default();
        let mut add = |lock: &str, session, status| {
            let lock = Name::new(lock).unwrap();
            let (mode, client) = (doorway_core::Mode::Exclusive, None);
            let client = ClientReport { lock, session, mode, status, since_ms: 0, client };
            waits.add(PeerId(0), &client);
        };
        for (lock, session) in inside {
            add(lock, *session, ClientStatus::Inside(Fence::new(1, 1)));
        }
        for (session, lock) in wanted {
            add(lock, *session, ClientStatus::Waiting(0));
        }
        waits
    }

    #[test]
    fn three_sessions_in_a_circle_are_found_and_one_beside_it_is_not() {
        let inside = [("a", 1), ("b", 2), ("c", 3)];
        let waits = waits(&inside, &[(1, "b"), (2, "c"), (3, "a"), (4, "a")]);
        let of = |number| (PeerId(0), number);
        assert_eq!(waits.circle(of(1)), Some(vec![of(1), of(2), of(3)]));
        assert_eq!(waits.circle(of(3)), Some(vec![of(3), of(1), of(2)]));
        assert_eq!(waits.circle(of(4)), None, "it waits for the circle but is not part of it");
    }

    #[test]
    fn waiting_for_oneself_is_the_smallest_circle() {
        let of = (PeerId(0), 1);
        assert_eq!(waits(&[("a", 1)], &[(1, "a")]).circle(of), Some(vec![of]));
    }

    #[test]
    fn requests_without_a_session_close_no_circle() {
        assert_eq!(waits(&[("a", 0)], &[(0, "a")]).circle((PeerId(0), 0)), None);
    }
}
