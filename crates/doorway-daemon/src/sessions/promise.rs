//! What the node may promise its clients, if its own membership can end.
//!
//! In a group that agrees on its members, a node may grant locks until the end of its lease, which
//! it renews all the time. If it cannot, others may hold its locks from then on. So no client may
//! believe in a grant for longer than that.
//!
//! A client counts the TTL of its session from when it sent its last message that the node has
//! answered. So two rules suffice:
//!
//! 1. No TTL is longer than seven tenths of a lease. A lease that is renewed all the time has more
//!    than that left, so clients notice nothing.
//! 2. The node answers a client with a session only while its lease lasts for the longest TTL from
//!    now on. Otherwise the answers wait until the lease is renewed. Clients that get no answer
//!    count their locks as lost before the lease of the node ends.

use std::collections::BTreeMap;
use std::time::Duration;

use doorway_protocol::{Code, Moment, Refusal};

use super::Sessions;
use super::connections::Attached;
use super::event::{Answer, Connection, Output};
use super::open::End;
use super::refusals::{gone, refusal};

/// The lease of a node in a group that agrees on its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeLease {
    /// When it ends.
    pub until: Moment,
    /// How long a lease lasts.
    pub length: Duration,
}

/// How many answers to one client may wait. A client that asks for more is disconnected.
const WITHHELD: usize = 10_000;

/// What may be promised, and the answers that wait.
#[derive(Clone, Debug)]
pub(super) struct Promise {
    lease: NodeLease,
    withheld: BTreeMap<Connection, Vec<Output>>,
}

impl Promise {
    /// Before the first lease nothing can be promised.
    pub(super) fn new() -> Self {
        let lease = NodeLease { until: Moment(0), length: Duration::ZERO };
        Self { lease, withheld: BTreeMap::new() }
    }

    /// The state that decides what happens next, for searches.
    pub(super) fn key(&self) -> (NodeLease, usize) {
        (self.lease, self.withheld.values().map(Vec::len).sum())
    }

    fn most(&self) -> Duration {
        self.lease.length * 7 / 10
    }

    fn covers(&self, now: Moment, ttl: Duration) -> bool {
        now.after(ttl) <= self.lease.until
    }

    /// Whether any client with a connection may be answered.
    fn may_answer(&self, now: Moment) -> bool {
        self.covers(now, self.most()) && !self.lease.length.is_zero()
    }
}

impl Sessions {
    /// The lease of the node was renewed, or has ended.
    pub(super) fn set_lease(&mut self, now: Moment, lease: NodeLease, out: &mut Vec<Output>) {
        let Some(promise) = &mut self.promise else { return };
        let before = std::mem::replace(&mut promise.lease, lease);
        let most = promise.most();
        if lease.length < before.length {
            // Clients that count on more time than a lease has now must be told. They connect again
            // and learn it then. What they were promised before holds until its end.
            let longer = self.open.values().filter(|session| session.ttl > most);
            let connections = longer.filter_map(|session| session.connection);
            out.extend(connections.map(Output::Close));
        }
        if lease.until <= now {
            // The grants have ended with the lease. A client over HTTP gets no other news of that.
            let calls = promise.withheld.extract_if(.., |_, outputs| {
                outputs.iter().any(|output| matches!(output, Output::Answer(..)))
            });
            let refused = |connection| Output::Answer(connection, Answer::Refused(no_member()));
            out.extend(calls.map(|(connection, _)| refused(connection)));
        }
    }

    /// The longest TTL that a session may get, as far as the node's own lease limits it.
    pub(super) fn most_ttl(&self) -> Option<Duration> {
        self.promise.as_ref().map(Promise::most)
    }

    /// Refuse a new session while the node is no member of its group.
    pub(super) fn check_member(&self, now: Moment) -> Result<(), Refusal> {
        match &self.promise {
            Some(promise) if promise.lease.until <= now => Err(no_member()),
            _ => Ok(()),
        }
    }

    /// Refuse to go on with a session before the node knows how long a lease lasts.
    pub(super) fn check_lease_known(&self) -> Result<(), Refusal> {
        match &self.promise {
            Some(promise) if promise.lease.length.is_zero() => Err(no_member()),
            _ => Ok(()),
        }
    }

    /// Whether the lease of the node lasts for the TTL of a session from now on.
    pub(super) fn covers(&self, now: Moment, session: u64) -> bool {
        let Some(promise) = &self.promise else { return true };
        let session = self.open.get(&session);
        session.is_none_or(|session| session.is_bound() || promise.covers(now, session.ttl))
    }

    /// Hold back the answers among the outputs from `first` on while the node may not give them, or
    /// give those that were held back before.
    pub(super) fn withhold(&mut self, now: Moment, first: usize, out: &mut Vec<Output>) {
        let Some(promise) = &mut self.promise else { return };
        if promise.may_answer(now) {
            let withheld = std::mem::take(&mut promise.withheld);
            let answers: Vec<Output> = withheld.into_values().flatten().collect();
            let answers = answers.into_iter().map(|output| self.still_true(now, output));
            out.splice(first..first, answers.collect::<Vec<_>>());
            return;
        }
        let connections = &self.connections;
        let in_session = |connection: &Connection| {
            connections
                .get(connection)
                .is_some_and(|state| matches!(state.session, Attached::Open(_)))
        };
        let answers = |output: &mut Output| match output {
            Output::Tell(connection, _) | Output::Greet(connection, ..) => in_session(connection),
            Output::Answer(_, Answer::Leased(_)) => true,
            _ => false,
        };
        let mut full = Vec::new();
        for output in out.extract_if(first.., answers) {
            let (Output::Tell(connection, _)
            | Output::Greet(connection, ..)
            | Output::Answer(connection, _)) = &output
            else {
                continue;
            };
            let connection = *connection;
            let waiting = promise.withheld.entry(connection).or_default();
            if waiting.len() < WITHHELD {
                waiting.push(output);
            } else {
                full.push(connection);
            }
        }
        full.dedup();
        out.extend(full.into_iter().map(Output::Close));
    }

    /// An answer that was held back, as it is true now. The session of a lease may have ended
    /// meanwhile. If it has not, its client counts from now on.
    fn still_true(&mut self, now: Moment, output: Output) -> Output {
        let Output::Answer(connection, Answer::Leased(lease)) = output else { return output };
        let held = self
            .open
            .get_mut(&lease.session)
            .filter(|session| session.grants.keys().any(|(_, fence, _)| *fence == lease.fence));
        let Some(session) = held else {
            return Output::Answer(connection, Answer::Refused(gone()));
        };
        session.heard = now;
        Output::Answer(connection, Answer::Leased(lease))
    }

    /// A client does not wait for its answers any longer, or is gone. Returns whether some were held
    /// back. A lease over HTTP that nobody can ask for again ends.
    pub(super) fn forget_withheld(
        &mut self,
        now: Moment,
        connection: Connection,
        out: &mut Vec<Output>,
    ) -> bool {
        let Some(promise) = &mut self.promise else { return false };
        let Some(withheld) = promise.withheld.remove(&connection) else { return false };
        for output in withheld {
            let Output::Answer(_, Answer::Leased(lease)) = output else { continue };
            if let Some(session) = self.open.get_mut(&lease.session) {
                session.heard = now;
                if session.key.is_none() {
                    self.end(lease.session, End::Left, out);
                }
            }
        }
        true
    }
}

fn no_member() -> Refusal {
    let text = "this node is no member of its group at the moment, so it grants no locks; \
                `doorway members` tells more";
    refusal(Code::Unavailable, text)
}

/// The lease of the node does not last for what a client asks for.
pub(super) fn not_covered() -> Refusal {
    let text = "this node waits for the renewal of its own membership, and promises nothing until \
                then: try again; `doorway members` tells more";
    refusal(Code::Unavailable, text)
}
