//! What a session has to tell.

use std::time::Duration;

use doorway_protocol::{
    Fence, LockReport, Locks, Name, NodeStatus, Refusal, Reply, Scope, SessionId,
};

/// Something that happened to a session. Every request gets exactly one answer, with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The node speaks with us.
    Welcome {
        /// Its name.
        node: String,
        /// Whom its locks are for.
        scope: Scope,
        /// The session; none for a visit.
        session: Option<SessionId>,
        /// How long it lives without being heard of.
        ttl: Duration,
        /// Is it the session that we had before?
        resumed: bool,
    },
    /// The lock is ours.
    Granted {
        /// The request.
        number: u64,
        /// The lock.
        lock: Name,
        /// The fence of the grant.
        fence: Fence,
    },
    /// No, and why.
    Refused {
        /// The request.
        number: u64,
        /// The reason.
        refusal: Refusal,
    },
    /// The request was sent and nobody answers: it may have been done or not. Only requests that
    /// change something end like this, and those for locks do not: their grants are given back.
    Unknown {
        /// The request.
        number: u64,
        /// Why there is no answer.
        refusal: Refusal,
    },
    /// Nothing with that fence is held any more.
    Released {
        /// The request.
        number: u64,
        /// Was it held until now? If not, it was lost before.
        held: bool,
    },
    /// The node answered to a sign of life, or to a question.
    Answer {
        /// The request.
        number: u64,
        /// What it says.
        answer: Answer,
    },
    /// A grant is no more, and nobody asked for that.
    Lost {
        /// The lock.
        lock: Name,
        /// The fence of the grant.
        fence: Fence,
        /// Why.
        reason: String,
    },
    /// The node stops, and takes no more requests.
    Stopping {
        /// So long from now.
        within: Duration,
    },
    /// The node does not talk to us. All requests were refused for the same reason.
    Closed(Refusal),
}

/// What a node says to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The session lives.
    Alive,
    /// About a lock.
    Lock(Box<LockReport>),
    /// About locks.
    Locks(Locks),
    /// About the node.
    Status(Box<NodeStatus>),
    /// It is done.
    Done,
}

impl Answer {
    /// The answer in a reply, with the number of its question, if it is one.
    pub(super) fn of(reply: Reply) -> Option<(u64, Self)> {
        Some(match reply {
            Reply::Alive(number) => (number, Self::Alive),
            Reply::Lock(number, report) => (number, Self::Lock(report)),
            Reply::Locks(number, locks) => (number, Self::Locks(locks)),
            Reply::Status(number, status) => (number, Self::Status(status)),
            Reply::Done(number) => (number, Self::Done),
            _ => return None,
        })
    }
}
