//! The words of a session.

use serde::{Deserialize, Serialize, Serializer};

use crate::report::{LockReport, Locks, NodeStatus, Scope};
use crate::{Fence, Mode, Name};

/// The versions of the protocol that this crate speaks, the lowest and the highest.
pub const VERSIONS: (u16, u16) = (1, 1);

/// A session, by a number that its node gave it. It is not repeated while the node lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionId(pub u64);

/// What only the client of a session knows, so that nobody else can go on with it.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret(pub [u8; 16]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)") // It belongs in no log.
    }
}

/// The first word of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The lowest and the highest version that it speaks.
    pub versions: (u16, u16),
    /// Who says so. People read it; rights come from the connection.
    pub who: ClientInfo,
    /// What proves its rights where the connection does not.
    pub token: Option<String>,
    /// Which session it wants.
    pub opening: Opening,
}

/// Who a client is, for people who ask who holds a lock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientInfo {
    /// What it does, such as the command that runs under the lock.
    pub label: String,
    /// Its host.
    pub host: String,
    /// Its process.
    pub pid: u32,
}

/// Which session a client wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Opening {
    /// None: it only asks questions.
    Visit,
    /// A new one.
    New {
        /// How long it lives without being heard of, in milliseconds.
        ttl_ms: u32,
        /// With what it ends.
        life: Life,
    },
    /// The one it had, at this node or at the one that was here before it crashed.
    Resume {
        /// Its number.
        session: SessionId,
        /// The proof.
        secret: Secret,
        /// As it was.
        ttl_ms: u32,
        /// As it was.
        life: Life,
        /// What the client believes to hold; the rest is released.
        held: Vec<Claim>,
        /// The requests for which it still waits: their grants, if any were made, are told again,
        /// and the requests come again with the same numbers. Others are withdrawn.
        waiting: Vec<u64>,
        /// Is that not all of it? Then [`Claims`] follow before the node answers.
        more: bool,
    },
}

/// More of what a client believes to have, where one frame does not hold it all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// What it believes to hold.
    pub held: Vec<Claim>,
    /// The requests for which it still waits.
    pub waiting: Vec<u64>,
    /// Do more of these follow?
    pub more: bool,
}

impl Claims {
    /// How many claims and requests fit into a frame, however long their names are.
    pub const MAX: usize = 1000;
}

/// With what a session ends, besides the end of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Life {
    /// With its connection: at once where that shows that nobody has it any more, after its time
    /// where the network may have cut it.
    Connection {
        /// Others may have inherited the descriptor, and while they have it the session lives, even
        /// when the process that opened it is gone.
        inherited: bool,
    },
    /// With a process of this machine; it needs no connection and no sign of life.
    Process {
        /// The process.
        pid: u32,
    },
    /// With its time alone; every request that names it is a sign of life.
    Lease,
}

/// A grant that a client believes to have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The lock.
    pub lock: Name,
    /// How it is held.
    pub mode: Mode,
    /// Of how many permits, where the client said so.
    pub permits: Option<u32>,
    /// The fence of the grant.
    pub fence: Fence,
    /// The request to which it was the answer.
    pub request: u64,
}

/// The first frame of a node: its welcome, or why it does not talk to this client.
pub type Greeting = Result<Welcome, Refusal>;

/// The first word of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The version to speak.
    pub version: u16,
    /// The name of the node.
    pub node: String,
    /// Whom its locks are for.
    pub scope: Scope,
    /// The session; none for a visit.
    pub session: Option<(SessionId, Secret)>,
    /// How long the session lives without being heard of, which may be less than was asked for.
    pub ttl_ms: u32,
    /// Which claims of a session that was resumed are not held any more. What does not fit into the
    /// frame follows as [`Reply::Lost`].
    pub lost: Vec<Claim>,
}

/// Something the node does not do, and why. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    /// What kind of reason.
    pub code: Code,
    /// The reason and, if there is one, the remedy. Only [`Refusal::TEXT`] bytes of it are sent.
    #[serde(serialize_with = "brief")]
    pub text: String,
}

impl Refusal {
    /// How many bytes of a reason are sent.
    pub const TEXT: usize = 4096;
}

/// Nobody reads more of a reason, and with more of it a frame might be too long.
fn brief<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&text[..text.floor_char_boundary(Refusal::TEXT)])
}

/// Kinds of reasons. New ones are added at the end, for their order is their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// The request makes no sense: a name that is none, a number out of range.
    Invalid,
    /// The client may not do that.
    Forbidden,
    /// A limit of the node is reached.
    Busy,
    /// The lock was not free at once, or not in time.
    NotFree,
    /// The lock is not served that way: not shared, or not with so many permits.
    NotServed,
    /// The session or the grant is no more.
    Gone,
    /// The node stops, or does not serve yet.
    Unavailable,
    /// The lock is out of order until the next view.
    Broken,
}

/// How long to wait for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wait {
    /// Not at all; other nodes may be asked, but nobody is waited for who is inside.
    No,
    /// So many milliseconds.
    Ms(u64),
    /// As long as it takes.
    Forever,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The lock.
    pub lock: Name,
    /// Alone or with others.
    pub mode: Mode,
    /// Of how many permits one is wanted, if the client says so: the node refuses another number.
    pub permits: Option<u32>,
    /// How long.
    pub wait: Wait,
}

/// A request of a client, with its number, which is not repeated within a session.
///
/// A client that lost its connection before the answer sends the very same again after it resumed
/// its session: to a number that it knows the node gives the answer that it gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Wait for a lock. Answered by `Granted` or `Refused`.
    Acquire(u64, Ask),
    /// The answer to that request is not wanted any more: it is `Refused` with `Gone`, or was
    /// granted before and is to be released.
    Withdraw(u64),
    /// Release the grant with this fence, of this session or of one without a connection that the
    /// same client made. Answered by `Released`, as often as it is asked.
    Release(u64, Name, Fence),
    /// A sign of life, answered by `Alive`.
    Alive(u64),
    /// Tell about a lock.
    Inspect(u64, Name),
    /// The locks that begin like this, after that one.
    List {
        /// The number.
        number: u64,
        /// How names begin.
        prefix: String,
        /// The last name of the page before.
        after: Option<Name>,
    },
    /// Tell about the node.
    Status(u64),
    /// Take the lock from whoever holds it with this fence.
    Break(u64, Name, Fence),
    /// Wait until nobody is inside or waits any more, without entering.
    AwaitFree(u64, Name),
    /// The session is over.
    Bye,
    /// A sign of life for the session without a connection that holds this grant and that the same
    /// client made. Answered by `Done`, or `Refused` with `Gone`.
    Renew(u64, Name, Fence),
}

/// What a node says after its first word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The lock is yours.
    Granted(u64, Fence),
    /// No, and why.
    Refused(u64, Refusal),
    /// Nothing with that fence is held any more; `true` if it was until now.
    Released(u64, bool),
    /// The session lives.
    Alive(u64),
    /// About a lock.
    Lock(u64, Box<LockReport>),
    /// About locks.
    Locks(u64, Locks),
    /// About the node.
    Status(u64, Box<NodeStatus>),
    /// It is done: broken, or free.
    Done(u64),
    /// Nobody asked: this grant is no more.
    Lost(Name, Fence, #[serde(serialize_with = "brief")] String),
    /// Nobody asked: the node stops in so many milliseconds, and takes no more requests.
    Stopping(u64),
}

impl Reply {
    /// The request that it answers; none if nobody asked.
    pub fn number(&self) -> Option<u64> {
        match self {
            Self::Granted(number, _)
            | Self::Refused(number, _)
            | Self::Released(number, _)
            | Self::Alive(number)
            | Self::Lock(number, _)
            | Self::Locks(number, _)
            | Self::Status(number, _)
            | Self::Done(number) => Some(*number),
            Self::Lost(..) | Self::Stopping(_) => None,
        }
    }
}
