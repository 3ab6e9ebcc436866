//! "Why am I waiting?": who is inside, whose answer is missing, who waits in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use doorway_core::NodeId;
use doorway_protocol::{Fence, Mode, Name};

use crate::wire::{ClientReport, Stand};

/// What is known of a lock, and of those at this node who wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Why {
    /// The lock.
    pub lock: Name,
    /// The view that runs, or none while the members agree on the next one.
    pub view: Option<u64>,
    /// Who is inside, at any node that answered.
    pub holders: Vec<Who>,
    /// Who waits at this node, the next one first.
    pub waiters: Vec<Waiter>,
    /// Who waits at other nodes.
    pub elsewhere: Vec<Who>,
    /// Which members cannot be reached, and for how long.
    pub away: Vec<(String, Duration)>,
    /// For which members the next view waits, if one is due: they are away, or have yet to tell
    /// what they hold.
    pub awaited: Vec<String>,
    /// Which members, perhaps this one, were killed and wait for those who were inside then: see
    /// [`Node::start_reclaiming`](crate::Node::start_reclaiming).
    pub reclaiming: Vec<String>,
    /// Which members did not say in time what they know.
    pub silent: Vec<String>,
}

/// A client at some node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Who {
    /// Its node.
    pub node: String,
    /// Its session, if it has one.
    pub session: Option<u64>,
    /// What its session says of itself: see [`Config::describe`](crate::Config::describe).
    pub client: Option<String>,
    /// How it holds the lock, or wants to.
    pub mode: Mode,
    /// Its fence, if it is inside.
    pub fence: Option<Fence>,
    /// How long it has been inside or has waited, when its node was asked.
    pub since: Duration,
    /// How old that answer is: nothing for our own clients.
    pub age: Duration,
}

/// A client of this node that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiter {
    /// Its session, if it has one.
    pub session: Option<u64>,
    /// What its session says of itself.
    pub client: Option<String>,
    /// How it wants in.
    pub mode: Mode,
    /// Its place in the queue of this node, from 0.
    pub place: usize,
    /// How long it has waited.
    pub since: Duration,
    /// Who was asked for this node's request and has not answered since.
    pub missing: Vec<String>,
    /// If its session waits in a circle: node and number of each session in it, its own first.
    pub circle: Option<Vec<(String, u64)>>,
}

/// A session of a node. Those without a number stand for themselves and can close no circle.
pub(crate) type SessionOf = (NodeId, u64);

/// Who waits for whom, put together from what the nodes said.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    inside: BTreeMap<Name, BTreeSet<SessionOf>>,
    wanted: BTreeMap<SessionOf, BTreeSet<Name>>,
}

impl Waits {
    pub(crate) fn note(&mut self, node: NodeId, client: &ClientReport) {
        let session = (node, client.session);
        if client.session == 0 {
            return;
        }
        match client.stand {
            Stand::Inside(_) => {
                self.inside.entry(client.lock.clone()).or_default().insert(session);
            }
            Stand::Waiting(_) => {
                self.wanted.entry(session).or_default().insert(client.lock.clone());
            }
        }
    }

    /// The locks that those inside of `lock` wait for.
    pub(crate) fn beyond(&self, lock: &Name) -> BTreeSet<Name> {
        let inside = self.inside.get(lock).into_iter().flatten();
        inside.filter_map(|session| self.wanted.get(session)).flatten().cloned().collect()
    }

    /// The shortest circle of sessions, each waiting for a lock that the next one is inside of,
    /// that begins with `first`.
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

    fn waits(inside: &[(&str, u64)], wanted: &[(u64, &str)]) -> Waits {
        let mut waits = Waits::default();
        let mut note = |lock: &str, session, stand| {
            let lock = Name::new(lock).unwrap();
            let (mode, client) = (doorway_core::Mode::Exclusive, None);
            let client = ClientReport { lock, session, mode, stand, since_ms: 0, client };
            waits.note(NodeId(0), &client);
        };
        for (lock, session) in inside {
            note(lock, *session, Stand::Inside(Fence::new(1, 1)));
        }
        for (session, lock) in wanted {
            note(lock, *session, Stand::Waiting(0));
        }
        waits
    }

    #[test]
    fn three_sessions_in_a_circle_are_found_and_one_beside_it_is_not() {
        let inside = [("a", 1), ("b", 2), ("c", 3)];
        let waits = waits(&inside, &[(1, "b"), (2, "c"), (3, "a"), (4, "a")]);
        let of = |number| (NodeId(0), number);
        assert_eq!(waits.circle(of(1)), Some(vec![of(1), of(2), of(3)]));
        assert_eq!(waits.circle(of(3)), Some(vec![of(3), of(1), of(2)]));
        assert_eq!(waits.circle(of(4)), None, "it waits for the circle but is no part of it");
    }

    #[test]
    fn waiting_for_oneself_is_the_smallest_circle() {
        let of = (NodeId(0), 1);
        assert_eq!(waits(&[("a", 1)], &[(1, "a")]).circle(of), Some(vec![of]));
    }

    #[test]
    fn requests_without_a_session_close_no_circle() {
        assert_eq!(waits(&[("a", 0)], &[(0, "a")]).circle((NodeId(0), 0)), None);
    }
}
