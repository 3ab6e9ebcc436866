//! What the sessions are told, and what they want done.

use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::{
    Ask, Claims, Fence, Greeting, Hello, Mode, Name, NamePattern, Refusal, Reply, Request, Secret,
    Wait,
};

use super::promise::NodeLease;
use crate::ledger::{LedgerContents, Record};
use crate::principal::Principal;
use crate::settings::{ClientSettings, Limits};

/// The number of a connection, which the shell chooses. Numbers grow in the order in which
/// connections are accepted. A call over HTTP counts as a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Connection(pub u64);

/// The number of a request at the node. A grant has the number of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId(pub u64);

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// A client has connected. It is admitted, unless [`Output::TurnAway`] follows.
    Connect {
        /// The connection.
        connection: Connection,
        /// Whether the client may be on another machine.
        remote: bool,
    },
    /// The client of a connection is known now.
    Identify {
        /// The connection.
        connection: Connection,
        /// The client.
        principal: Arc<Principal>,
    },
    /// A client has sent its hello. Answered by [`Output::Greet`].
    Hello(Box<Opening>),
    /// Bytes have come from a client, which show that it is alive.
    Heard(Connection),
    /// A client has sent a request. Those that the shell carries out itself, such as `Inspect` and
    /// `Break`, are ignored.
    Request(Connection, Request),
    /// A client without a session asks for something, over HTTP. Answered by [`Output::Answer`].
    Call(Connection, Arc<Principal>, Call),
    /// The client of a [`Call::Acquire`] does not want to wait any longer.
    CallTimedOut(Connection),
    /// A connection has ended.
    HangUp {
        /// The connection.
        connection: Connection,
        /// Whether the client closed it, or does not exist any more. False if the node closed it:
        /// the client may still believe in its locks, and come back.
        closed: bool,
    },
    /// The node grants a request of [`Output::Acquire`] or [`Output::Reclaim`].
    Granted(AskId, Fence),
    /// The node grants a request of [`Output::Acquire`], and has reserved this many numbers after
    /// the fence, so that the client can keep the grant. If the lock is wanted in the moment in
    /// which the shell passes this on, it passes on [`Input::Granted`] instead.
    GrantedToKeep(AskId, Fence, u32),
    /// Somebody else wants a lock, by the name that the node knows. If a client keeps it, it has to
    /// give it back.
    Wanted(Name),
    /// The node refuses a request of [`Output::Acquire`] or [`Output::Reclaim`].
    Refused(AskId, Refusal),
    /// A request of [`Output::Acquire`] waits at the node.
    Queued(AskId),
    /// The records of [`Output::Write`] were written, or could not be, for this reason.
    Written(AskId, Result<(), String>),
    /// The record of this session of [`Output::Rewrite`] was written, or could not be, for this
    /// reason.
    Rewritten(u64, Result<(), String>),
    /// The record at this place of [`Output::Erase`] was erased, or could not be, for this reason.
    Erased(u32, Result<(), String>),
    /// All records that could not be erased before were erased, because of [`Output::Probe`].
    AllErased,
    /// The ledger could not be synced to disk, for this reason.
    LedgerFailed(String),
    /// What [`Output::Probe`] asked for was done, or could not be, for this reason.
    Probed(Result<(), String>),
    /// What [`Output::Hold`] asked for was done, or was not.
    Held {
        /// The grant.
        ask: AskId,
        /// For how long.
        length: Duration,
        /// Why it was not done.
        kept: Result<(), Refusal>,
    },
    /// What [`Output::DropHold`] asked for was done, or is not known to be done, for this reason.
    Dropped(Name, Fence, Result<(), Refusal>),
    /// The node has lost a grant.
    Lost {
        /// The number of the session that held it.
        session: u64,
        /// The lock, by the name that the node knows.
        name: Name,
        /// The fence.
        fence: Fence,
    },
    /// The node has seen the socket that the processes of this connection's session hold. The
    /// request with this number asked for that, and is answered.
    HolderSeen(Connection, u64),
    /// The processes of a session, for which [`Output::Watch`] asked, have ended.
    ProcessEnded(u64),
    /// The settings were reloaded: these are the limits and the clients from now on.
    Configure(Box<Limits>, Vec<ClientSettings>),
    /// The group has changed the rules for locks: these are the patterns from now on, each with
    /// the number of permits of its locks.
    Rules(Vec<(NamePattern, u32)>),
    /// The lease of the node was renewed or has ended, in a group that agrees on its members.
    Lease(NodeLease),
    /// Time has passed.
    Tick,
    /// The ledger that the former process left. This comes first, if there is a ledger.
    Restored(Box<LedgerContents>),
    /// Grant nothing any more, tell all clients to leave, and wait until no lock is held.
    Drain(Duration),
    /// The process ends. Sessions and grants are left to the next process.
    Stop,
}

/// The hello of a client with what is known about the client.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The connection.
    pub connection: Connection,
    /// The client.
    pub principal: Arc<Principal>,
    /// Whether the client may be on another machine.
    pub remote: bool,
    /// The process that connected, if the node can see it.
    pub process: Option<ProcessId>,
    /// The hello.
    pub hello: Hello,
    /// The claims that followed the hello.
    pub claims: Vec<Claims>,
    /// Random bytes for a new session.
    pub secret: Secret,
}

/// What shows that the processes of a session exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Evidence {
    /// This process exists.
    Process(ProcessId),
    /// A process of this user has the socket of this secret open: see [`Secret::holder`].
    Holder(Secret, Option<u32>),
}

impl Evidence {
    /// Whether the evidence is about the process with this number.
    pub fn is_process(&self, pid: u32) -> bool {
        matches!(self, Self::Process(process) if process.pid == pid)
    }
}

/// A process of this machine: its process ID, and when it was started, because another process may
/// get the same ID later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProcessId {
    /// The process ID.
    pub pid: u32,
    /// When the process was started, in ticks since the machine was started; none if unknown.
    pub started: Option<u64>,
}

/// A request of a client that has no session.
#[derive(Clone, Debug)]
pub enum Call {
    /// Acquire a lock with a lease of its own.
    Acquire(Box<LeaseAsk>),
    /// Renew the lease of a grant, with another time to live if one is given.
    Renew(Name, Fence, Option<Duration>),
    /// Release a grant.
    Release(Name, Fence),
    /// End the request with this key, or the lease of this owner.
    Withdraw(Name, String),
    /// Take a lock from all sessions that hold it with this fence. Answered by [`Answer::Broken`].
    Break(Name, Fence),
    /// Open a lease that may hold several locks. Answered by [`Answer::Alive`].
    Open(Box<LeaseOpening>),
    /// Acquire a lock with such a lease.
    AcquireWith(Box<StandingAsk>),
    /// The heartbeat of such a lease, which has this number. Answered by [`Answer::Alive`].
    KeepAlive(u64),
    /// Let such a lease release a lock, or wait for it no longer. With the number of a request,
    /// only if that is the request. Answered by [`Answer::Withdrawn`].
    Unlock(u64, Name, Option<u64>),
    /// End such a lease. Answered by [`Answer::Released`].
    Revoke(u64),
}

/// A lease that may hold several locks, as its client asks for it.
#[derive(Clone, Debug)]
pub struct LeaseOpening {
    /// The time to live of the lease, in milliseconds.
    pub ttl_ms: u32,
    /// What the client does, for people.
    pub label: String,
    /// Whether the client may be on another machine.
    pub remote: bool,
    /// Random bytes for the session of the lease. The number of the lease is a part of them.
    pub secret: Secret,
}

/// A request for a lock with a lease that may hold several.
#[derive(Clone, Debug)]
pub struct StandingAsk {
    /// The number of the lease.
    pub lease: u64,
    /// The number of the request, which the lease uses once.
    pub request: u64,
    /// What is asked for.
    pub ask: Ask,
    /// Whether this is the same request as one by which the lease has the lock or waits for it.
    /// Otherwise it is refused then.
    pub joins: bool,
    /// What the client does, for people, if the lease holds nothing yet.
    pub label: Option<String>,
}

/// A request for a lock with a lease of its own.
#[derive(Clone, Debug)]
pub struct LeaseAsk {
    /// What is asked for.
    pub ask: Ask,
    /// The key by which the client finds the lease again, if it gave one.
    pub key: Option<LeaseKey>,
    /// The time to live of the lease, in milliseconds; none if it is to be without end.
    pub ttl_ms: Option<u32>,
    /// Whether the client never renews the lease. Then `limits.terraform_ttl` limits its time to
    /// live, and `limits.ttl` does not. A window limits its own lease: see
    /// [`Window`](doorway_protocol::Window).
    pub unattended: bool,
    /// What the client does, for people.
    pub label: String,
    /// Whether the client may be on another machine.
    pub remote: bool,
    /// Random bytes for the session of the lease.
    pub secret: Secret,
}

/// How a client finds a lease again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseKey {
    /// By the `request_id` of HTTP. A request that is repeated with it joins the first one.
    Request(String),
    /// By what its owner is called. A second request of the same owner is refused while the first
    /// one holds the lock.
    Owner(String),
}

/// The answer to a [`Call`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The lock is held.
    Leased(LeaseAnswer),
    /// The grant is not held any more. True if it was held until now.
    Released(bool),
    /// The request has ended. True if it was waiting or held the lock until now.
    Withdrawn(bool),
    /// This many grants were taken from their holders, and will not be held again.
    Broken(usize),
    /// The call was refused.
    Refused(Refusal),
    /// The key was used for a different request.
    Different(Refusal),
    /// The lease lives, for this long from now on.
    Alive(LeaseTime),
}

/// A lease that may hold several locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTime {
    /// The number of the session.
    pub session: u64,
    /// The time to live of the lease.
    pub ttl: Duration,
}

/// A grant with a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseAnswer {
    /// The fence of the grant.
    pub fence: Fence,
    /// The number of the session.
    pub session: u64,
    /// The time to live of the lease; [`UNLIMITED`](crate::UNLIMITED) if it is without end.
    pub ttl: Duration,
    /// Whether the client has renewed a lease that it knew of, and does not learn of it only now.
    pub renewed: bool,
}

/// Something that the shell has to do. It does the outputs of a step in their order.
#[derive(Clone, Debug)]
pub enum Output {
    /// Refuse a connection that has just been made.
    TurnAway(Connection, Refusal),
    /// Answer a hello, and send these replies after the greeting.
    Greet(Connection, Box<Greeting>, Vec<Reply>),
    /// Tell a client something.
    Tell(Connection, Reply),
    /// Answer a call over HTTP.
    Answer(Connection, Answer),
    /// Close a connection when everything is written.
    Close(Connection),
    /// Ask the node for a lock.
    Acquire {
        /// The request. The answer is [`Input::Granted`], [`Input::GrantedToKeep`],
        /// [`Input::Refused`], or first [`Input::Queued`].
        ask: AskId,
        /// The session, for reports.
        session: u64,
        /// The lock, by the name that the node knows.
        name: Name,
        /// How the lock is to be held.
        mode: Mode,
        /// How long to wait.
        wait: Wait,
        /// How many numbers to reserve after the fence; 0 if the grant is not kept.
        numbers: u32,
    },
    /// Hold a lock again that was held before the node was started. The answer is
    /// [`Input::Granted`] or [`Input::Refused`], before anything else happens.
    Reclaim {
        /// The grant.
        ask: AskId,
        /// The session, for reports.
        session: u64,
        /// The lock, by the name that the node knows.
        name: Name,
        /// How the lock is held.
        mode: Mode,
        /// The fence of the grant.
        fence: Fence,
    },
    /// Let a grant outlive the node for this long. Answered by [`Input::Held`], at any later time.
    ///
    /// In a group that agrees on its members, the group keeps it. Otherwise no other node takes
    /// over the locks of this one, and the ledger must be synced to disk: then the next process of
    /// the node finds the grant, even if the machine crashes.
    Hold {
        /// The grant.
        ask: AskId,
        /// The lock, by the name that the node knows.
        name: Name,
        /// The fence of the grant.
        fence: Fence,
        /// For how long; [`UNLIMITED`](crate::UNLIMITED) if without end.
        length: Duration,
    },
    /// A grant of [`Output::Hold`] has ended: the group need not keep it any more, and the ledger
    /// must be synced to disk, so that no later process holds it again. Answered by
    /// [`Input::Dropped`], at any later time.
    DropHold {
        /// The lock, by the name that the node knows.
        name: Name,
        /// The fence of the grant.
        fence: Fence,
    },
    /// Withdraw a request that waits at the node.
    Abandon(AskId),
    /// Give a grant back to the node.
    Release(AskId),
    /// Write these records into the ledger. The answer is [`Input::Written`]. Until it has come,
    /// nothing but answers to other outputs may be passed in.
    Write(AskId, Vec<(u32, Record)>),
    /// Overwrite the record of this session at this place of the ledger. The answer is
    /// [`Input::Rewritten`], before anything else happens.
    Rewrite(u64, u32, Record),
    /// Erase the record at this place of the ledger. The answer is [`Input::Erased`], before
    /// anything else happens.
    Erase(u32),
    /// Erase the records that could not be erased before; if that succeeds, [`Input::AllErased`]
    /// follows. Then find out whether more records can be written into the ledger. The answer is
    /// [`Input::Probed`], before anything else happens.
    Probe,
    /// Report that the ledger cannot be written from now on, for this reason, or that it can be
    /// written again.
    LedgerTrouble(Option<String>),
    /// Mark the ledger as complete: it has every session that holds something.
    Settled,
    /// Watch the processes of a session, and report their end as [`Input::ProcessEnded`].
    Watch(u64, Evidence),
    /// Do not watch the processes of a session any more.
    Unwatch(u64),
    /// Let the node grant locks: all former holders are back, or their time is over. The shell
    /// does that after it has answered all outputs. By then the node has got back what former
    /// holders did not claim.
    Serve,
    /// A session was opened by this client, or its client has described itself anew. The process is
    /// the one that opened it, if the node can see it.
    Opened(u64, Arc<str>, Option<ProcessId>),
    /// A session has ended.
    Ended(u64),
    /// Report what happened to a grant.
    Announce(News),
    /// Report that a request has begun to wait, or that it waits no longer although it was not
    /// granted.
    AnnounceWait(WaitNews),
    /// Nothing is held any more after [`Input::Drain`]: no lock is in use, every grant that has
    /// ended is erased from the ledger, and no former holder is awaited. Said once.
    Drained,
}

/// Something that happened to a grant.
#[derive(Clone, Debug)]
pub struct News {
    /// What happened.
    pub kind: EventKind,
    /// The lock.
    pub lock: Name,
    /// The fence of the grant.
    pub fence: Fence,
    /// The number of the session.
    pub session: u64,
    /// The description of the client.
    pub client: Arc<str>,
    /// Why the grant was lost.
    pub why: Option<String>,
}

/// A request has begun to wait, or was given up.
#[derive(Clone, Debug)]
pub struct WaitNews {
    /// Whether it waits from now on. Otherwise it was withdrawn or refused.
    pub waits: bool,
    /// The lock.
    pub lock: Name,
    /// The number of the session.
    pub session: u64,
    /// The description of the client.
    pub client: Arc<str>,
}

/// What can happen to a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The lock was granted.
    Granted,
    /// The client released the lock, or is gone.
    Released,
    /// The lock was taken from its client.
    Lost,
}
