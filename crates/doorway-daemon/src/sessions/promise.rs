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

use std::time::Duration;

use doorway_protocol::{Code, Moment, Refusal};

use super::Sessions;
use super::connections::Attached;
use super::event::{Answer, Connection, Output};
use super::refusals::refusal;

/// The lease of a node in a group that agrees on its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeLease {
    /// When it ends.
    pub until: Moment,
    /// How long a lease lasts.
    pub length: Duration,
}

/// What may be promised, and the answers that wait.
#[derive(Clone, Debug)]
pub(super) struct Promise {
    lease: NodeLease,
    /// The longest TTL that a session may have got.
    longest: Duration,
    withheld: Vec<Output>,
}

impl Promise {
    /// Before the first lease nothing can be promised.
    pub(super) fn new() -> Self {
        let lease = NodeLease { until: Moment(0), length: Duration::ZERO };
        Self { lease, longest: Duration::ZERO, withheld: Vec::new() }
    }

    /// The state that decides what happens next, for searches.
    pub(super) fn key(&self) -> (NodeLease, Duration, usize) {
        (self.lease, self.longest, self.withheld.len())
    }

    fn most(&self) -> Duration {
        self.lease.length * 7 / 10
    }

    fn may_answer(&self, now: Moment) -> bool {
        now.after(self.longest) <= self.lease.until
    }
}

impl Sessions {
    /// The lease of the node was renewed, or has ended.
    pub(super) fn set_lease(&mut self, now: Moment, lease: NodeLease) {
        let Some(promise) = &mut self.promise else { return };
        promise.lease = lease;
        promise.longest = promise.longest.max(promise.most());
        if lease.until > now {
            return;
        }
        // The grants have ended with the lease. A client over HTTP gets no other news of that.
        for output in &mut promise.withheld {
            if let Output::Answer(_, answer @ Answer::Leased(_)) = output {
                *answer = Answer::Refused(no_member());
            }
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

    /// Refuse to go on with a session before the node knows how long a lease is: the client would
    /// get a TTL of zero. The client tries again.
    pub(super) fn check_lease_length(&self) -> Result<(), Refusal> {
        match &self.promise {
            Some(promise) if promise.lease.length.is_zero() => Err(no_member()),
            _ => Ok(()),
        }
    }

    /// Hold back the answers among the outputs from `first` on while the node may not give them, or
    /// give those that were held back before.
    pub(super) fn withhold(&mut self, now: Moment, first: usize, out: &mut Vec<Output>) {
        let Some(promise) = &mut self.promise else { return };
        if promise.may_answer(now) {
            if !promise.withheld.is_empty() {
                out.splice(first..first, promise.withheld.drain(..));
            }
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
        promise.withheld.extend(out.extract_if(first.., answers));
        // The answers to a client that is gone are of no use.
        promise.withheld.retain(|output| match output {
            Output::Tell(connection, _) | Output::Greet(connection, ..) => in_session(connection),
            _ => true,
        });
    }
}

fn no_member() -> Refusal {
    let text = "this node is no member of its group at the moment, so it grants no locks; ask \
                again later, or see what `doorway members` tells";
    refusal(Code::Unavailable, text)
}
