//! What the node may promise its clients, if its own membership can end.
//!
//! In a group that agrees on its members, a node may grant locks until the end of its lease, which
//! it renews all the time. If it cannot, others may hold its locks from then on. So no client may
//! believe in a grant for longer than that.
//!
//! A client counts the TTL of its session from when it sent its last message that the node has
//! answered. So two rules suffice:
//!
//! 1. No TTL is longer than seven tenths of a lease. For a client that sends heartbeats, none is
//!    longer than two fifths of it, or than a second, but never more than half of the lease. A
//!    lease that is renewed all the time has more than that left, so clients notice nothing, even
//!    if a renewal is late. The exception are leases that the group keeps: see `holds`.
//! 2. The node answers a client with a session only while its lease lasts for the TTL of that
//!    client from now on. Otherwise the answers wait until the lease is renewed. Clients that get
//!    no answer count their locks as lost before the lease of the node ends. If the lease was made
//!    shorter, clients with a longer TTL have to connect again, and are told a shorter one.
//!
//! The news that a lock is lost is not an answer, and is sent at once. If the client has yet to be
//! told that it has the lock, it is told instead that its request has failed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use doorway_protocol::{Code, Fence, Life, Moment, Refusal, Reply};

use super::Sessions;
use super::connections::{AttachedSession, ConnectionState};
use super::event::{Answer, Connection, LeaseAnswer, LeaseTime, Output};
use super::open::End;
use super::refusals::{gone, refusal};
use super::session::{Session, UNLIMITED, ttl_ms};

/// The lease of a node in a group that agrees on its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeLease {
    /// When it ends.
    pub until: Moment,
    /// How long a lease lasts.
    pub length: Duration,
}

impl NodeLease {
    /// The longest TTL of a session that the node can promise by itself.
    fn longest(self, life: Life) -> Duration {
        if life == Life::Lease { self.longest_lease() } else { self.longest_ttl() }
    }

    /// The longest lease that the node can promise by itself.
    fn longest_lease(self) -> Duration {
        self.length * 7 / 10
    }

    /// The longest TTL of a client that sends heartbeats. A node counts on nine tenths of its own
    /// lease and renews it every tenth of it. So a renewal may be late by four tenths before
    /// answers wait, which is enough to elect another leader. But clients lost their locks at
    /// restarts with a TTL of 0.8 s, so a lease of less than 2.5 s leaves less time for that.
    fn longest_ttl(self) -> Duration {
        (self.length * 2 / 5).max(Duration::from_secs(1)).min(self.length / 2)
    }
}

/// How many answers may wait. A client that asks for more is disconnected.
const WITHHELD: usize = 100_000;

/// What may be promised, and the answers that wait.
#[derive(Clone, Debug)]
pub(super) struct Promise {
    lease: NodeLease,
    withheld: Vec<Output>,
}

impl Promise {
    /// Before the first lease nothing can be promised.
    pub(super) fn new() -> Self {
        let lease = NodeLease { until: Moment(0), length: Duration::ZERO };
        Self { lease, withheld: Vec::new() }
    }

    /// The state that decides what happens next, for searches.
    pub(super) fn key(&self) -> (NodeLease, usize) {
        (self.lease, self.withheld.len())
    }

    /// May a client with this TTL get an answer?
    fn may_answer(&self, now: Moment, ttl: Duration) -> bool {
        self.lease.until > now && now.after(ttl) <= self.lease.until
    }

    /// A grant is lost. If its client has yet to be told of the grant, it is told neither of the
    /// grant nor of the loss: another client may hold the lock when the answer goes out. Returns
    /// what the client is told now.
    ///
    /// Grants of different locks may have the same fence. `holds` says whether the client still has
    /// the grant of a request.
    fn lose(
        &mut self,
        connection: Connection,
        lost: Output,
        holds: impl Fn(u64) -> bool,
    ) -> Option<Output> {
        let Output::Tell(_, Reply::Lost(_, fence, reason)) = &lost else { return Some(lost) };
        let mut withheld = self.withheld.iter_mut().filter(|output| is_to(output, connection));
        let implies = |output: &&mut Output| match output {
            Output::Tell(
                _,
                Reply::Granted(number, granted) | Reply::Kept { number, fence: granted, .. },
            ) => granted == fence && !holds(*number),
            Output::Greet(..) => true,
            _ => false,
        };
        match withheld.find(implies) {
            None => Some(lost),
            Some(Output::Tell(_, reply)) => {
                if let Reply::Granted(number, _) | Reply::Kept { number, .. } = *reply {
                    *reply = Reply::Refused(number, lost_before(reason));
                }
                None
            }
            Some(_) => {
                // The greeting says that the client still holds the lock. The next one will not.
                self.withheld.retain(|output| !is_to(output, connection));
                Some(Output::Close(connection))
            }
        }
    }
}

impl Sessions {
    /// The lease of the node was renewed, or has ended.
    pub(super) fn set_lease(&mut self, now: Moment, lease: NodeLease, out: &mut Vec<Output>) {
        let Some(promise) = &mut self.promise else { return };
        // Before the node knows how long a lease lasts, it can promise nothing.
        let until = if lease.length.is_zero() { Moment(0) } else { lease.until };
        let lease = NodeLease { until, ..lease };
        let before = std::mem::replace(&mut promise.lease, lease);
        if lease.length < before.length {
            // Clients that count on more time than a lease has now must be told. They connect again
            // and learn it then. What they were promised before holds until its end.
            let longer = |session: &&Session| session.told > lease.longest(session.life);
            let longer = self.open.values().filter(longer);
            let connections = longer.filter_map(|session| session.connection);
            out.extend(connections.map(Output::Close));
        }
        if lease.until > now {
            return;
        }
        // The grants have ended with the lease. A client that calls gets no other news of that.
        for output in &mut promise.withheld {
            if let Output::Answer(_, answer @ (Answer::Leased(_) | Answer::Alive(_))) = output {
                *answer = Answer::Refused(no_member());
            }
        }
    }

    /// The longest lease that the node can promise by itself, if its own lease limits it.
    pub(super) fn longest_lease(&self) -> Option<Duration> {
        self.promise.as_ref().map(|promise| promise.lease.longest_lease())
    }

    /// The longest TTL of a client that sends heartbeats, if the node's own lease limits it.
    pub(super) fn longest_heartbeat_ttl(&self) -> Option<Duration> {
        self.promise.as_ref().map(|promise| promise.lease.longest_ttl())
    }

    /// Refuse a new session while the node is not a member of its group.
    pub(super) fn check_member(&self, now: Moment) -> Result<(), Refusal> {
        match &self.promise {
            Some(promise) if promise.lease.until <= now => Err(no_member()),
            _ => Ok(()),
        }
    }

    /// Refuse to go on with an unknown session before the node knows how long a lease lasts.
    pub(super) fn check_lease_known(&self) -> Result<(), Refusal> {
        match &self.promise {
            Some(promise) if promise.lease.length.is_zero() => Err(no_member()),
            _ => Ok(()),
        }
    }

    /// Whether the lease of the node lasts for the TTL of a session from now on. A session that
    /// lives with its processes has none.
    pub(super) fn covers(&self, now: Moment, session: u64) -> bool {
        let Some(promise) = &self.promise else { return true };
        let Some(session) = self.open.get(&session) else { return true };
        session.is_bound() || promise.may_answer(now, session.cover(session.ttl))
    }

    /// Hold back the answers among the outputs from `first` on while the node may not give them, or
    /// give those that were held back before.
    pub(super) fn withhold(&mut self, now: Moment, first: usize, out: &mut Vec<Output>) {
        let Some(promise) = &mut self.promise else { return };
        let earlier = std::mem::take(&mut promise.withheld);
        let (count, lease) = (earlier.len(), promise.lease);
        let fresh = out.split_off(first);
        // The answers to one client stay in their order.
        let mut waiting = BTreeSet::new();
        for (at, mut output) in earlier.into_iter().chain(fresh).enumerate() {
            let answer = answer(&mut output, &self.connections, &mut self.open, lease);
            let Some((to, ttl)) = answer else {
                // The earlier answers to a client that is gone are of no use.
                if at >= count || matches!(output, Output::Answer(..)) {
                    out.push(output);
                }
                continue;
            };
            if matches!(output, Output::Tell(_, Reply::Lost(..))) {
                let session = self.connections.get(&to).map(|connection| connection.session);
                let session = session.and_then(|it| match it {
                    AttachedSession::Open(number) => self.open.get(&number),
                    _ => None,
                });
                let holds = |request| {
                    let mut grants = session.iter().flat_map(|session| session.grants.values());
                    grants.any(|grant| grant.request == request)
                };
                out.extend(promise.lose(to, output, holds));
                continue;
            }
            if promise.may_answer(now, ttl) && !waiting.contains(&to) {
                if at < count {
                    check_lease(now, &mut output, &mut self.open);
                }
                out.push(output);
            } else if promise.withheld.len() < WITHHELD {
                waiting.insert(to);
                promise.withheld.push(output);
            } else {
                out.push(Output::Close(to));
            }
        }
    }

    /// A client does not wait for its answers any longer, or is gone. Returns whether some were
    /// held back. A lease of a call that its client does not know of, and cannot ask for again,
    /// ends. So does such a grant of a lease that may hold several locks.
    pub(super) fn forget_withheld(
        &mut self,
        now: Moment,
        connection: Connection,
        out: &mut Vec<Output>,
    ) -> bool {
        let Some(promise) = &mut self.promise else { return false };
        let forgotten = promise.withheld.extract_if(.., |output| is_to(output, connection));
        let forgotten: Vec<Output> = forgotten.collect();
        for output in &forgotten {
            let Output::Answer(_, Answer::Leased(lease)) = output else { continue };
            let Some(session) = self.open.get_mut(&lease.session) else { continue };
            if session.standing {
                // Its client sends heartbeats, and ends the lease by itself. But it does not know
                // of this grant.
                if let Some(request) = session.untold(lease.fence).filter(|_| !lease.renewed) {
                    let _ = self.withdraw(lease.session, request, out); // It is held.
                }
                continue;
            }
            session.heard = now;
            if session.key.is_none() && !lease.renewed {
                self.end(lease.session, End::Left, out);
            }
        }
        !forgotten.is_empty()
    }
}

impl Session {
    /// The request of the grant with this fence that the client was not told of. None if there are
    /// several: grants of different locks may have the same fence.
    fn untold(&self, fence: Fence) -> Option<u64> {
        let mut untold =
            self.grants.iter().filter(|((_, its, _), grant)| *its == fence && !grant.informed);
        let (_, grant) = untold.next()?;
        untold.next().is_none().then_some(grant.request)
    }
}

/// Is this told to a client over this connection?
fn is_to(output: &Output, connection: Connection) -> bool {
    match output {
        Output::Tell(to, _) | Output::Greet(to, ..) | Output::Answer(to, _) => *to == connection,
        _ => false,
    }
}

/// The session of a lease may have ended while its answer was held back. If it has not, its client
/// counts from now on.
fn check_lease(now: Moment, output: &mut Output, open: &mut BTreeMap<u64, Session>) {
    let Output::Answer(_, answer) = output else { return };
    let (number, fence) = match answer {
        Answer::Leased(lease) => (lease.session, Some(lease.fence)),
        Answer::Alive(lease) => (lease.session, None),
        _ => return,
    };
    let holds = |session: &&mut Session| {
        !session.doomed
            && fence.is_none_or(|fence| session.grants.keys().any(|(_, its, _)| *its == fence))
    };
    match open.get_mut(&number).filter(holds) {
        Some(session) => session.heard = now,
        None => *answer = Answer::Refused(gone()),
    }
}

/// If this answers a client that counts on its lock from now on: over which connection, and the TTL
/// of the client. The lease of the node limits the TTL, and may have changed since the output was
/// made.
fn answer(
    output: &mut Output,
    connections: &BTreeMap<Connection, ConnectionState>,
    open: &mut BTreeMap<u64, Session>,
    lease: NodeLease,
) -> Option<(Connection, Duration)> {
    let to = match output {
        Output::Tell(to, _) | Output::Greet(to, ..) => *to,
        Output::Answer(
            to,
            Answer::Leased(LeaseAnswer { session, ttl, .. })
            | Answer::Alive(LeaseTime { session, ttl }),
        ) => {
            let session = open.get(session);
            let grace = session.map(Session::grace).unwrap_or_default();
            let most = lease.longest_lease();
            // A lease that holds nothing may get a lock while its client counts on this answer. If
            // it is short, the group will not keep that lock.
            let grows = |session: &Session| session.grants.is_empty() && *ttl + grace <= most;
            if session.is_some_and(|session| session.is_kept() && !grows(session)) {
                return Some((*to, Duration::ZERO));
            }
            // A lease without end that was restored from the ledger. Its client is told nothing
            // else, so the answer waits until the group has agreed to keep it.
            if session.is_some_and(Session::is_endless) {
                return Some((*to, UNLIMITED));
            }
            *ttl = (*ttl).min(most.saturating_sub(grace));
            return Some((*to, *ttl + grace));
        }
        _ => return None,
    };
    let AttachedSession::Open(number) = connections.get(&to)?.session else { return None };
    let Some(session) = open.get_mut(&number) else { return Some((to, Duration::ZERO)) };
    if let Output::Greet(_, greeting, _) = output
        && let Ok(welcome) = &mut **greeting
    {
        let most = lease.longest(session.life);
        let ttl = session.told_ttl();
        session.told = if session.is_kept() { ttl } else { ttl.min(most) };
        welcome.ttl_ms = ttl_ms(session.told);
    }
    Some((to, session.cover(session.told)))
}

/// A lock was granted, and lost before the client was told so.
fn lost_before(reason: &str) -> Refusal {
    let text = format!("the lock was granted, and lost before the answer could be given: {reason}");
    refusal(Code::Unavailable, text)
}

fn no_member() -> Refusal {
    let text = "this node is not a member of its group at the moment, so it grants no locks; ask \
                again later, or see what `doorway members` tells";
    refusal(Code::Unavailable, text)
}

/// The lease of the node does not last for what a client asks for.
pub(super) fn not_covered() -> Refusal {
    let text = "this node waits for the renewal of its own membership, and promises nothing until \
                then: try again; `doorway members` tells more";
    refusal(Code::Unavailable, text)
}
