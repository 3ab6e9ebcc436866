//! The messages of a session.

use serde::{Deserialize, Serialize, Serializer};

use crate::report::{
    AuditEntry, LastHolder, LedgerTrouble, LockReport, Locks, MembersReport, NodeStatus, Scope,
};
use crate::text::cut;
use crate::versions::OpeningOnWire;
use crate::{Fence, Mode, Name, RuleTables};

/// The versions of the protocol that this crate speaks, the lowest and the highest.
pub const VERSIONS: (u16, u16) = (1, 6);

/// The number of a session. A node does not use a number twice while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionId(pub u64);

/// The secret of a session, which its client must show to resume it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Secret(pub [u8; 16]);

impl Secret {
    /// The name of the abstract Unix socket at which the processes of a session listen, if the
    /// session has no TTL.
    ///
    /// The client binds it and never accepts a connection. The system keeps the name for as long as
    /// any process has the socket open, also a process that has inherited it. So a node that was
    /// restarted can tell whether the session may still be in use, without mistaking one process
    /// for another. The name shows half of the secret; nobody can guess the other half.
    pub fn holder(&self) -> String {
        let shown = self.0[..8].iter().map(|byte| format!("{byte:02x}"));
        format!("doorway-holder-{}", shown.collect::<String>())
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)") // A secret must not appear in a log.
    }
}

/// The random number that a node keeps in its data directory. A node without a directory draws it
/// at each start. A node whose directory was emptied has another one, because nothing is left of
/// the sessions that it gave before.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DirectoryId(pub [u8; 16]);

impl std::fmt::Debug for DirectoryId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DirectoryId({:032x})", u128::from_be_bytes(self.0))
    }
}

/// Which node gave a session. No other node knows of the session, and none may believe what its
/// client claims.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NodeIdentity {
    /// The name of the node.
    pub name: String,
    /// The data directory of the node.
    pub directory: DirectoryId,
}

/// The first message of a client.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hello {
    /// The lowest and the highest version of the protocol that the client speaks.
    pub versions: (u16, u16),
    /// A description of the client, for people. The client's rights come from the connection or
    /// from the token, not from this.
    pub who: ClientInfo,
    /// A token that proves the client's rights, if the connection does not.
    pub token: Option<String>,
    /// The session that the client wants.
    pub opening: Opening,
}

/// A description of a client, shown to people who ask who holds a lock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClientInfo {
    /// What the client does, such as the command that runs under the lock.
    pub label: String,
    /// The name of the client's host.
    pub host: String,
    /// The client's process ID.
    pub pid: u32,
}

/// The session that a client wants to begin or to resume.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "OpeningOnWire", into = "OpeningOnWire")]
pub enum Opening {
    /// No session: the client only asks questions.
    Visit,
    /// A new session.
    New {
        /// The TTL: how long the session lives without a message from the client, in milliseconds.
        /// The maximum asks for none: the session then lives as long as the processes that have its
        /// connection, if the node can see them.
        ttl_ms: u32,
        /// What ends the session, besides its TTL.
        life: Life,
    },
    /// The session that the client had before its connection broke or the node was restarted.
    Resume {
        /// The node that gave the session; none if its welcome did not tell, as before version 3 of
        /// the protocol. Such a node does not understand a client that names it.
        node: Option<NodeIdentity>,
        /// The number of the session.
        session: SessionId,
        /// The secret of the session.
        secret: Secret,
        /// The TTL of the session, in milliseconds, as the node set it; the maximum if the client
        /// asked for none.
        ttl_ms: u32,
        /// What ends the session, as when it was opened.
        life: Life,
        /// The grants that the client believes it holds. The node releases all others of the
        /// session.
        held: Vec<Claim>,
        /// The numbers of the requests for locks that the client still waits for. If one of them
        /// was granted, the node says so again; the client sends the requests again with the same
        /// numbers. The node withdraws all others of the session.
        waiting: Vec<u64>,
        /// True if more than fits into this frame is claimed. Then frames with [`Claims`] follow,
        /// and the node answers after the last of them.
        more: bool,
    },
}

/// More of what a client claims when it resumes a session, if one frame cannot hold it all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Claims {
    /// The grants that the client believes it holds.
    pub held: Vec<Claim>,
    /// The numbers of the requests for locks that the client still waits for.
    pub waiting: Vec<u64>,
    /// True if another frame with claims follows.
    pub more: bool,
}

impl Claims {
    /// How many grants, and as many requests, fit into a frame whatever the lengths of their names.
    pub const MAX: usize = 1000;
}

/// What ends a session, besides its TTL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Life {
    /// The end of the connection. On a Unix socket the session ends at once, because a closed
    /// socket shows that the client is gone. Over a network, which may have cut the connection, the
    /// session lives on until its TTL has passed.
    Connection {
        /// True if other processes may have inherited the descriptor. Then the session lives for as
        /// long as one of them has it open, even if the process that opened it has ended.
        inherited: bool,
    },
    /// The end of a process on the node's machine. The session needs no connection and no
    /// heartbeats.
    ///
    /// The client passes a descriptor of the process (a pidfd, by `SCM_RIGHTS`) with the first
    /// bytes of its connection, which is a Unix socket. So the node takes no other process for it
    /// that got its number. Without a descriptor, the node believes the number only of a client of
    /// version 1 of the protocol that is in its own pid namespace.
    Process {
        /// The process ID. It has to be the one by which the node knows the process.
        pid: u32,
    },
    /// Nothing but the TTL. The session needs no connection, and every request that names one of
    /// its grants renews it.
    Lease,
}

/// A grant that a client believes it holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Claim {
    /// The name of the lock.
    pub lock: Name,
    /// How the lock is held.
    pub mode: Mode,
    /// The number of permits of the lock, if the client named one when it asked.
    pub permits: Option<u32>,
    /// The fence of the grant.
    pub fence: Fence,
    /// The number of the request that was granted.
    pub request: u64,
}

/// The first message of a node: a welcome, or why it does not serve this client.
pub type Greeting = Result<Welcome, Refusal>;

/// The answer of a node to a client that it serves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Welcome {
    /// The version of the protocol that both sides speak from now on.
    pub version: u16,
    /// The name of the node.
    pub node: String,
    /// Who shares the locks of the node.
    pub scope: Scope,
    /// The number and the secret of the session; none if the client only asks questions.
    pub session: Option<(SessionId, Secret)>,
    /// The TTL of the session, in milliseconds. It may be shorter than the client asked for. The
    /// maximum means that the session has no TTL: it lives as long as its processes. If the group
    /// agrees on its members, there is always a TTL: a client that has no answer of the node for
    /// that long has lost its locks, because the membership of the node may have ended.
    pub ttl_ms: u32,
    /// The claims of a resumed session that it does not hold any more. Those that do not fit into
    /// this frame follow as [`Reply::Lost`].
    pub lost: Vec<Claim>,
    /// The data directory of the node. It is sent since version 3 of the protocol.
    pub directory: Option<DirectoryId>,
}

/// Why a node does not do what a client asked for. The request has changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    /// The kind of reason, for programs.
    pub code: Code,
    /// The reason and, if there is one, the remedy, for people. A longer text is cut to
    /// [`Refusal::TEXT`] bytes when it is sent.
    #[serde(serialize_with = "serialize_cut")]
    pub text: String,
}

impl Refusal {
    /// The maximum length of a reason that is sent, in bytes.
    pub const TEXT: usize = 4096;
}

/// Serialize a text, cut to [`Refusal::TEXT`] bytes so that the frame does not become too long.
fn serialize_cut<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(cut(text, Refusal::TEXT))
}

/// Why a request was refused. New codes are added at the end, because a code's position is its
/// number on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// The request is not valid, such as a name that is too long or a number out of range.
    Invalid,
    /// The client has no right to do that.
    Forbidden,
    /// The client has reached a limit of the node.
    Busy,
    /// The lock was not free, or did not become free in time.
    NotFree,
    /// The lock cannot be held in that way: not shared, or not with that number of permits.
    NotServed,
    /// The session or the grant does not exist any more.
    Gone,
    /// The node is stopping, or does not grant locks yet.
    Unavailable,
    /// The lock is out of order until the next view begins.
    Broken,
    /// The session that the client wants to resume is one of another node, which may still keep it.
    /// Only a client that names the node of its session gets this answer.
    Elsewhere,
}

/// How long to wait for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Wait {
    /// Only for the answers of other nodes, but not for a client that holds the lock.
    No,
    /// At most this many milliseconds.
    Ms(u64),
    /// For as long as it takes.
    Forever,
}

/// Which lock a client wants, and how.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ask {
    /// The name of the lock.
    pub lock: Name,
    /// Whether to hold the lock alone or together with others.
    pub mode: Mode,
    /// The number of permits that the lock should have, if the client cares. The node refuses the
    /// request if the lock has another number of permits.
    pub permits: Option<u32>,
    /// How long to wait for the lock.
    pub wait: Wait,
}

/// A request of a client. The first number of each is the number of the request, which a client
/// does not use twice within a session.
///
/// If the connection breaks before the answer arrives, the client resumes its session and sends the
/// same request again. A node that has answered a number before gives the same answer again.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Request {
    /// Acquire a lock. Answered by [`Reply::Granted`] or [`Reply::Refused`].
    Acquire(u64, Ask),
    /// Withdraw the request with this number. A request that waits is answered by
    /// [`Reply::Refused`] with [`Code::Gone`]; a lock that was granted already is released.
    Withdraw(u64),
    /// Release the grant with this fence, which belongs to this session or to a session without a
    /// connection that the same client opened. Answered by [`Reply::Released`], also if it is asked
    /// more than once.
    Release(u64, Name, Fence),
    /// A heartbeat. Answered by [`Reply::Alive`].
    Alive(u64),
    /// Report about a lock. Answered by [`Reply::Lock`].
    Inspect(u64, Name),
    /// List locks, one page at a time. Answered by [`Reply::Locks`].
    List {
        /// The number of the request.
        number: u64,
        /// What the names of the locks begin with.
        prefix: String,
        /// The last name of the previous page; none for the first page.
        after: Option<Name>,
    },
    /// Report about the node. Answered by [`Reply::Status`].
    Status(u64),
    /// Take the lock away from the client that holds it with this fence. Answered by
    /// [`Reply::Done`].
    Break(u64, Name, Fence),
    /// Wait until no client holds the lock or waits for it, without acquiring it. Answered by
    /// [`Reply::Done`].
    AwaitFree(u64, Name),
    /// End the session. There is no answer.
    Bye,
    /// Renew the lease of the session without a connection that holds this grant and that the same
    /// client opened. Answered by [`Reply::Done`], or by [`Reply::Refused`] with [`Code::Gone`].
    Renew(u64, Name, Fence),
    /// Tell all clients to leave, grant nothing any more, and end the node when no lock is held.
    /// Only the user of the node and root may ask for this, over the Unix socket. Answered by
    /// [`Reply::Done`], or by [`Reply::Refused`] with [`Code::NotFree`] if locks are still held
    /// after this many milliseconds; 0 stands for the `drain` of the node's settings. Since version
    /// 2 of the protocol.
    Drain(u64, u64),
    /// Look for the socket that the processes of this session hold open: see [`Secret::holder`].
    /// Answered by [`Reply::Done`] if the node can see it, otherwise by [`Reply::Refused`]. Since
    /// version 2 of the protocol.
    Evidence(u64),
    /// Report or change the members of a group that agrees on them. Every client may ask for the
    /// report; only the user of the node and root may change something, over the Unix socket.
    /// Answered by [`Reply::Members`]. Since version 2 of the protocol.
    Members(u64, MembersRequest),
    /// Take the window of time that is current by the clock of the node, if no client has taken it:
    /// see [`Window`](crate::Window). It stays taken when the connection and the session end. The
    /// right to acquire the lock is needed. Answered by [`Reply::Window`], or by [`Reply::Refused`]
    /// with [`Code::NotFree`] if the window was taken before. Since version 4 of the protocol.
    Once {
        /// The number of the request.
        number: u64,
        /// The name of the lock.
        lock: Name,
        /// The period of the windows, in milliseconds.
        period_ms: u64,
        /// Random bytes. A request that is repeated with the same key takes the window only once.
        key: [u8; 16],
        /// A description of the client, for people.
        who: ClientInfo,
    },
    /// List the windows of a lock that were taken, at all members that answer. Answered by
    /// [`Reply::Locks`] with the locks of the windows. Since version 4 of the protocol.
    Windows(u64, Name),
    /// Acquire a lock, and keep it after the client has left it, until somebody else wants it.
    /// Answered by [`Reply::Kept`], or as [`Request::Acquire`] is: if the answer is
    /// [`Reply::Granted`], the client must release the lock when it leaves. Since version 5 of the
    /// protocol.
    Keep(u64, Ask),
    /// The client is inside with this grant, which it was told is wanted, and will release it when
    /// it leaves. There is no answer. Since version 5 of the protocol.
    InUse(Name, Fence),
    /// Report whether the node can write its ledger. Answered by [`Reply::Ledger`]. Since version 6
    /// of the protocol.
    Ledger(u64),
    /// Report which clients held a lock at members that do not answer now, when this node heard of
    /// that last. Answered by [`Reply::LastHolders`]. Since version 6 of the protocol.
    LastHolders(u64, Name),
}

/// What a client asks about the members of a group that agrees on them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum MembersRequest {
    /// Report the members.
    Show,
    /// Found the group, with the machines that the settings of the node name.
    Init {
        /// The lease of members, in milliseconds; without one, that of the node's settings.
        lease_ms: Option<u32>,
        /// The group goes on where a group with a fixed list of members has ended. The number is
        /// a view that is known to be as high as any of that group, or 0. Without this, no machine
        /// may have belonged to another group.
        from_fixed: Option<u64>,
    },
    /// Add a machine to the group.
    Add {
        /// The name of its node.
        name: String,
        /// The address of the node, `host:port`.
        address: String,
    },
    /// Remove a machine from the group.
    Remove {
        /// The name of its node.
        name: String,
        /// True to remove it even if the voters that are left have no majority.
        force: bool,
    },
    /// Accept the new data directory of a machine that belongs to the group.
    Replace {
        /// The name of its node.
        name: String,
    },
    /// Change the lease of members, in milliseconds.
    Lease(u32),
    /// Report what operators did, after the entry with this number. Only the user of the node and
    /// root may ask for it. Answered by [`Reply::Audit`].
    Log(u64),
    /// Change the rules for locks.
    Rules {
        /// The new rules, all of them.
        rules: RuleTables,
        /// The hash of the rules that they replace. If the group has others by now, nothing is
        /// changed.
        replaces: u64,
        /// True to change them even if more clients hold a lock than the new rules let in.
        force: bool,
    },
    /// Report how the rules arrange the members, also in a group whose members are fixed. Answered
    /// by [`Reply::Arranged`].
    Arranged,
    /// Found the group anew from a backup, with the machines that the settings of the node name.
    Restore {
        /// The backup.
        backup: Box<GroupBackup>,
        /// The lease of members, in milliseconds; without one, that of the backup.
        lease_ms: Option<u32>,
        /// A view that is known to be as high as any of the former group, or 0.
        above: u64,
        /// True to look whether it is possible, and to change nothing.
        check: bool,
    },
}

/// What a group has agreed on about itself, as `doorway members backup` prints it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupBackup {
    /// The name of the group.
    pub group: String,
    /// The number of the group, in hexadecimal digits.
    pub cluster: String,
    /// The newest view that the members had agreed on.
    pub view: u64,
    /// The lease of members, in milliseconds.
    pub lease_ms: u32,
    /// The longest lease on which a member may count, in milliseconds. It is longer than the lease
    /// if that was made shorter just before the backup.
    pub longest_lease_ms: u32,
    /// The machines of the group.
    pub seats: Vec<BackupSeat>,
    /// The rules for locks.
    pub rules: RuleTables,
}

/// A machine in a [`GroupBackup`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackupSeat {
    /// The name of its node.
    pub name: String,
    /// The address of the node, `host:port`.
    pub address: String,
    /// The number of its data directory, in hexadecimal digits.
    pub seat: String,
    /// Whether the machine took part in votes when the backup was made.
    pub voter: bool,
}

/// A message of a node after its greeting: an answer, with the number of the request, or news.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Reply {
    /// The client holds the lock now, with this fence.
    Granted(u64, Fence),
    /// The request was refused.
    Refused(u64, Refusal),
    /// The grant is not held any more. True if it was held until now.
    Released(u64, bool),
    /// The answer to a heartbeat: the session is alive.
    Alive(u64),
    /// A report about a lock.
    Lock(u64, Box<LockReport>),
    /// A page of a list of locks.
    Locks(u64, Locks),
    /// A report about the node.
    Status(u64, Box<NodeStatus>),
    /// The request was carried out, or what it waited for has happened.
    Done(u64),
    /// News: the client does not hold this grant any more, for this reason.
    Lost(Name, Fence, #[serde(serialize_with = "serialize_cut")] String),
    /// News: the node stops in this many milliseconds, and takes no more requests.
    Stopping(u64),
    /// The members of the group, after the change that was asked for.
    Members(u64, Box<MembersReport>),
    /// The next entries of the audit log, the oldest first; none if there are no more.
    Audit(u64, Vec<AuditEntry>),
    /// How the rules arrange the members, one line for people each: the rules that say something
    /// about it, and what differs from them in this view or without one of the members.
    Arranged(u64, Vec<String>),
    /// The client has taken a window of time.
    Window {
        /// The number of the request.
        number: u64,
        /// The lock of the window, which tells its start and its period.
        lock: Name,
        /// The fence of the grant. The client can release the window with it, if it has not used
        /// the window.
        fence: Fence,
        /// How much of the window is left, in milliseconds.
        left_ms: u64,
    },
    /// The client holds the lock now, and may keep it after it has left. Until it is told
    /// [`Reply::Wanted`], it may enter again without asking, each time with the next number as its
    /// fence. Requests name the grant by the first fence. Since version 5 of the protocol.
    Kept {
        /// The number of the request.
        number: u64,
        /// The fence of the grant.
        fence: Fence,
        /// How many numbers after the fence belong to the grant.
        more: u32,
    },
    /// News: somebody else wants the lock that the client keeps with this grant. A client that is
    /// outside answers by [`Request::Release`], and one that is inside by [`Request::InUse`]. Since
    /// version 5 of the protocol.
    Wanted(Name, Fence),
    /// Why the ledger of the node cannot be written; none if it can be. Since version 6 of the
    /// protocol.
    Ledger(u64, Option<LedgerTrouble>),
    /// The last known holders of a lock at members that do not answer now. Since version 6 of the
    /// protocol.
    LastHolders(u64, Vec<LastHolder>),
}

impl Reply {
    /// The number of the request that this answers; none if it is news.
    pub fn number(&self) -> Option<u64> {
        match self {
            Self::Granted(number, _)
            | Self::Refused(number, _)
            | Self::Released(number, _)
            | Self::Alive(number)
            | Self::Lock(number, _)
            | Self::Locks(number, _)
            | Self::Status(number, _)
            | Self::Done(number)
            | Self::Members(number, _)
            | Self::Audit(number, _)
            | Self::Arranged(number, _)
            | Self::Ledger(number, _)
            | Self::LastHolders(number, _)
            | Self::Window { number, .. }
            | Self::Kept { number, .. } => Some(*number),
            Self::Lost(..) | Self::Stopping(_) | Self::Wanted(..) => None,
        }
    }
}
