//! A session: the client for which locks are held and waited for, and how long the session lives.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::text::cut;
use doorway_protocol::{Claim, Fence, Life, Mode, Moment, Name, Secret};

use super::event::{AskId, Connection, ProcessId};
use super::hello::DESCRIPTION;
use super::leases::Key;
use super::rewrite::SessionChange;
use super::standing::GRACE;
use crate::ledger::{GrantRecord, Record, SessionRecord};
use crate::principal::Principal;

/// How many bytes of the name of a principal the ledger keeps. Every name fits: the name of a
/// client has at most 63 bytes, and the prefix before it is short.
const PRINCIPAL: usize = 80;

/// How many bytes of a client's description the ledger keeps: all of it.
const CLIENT: usize = DESCRIPTION;

/// A session of a client.
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Clone, Debug, Hash)]
pub(super) struct Session {
    pub(super) number: u64,
    pub(super) secret: Secret,
    pub(super) principal: Arc<Principal>,
    /// The description of the client, for people.
    pub(super) client: Arc<str>,
    /// How long the session lives without a message from its client. [`UNLIMITED`] if it lives with
    /// its processes, or is a lease without end.
    pub(super) ttl: Duration,
    /// The TTL that the client was told last, where the membership of the node can end.
    pub(super) told: Duration,
    pub(super) life: Life,
    /// Whether the client may be on another machine. Then the end of a connection proves nothing.
    pub(super) remote: bool,
    /// The process that the session lives with, or that opened its connection.
    pub(super) process: Option<ProcessId>,
    /// The node has seen the socket that the session's processes hold: see [`Secret::holder`].
    pub(super) holder: bool,
    /// When the client was heard last.
    pub(super) heard: Moment,
    pub(super) connection: Option<Connection>,
    /// The last connection over which the session went on, even if it has ended.
    pub(super) newest: Option<Connection>,
    /// Whether the shell watches the processes of the session.
    pub(super) watched: bool,
    /// The process that opened the connection has ended; another one may have the connection.
    pub(super) orphan: bool,
    /// What the session holds. A shared lock may be held several times, with equal fences.
    pub(super) grants: BTreeMap<(Name, Fence, AskId), Grant>,
    /// The requests that wait, by their numbers.
    pub(super) waiting: BTreeMap<u64, AskId>,
    /// The grants by the numbers of their requests, if requests may be repeated.
    pub(super) answered: Option<BTreeMap<u64, (Name, Fence)>>,
    /// The place of the session in the ledger.
    pub(super) place: Option<u32>,
    /// A change that is being written into the ledger.
    pub(super) rewriting: Option<SessionChange>,
    /// Whether this is a lease that may hold several locks: see `standing`.
    pub(super) standing: bool,
    /// Whether such a lease has lost a lock. Its client learns that by its next heartbeat, which
    /// fails.
    pub(super) doomed: bool,
    /// The request over HTTP to which the session belongs.
    pub(super) key: Option<Key>,
    /// The calls that wait for the answer.
    pub(super) callers: BTreeSet<Connection>,
}

/// A lock that a session holds.
#[derive(Clone, Debug, Hash)]
pub(super) struct Grant {
    /// The number of the request that was granted.
    pub(super) request: u64,
    /// The number of permits, if the client asked for a number that is not configured.
    pub(super) permits: Option<u32>,
    /// How many numbers after its fence belong to the grant, if its client was told that it may
    /// keep it.
    pub(super) numbers: u32,
    /// The place of the grant in the ledger.
    pub(super) place: Option<u32>,
    /// Whether the group was asked to keep the grant, even if the node dies.
    pub(super) held: bool,
    /// Whether the group has agreed to that.
    pub(super) kept: bool,
    /// Whether the client was told of the grant, or has named it.
    pub(super) informed: bool,
}

impl Session {
    /// Whether the session can live without a connection.
    pub(super) fn is_detached(&self) -> bool {
        !matches!(self.life, Life::Connection { .. })
    }

    /// Whether the session lives as long as its processes, without a time to live.
    pub(super) fn is_bound(&self) -> bool {
        match self.life {
            Life::Process { .. } => true,
            Life::Connection { .. } => self.ttl == UNLIMITED,
            Life::Lease => false,
        }
    }

    /// Whether this is a lease that holds its lock until that is released or broken.
    pub(super) fn is_endless(&self) -> bool {
        self.life == Life::Lease && self.ttl == UNLIMITED
    }

    /// The time to live of which the client is told. The client of a lease without end sends
    /// heartbeats while it waits for its lock, and none afterwards.
    pub(super) fn told_ttl(&self) -> Duration {
        if self.is_endless() { UNINFORMED } else { self.ttl }
    }

    /// Whether the client counts the time to live of its lease from the answer to a call that
    /// waits.
    pub(super) fn begins_with_answer(&self) -> bool {
        !self.callers.is_empty() && !self.standing
    }

    /// Whether the group keeps everything that the session holds, even if the node dies.
    pub(super) fn is_kept(&self) -> bool {
        self.life == Life::Lease && self.grants.values().all(|grant| grant.kept)
    }

    /// For how long the lease of the node must last if the client counts on its locks for this long
    /// from now on. What the group keeps needs no promise of the node.
    pub(super) fn cover(&self, told: Duration) -> Duration {
        if self.is_kept() { Duration::ZERO } else { told + self.grace() }
    }

    /// For how much longer than its time to live the node keeps the session.
    pub(super) fn grace(&self) -> Duration {
        if self.standing { GRACE } else { Duration::ZERO }
    }

    /// When the session ends if its client is not heard any more.
    pub(super) fn deadline(&self) -> Option<Moment> {
        // A client that waits for an answer is alive, unless it sends heartbeats besides.
        let waits = !self.callers.is_empty() && !self.standing;
        // A lock of which nobody was told must not be held for ever.
        let endless = self.is_endless() && self.grants.values().any(|grant| grant.informed);
        let ends = !self.is_bound() && !waits && !endless;
        ends.then(|| self.heard.after(self.told_ttl() + self.grace()))
    }

    /// The client knows of these grants.
    pub(super) fn inform(&mut self, knows: impl Fn(&(Name, Fence, AskId), &Grant) -> bool) {
        for (held, grant) in &mut self.grants {
            grant.informed |= knows(held, grant);
        }
    }

    /// The first grant of a lock with this fence.
    pub(super) fn find(&self, lock: &Name, fence: Fence) -> Option<AskId> {
        let all = (lock.clone(), fence, AskId(0))..=(lock.clone(), fence, AskId(u64::MAX));
        self.grants.range(all).next().map(|((.., ask), _)| *ask)
    }

    /// The first grant of a lock to which this number belongs: as its fence, or as the fence of a
    /// later entry of a client that keeps the grant.
    pub(super) fn find_entry(&self, lock: &Name, fence: Fence) -> Option<(Fence, AskId)> {
        let until = (lock.clone(), fence, AskId(u64::MAX));
        let ((found, its, _), grant) = self.grants.range(..=until).next_back()?;
        let ends = its.get() + u64::from(grant.numbers);
        let (own, ask) = (found == lock && fence.get() <= ends, self.find(lock, *its)?);
        own.then_some((*its, ask))
    }

    /// The session as the ledger keeps it.
    pub(super) fn record(&self) -> Record {
        let record = Box::new(SessionRecord {
            number: self.number,
            secret: self.secret,
            ttl_ms: ttl_ms(self.ttl),
            life: self.life,
            remote: self.remote,
            pid: self.process.map(|process| process.pid),
            started: self.process.and_then(|process| process.started),
            uid: self.principal.uid,
            principal: cut(&self.principal.name, PRINCIPAL).to_owned(),
            client: cut(&self.client, CLIENT).to_owned(),
        });
        match (self.holder, self.standing) {
            (true, _) => Record::Holder(record),
            (false, true) => Record::Standing(record),
            (false, false) => Record::Session(record),
        }
    }
}

/// The time to live of a session that lives as long as its processes, and of a lease without end.
pub const UNLIMITED: Duration = Duration::from_millis(u32::MAX as u64);

/// The time to live of a lease without end until its client was told that it has the lock.
const UNINFORMED: Duration = Duration::from_secs(10);

/// A time to live as it stands in messages.
pub(super) fn ttl_ms(ttl: Duration) -> u32 {
    u32::try_from(ttl.as_millis()).unwrap_or(u32::MAX)
}

impl GrantRecord {
    /// The grant as a client would claim it.
    pub(super) fn claim(&self) -> Claim {
        let mode = if self.shared { Mode::Shared } else { Mode::Exclusive };
        let (lock, permits) = (self.lock.clone(), self.permits);
        Claim { lock, mode, permits, fence: self.fence, request: self.request }
    }
}
