//! The events of a session.

use std::time::Duration;

use doorway_protocol::{
    AuditEntry, Fence, LastHolder, LedgerTrouble, LockReport, Locks, MembersReport, Name,
    NodeStatus, Refusal, Reply, Scope, SessionId,
};

/// Something that happened to a session. Every request is answered by exactly one event with its
/// number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The node has welcomed the client.
    Welcome {
        /// The name of the node.
        node: String,
        /// The version of the protocol that the node speaks with the client.
        version: u16,
        /// Who shares the locks of the node.
        scope: Scope,
        /// The number of the session; none for a client that only asks questions.
        session: Option<SessionId>,
        /// The TTL of the session.
        ttl: Duration,
        /// True if the session was resumed, false if it is new.
        resumed: bool,
    },
    /// The client holds the lock.
    Granted {
        /// The number of the request.
        number: u64,
        /// The name of the lock.
        lock: Name,
        /// The fence of the grant.
        fence: Fence,
    },
    /// The request was refused, by the node or because no node could be reached.
    Refused {
        /// The number of the request.
        number: u64,
        /// Why.
        refusal: Refusal,
    },
    /// The request was sent and no answer came, so it may have been carried out or not. Only
    /// requests that change something end like this. A request for a lock does not: if it was
    /// granted, the machine releases the lock.
    Unknown {
        /// The number of the request.
        number: u64,
        /// Why there is no answer.
        refusal: Refusal,
    },
    /// The grant is not held any more.
    Released {
        /// The number of the request.
        number: u64,
        /// True if the grant was held until it was released, false if it was lost before.
        held: bool,
    },
    /// The node answered a heartbeat or a question.
    Answer {
        /// The number of the request.
        number: u64,
        /// The answer.
        answer: Answer,
    },
    /// A grant was lost: another client may hold the lock.
    Lost {
        /// The name of the lock.
        lock: Name,
        /// The fence of the grant.
        fence: Fence,
        /// Why the grant was lost.
        reason: String,
    },
    /// The node is stopping, and takes no more requests.
    Stopping {
        /// How long it is until the node stops.
        within: Duration,
    },
    /// The node does not serve this client, for this reason. All requests were refused with it.
    Closed(Refusal),
}

/// The answer of a node to a question.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The session is alive.
    Alive,
    /// A report about a lock.
    Lock(Box<LockReport>),
    /// A page of a list of locks.
    Locks(Locks),
    /// A report about the node.
    Status(Box<NodeStatus>),
    /// The request was carried out, or what it waited for has happened.
    Done,
    /// The members of the node's group, after the change that was asked for.
    Members(Box<MembersReport>),
    /// The next entries of the audit log of the group, the oldest first.
    Audit(Vec<AuditEntry>),
    /// How the rules for locks arrange the members, one line for people each.
    Arranged(Vec<String>),
    /// The client has taken a window of time.
    Window {
        /// The lock of the window, which tells its start and its period.
        lock: Name,
        /// The fence of the grant.
        fence: Fence,
        /// How much of the window was left when the node answered.
        left: Duration,
    },
    /// Why the node cannot write its ledger; none if it can.
    Ledger(Option<LedgerTrouble>),
    /// The last known holders of a lock at members that do not answer.
    LastHolders(Vec<LastHolder>),
}

impl Answer {
    /// The answer in a reply and the number of its question, if the reply answers a question.
    pub(super) fn of(reply: Reply) -> Option<(u64, Self)> {
        Some(match reply {
            Reply::Alive(number) => (number, Self::Alive),
            Reply::Lock(number, report) => (number, Self::Lock(report)),
            Reply::Locks(number, locks) => (number, Self::Locks(locks)),
            Reply::Status(number, status) => (number, Self::Status(status)),
            Reply::Done(number) => (number, Self::Done),
            Reply::Members(number, report) => (number, Self::Members(report)),
            Reply::Audit(number, entries) => (number, Self::Audit(entries)),
            Reply::Arranged(number, lines) => (number, Self::Arranged(lines)),
            Reply::Ledger(number, trouble) => (number, Self::Ledger(trouble)),
            Reply::LastHolders(number, holders) => (number, Self::LastHolders(holders)),
            Reply::Window { number, lock, fence, left_ms } => {
                (number, Self::Window { lock, fence, left: Duration::from_millis(left_ms) })
            }
            _ => return None,
        })
    }
}
