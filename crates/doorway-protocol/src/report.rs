//! Reports about locks and about a node. The protocol of clients and HTTP use the same ones.

use serde::{Deserialize, Serialize};

use crate::{Fence, RuleTable};

/// Everything that a node could find out about one lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LockReport {
    /// The name of the lock.
    pub lock: String,
    /// The algorithm that serves the lock, and after a comma how the members are arranged for it,
    /// as in `maekawa, quorums grid` or `central, coordinator b`.
    pub algorithm: String,
    /// How many clients may hold the lock at once.
    pub permits: u32,
    /// The number of the current view; none while the members agree on the next view.
    pub view: Option<u64>,
    /// The clients that hold the lock, at every node that answered.
    pub holders: Vec<Holder>,
    /// The clients that wait for the lock. Those of this node come first, in the order of its
    /// queue.
    pub waiters: Vec<Waiter>,
    /// The members that cannot be reached.
    pub away: Vec<Absent>,
    /// The names of the members that did not answer in time.
    pub silent: Vec<String>,
}

impl LockReport {
    /// Whether a client at a member that cannot be reached may hold the lock. It may if no holder
    /// is known, or if it could hold the lock together with the known ones.
    pub fn may_be_held_elsewhere(&self) -> bool {
        let shared = self.holders.iter().all(|holder| holder.shared);
        !self.away.is_empty() && (self.permits > 1 || shared)
    }
}

/// A client that holds a lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Holder {
    /// The name of the client's node.
    pub node: String,
    /// The number of the client's session at that node.
    pub session: Option<u64>,
    /// What the client says about itself: its label, its process and its host.
    pub client: String,
    /// True if the client shares the lock with others, as readers do.
    pub shared: bool,
    /// The fence of the grant, as a string of digits.
    #[cfg_attr(feature = "openapi", schema(value_type = String, pattern = "^[0-9]{1,19}$"))]
    pub fence: Fence,
    /// For how long the client has held the lock, in milliseconds.
    pub held_ms: u64,
}

/// A client that held a lock at a member that does not answer now, as far as this node knows. The
/// client may have released the lock since then.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LastHolder {
    /// The name of the client's node.
    pub node: String,
    /// The number of the client's session at that node, if it is known.
    pub session: Option<u64>,
    /// What the client says about itself, if it is known.
    pub client: Option<String>,
    /// True if the client shared the lock with others, as readers do.
    pub shared: bool,
    /// The fence of the grant, as a string of digits, if it is known.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, pattern = "^[0-9]{1,19}$"))]
    pub fence: Option<Fence>,
    /// How long ago this node heard that the client holds the lock, in milliseconds.
    pub heard_ms: u64,
}

/// A client that waits for a lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Waiter {
    /// The name of the client's node.
    pub node: String,
    /// The number of the client's session at that node.
    pub session: Option<u64>,
    /// What the client says about itself: its label, its process and its host.
    pub client: String,
    /// True if the client wants to share the lock with others, as readers do.
    pub shared: bool,
    /// The client's position in the queue of its node, counted from 0, if it is known.
    pub place: Option<u32>,
    /// For how long the client has waited, in milliseconds.
    pub waited_ms: u64,
    /// The members whose answer to the request is still missing.
    pub missing: Vec<String>,
    /// If the client is part of a deadlock: every session in the cycle as `node/session`, beginning
    /// with its own.
    pub circle: Option<Vec<String>>,
}

/// A member of the group that cannot be reached.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Absent {
    /// The name of the member.
    pub node: String,
    /// For how long the member has been unreachable, in milliseconds.
    pub for_ms: u64,
}

/// One page of a list of locks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Locks {
    /// The locks, in the order of their names.
    pub locks: Vec<LockLine>,
    /// True if there are more locks. Ask for the locks after the last one of this page.
    pub more: bool,
}

/// A lock that clients of this node hold or wait for, in one line of a list.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LockLine {
    /// The name of the lock.
    pub lock: String,
    /// How many clients of this node hold the lock.
    pub inside: u32,
    /// How many clients of this node wait for the lock.
    pub waiting: u32,
    /// One of the clients of this node that hold the lock.
    pub holder: Option<Holder>,
    /// For how long the first waiting client of this node has waited, in milliseconds.
    pub longest_wait_ms: u64,
}

/// Who shares the locks of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// The processes of one user on one machine.
    User,
    /// All users of one machine who may use its node.
    Machine,
    /// All clients of a group of nodes.
    Cluster,
}

/// The state of a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NodeStatus {
    /// The name of the node.
    pub node: String,
    /// The name of the node's group.
    pub group: String,
    /// The version of the program.
    pub version: String,
    /// Who shares the locks of the node.
    pub scope: Scope,
    /// The process ID of the node.
    pub pid: u32,
    /// For how long the node has run, in milliseconds.
    pub up_ms: u64,
    /// The number of the current view; none while the members agree on the next view.
    pub view: Option<u64>,
    /// The names of all members, in order.
    pub members: Vec<String>,
    /// The members that cannot be reached.
    pub away: Vec<Absent>,
    /// How much longer former holders may at most reclaim what they held before the node stopped,
    /// in milliseconds. The node grants nothing until then. None if the node grants locks.
    pub reclaiming_ms: Option<u64>,
    /// The number of open sessions.
    pub sessions: u64,
    /// The number of grants that are held.
    pub held: u64,
    /// The number of requests that wait.
    pub waiting: u64,
    /// The number of grants since the node was started.
    pub grants: u64,
}

/// Why a node cannot write its ledger. It grants no lock that it cannot write there.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LedgerTrouble {
    /// The file or directory, and what is wrong with it.
    pub error: String,
    /// What to do about it.
    pub remedy: String,
    /// For how long the ledger has not been writable, in milliseconds.
    pub for_ms: u64,
}

/// The members of a group that agrees on them, as one of its nodes sees them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MembersReport {
    /// The name of the node that reports.
    pub node: String,
    /// The name of the group.
    pub group: String,
    /// The number of the group, in hexadecimal digits. It was drawn when the group was founded;
    /// none before that.
    pub cluster: Option<String>,
    /// The number of the newest view that the members have agreed on.
    pub view: u64,
    /// The number of the view that runs at this node; none while no view runs.
    pub running: Option<u64>,
    /// The lease of members, in milliseconds.
    pub lease_ms: u32,
    /// The longest lease on which a member may count, in milliseconds. It is longer than the lease
    /// for a while after that was made shorter.
    pub longest_lease_ms: u32,
    /// For how long this node may grant locks without another renewal of its membership, in
    /// milliseconds.
    pub lease_left_ms: u64,
    /// The machines that belong to the group, in the order of their names.
    pub seats: Vec<SeatReport>,
    /// How many machines vote.
    pub voters: u32,
    /// How many of the machines that vote this node can reach, itself included.
    pub reachable: u32,
    /// For how long this node could not reach a majority of the machines that vote, in
    /// milliseconds; none if it can.
    pub no_quorum_ms: Option<u64>,
    /// Why this node cannot grant locks as a member of the group, and what to do; none if it can.
    pub trouble: Option<String>,
    /// The etcd by which the members agree; none if they agree by Raft. With etcd nobody votes.
    pub etcd: Option<EtcdReport>,
    /// The rules for locks on which the group has agreed; none before it is founded.
    pub rules: Option<RulesReport>,
}

/// The etcd by which a group agrees, as one of its nodes sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EtcdReport {
    /// The addresses of its servers.
    pub addresses: Vec<String>,
    /// For how long this node could not use it, in milliseconds; none if it can.
    pub unreachable_ms: Option<u64>,
    /// Something that an operator should know although etcd answers, such as an alarm of etcd.
    pub warning: Option<String>,
}

/// The rules for locks of a group that agrees on its members.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RulesReport {
    /// A hash of the rules, in hexadecimal digits.
    pub digest: String,
    /// The rules in their order, each with its keys and their values. The first rule whose `names`
    /// match counts. The last rule has no `names`, and counts for all other locks.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<BTreeMap<String, String>>))]
    pub tables: Vec<RuleTable>,
    /// How the settings of the node differ from these rules, and what to do; none if they do not.
    /// The rules of the group count.
    pub differs: Option<String>,
}

/// A machine that belongs to a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SeatReport {
    /// The name of its node.
    pub name: String,
    /// The address at which the other members reach it.
    pub address: String,
    /// The number of its seat, in hexadecimal digits. Each data directory has its own.
    pub seat: String,
    /// What the machine does when the members decide.
    pub role: SeatRole,
    /// Whether the machine takes part in the view.
    pub state: SeatState,
    /// For how long the reporting node has had no connection to the machine, in milliseconds; none
    /// if it has one.
    pub away_ms: Option<u64>,
    /// How long ago the reporting node saw that a process of the machine renewed its membership, in
    /// milliseconds; none if no process of the machine is a member.
    pub beat_ms: Option<u64>,
    /// If the machine waits: the names of the nodes to which it needs a connection before it can
    /// take part in the view.
    pub waiting_for: Vec<String>,
}

/// Something that an operator did to a group that agrees on its members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AuditEntry {
    /// The number of the entry, which grows from entry to entry. The group gives it.
    pub number: u64,
    /// When, by the clock of the node: RFC 3339, in UTC.
    pub at: String,
    /// The node that was asked.
    pub node: String,
    /// Who asked, as the connection has proved it: `uid 0`, `client ci`.
    pub who: String,
    /// From where: `unix socket`, or the address of the client.
    pub from: String,
    /// What was asked for, like a command line.
    pub what: String,
    /// `done`, or why it was refused.
    pub result: String,
}

/// What a machine does when the members decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SeatRole {
    /// The seat votes, and leads the others.
    Leader,
    /// The seat votes.
    Voter,
    /// The seat learns what was decided, and does not vote.
    Learner,
    /// The seat takes part. Nobody votes, because the members agree by etcd.
    Member,
}

/// Whether a machine takes part in the newest view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SeatState {
    /// The machine is in the view.
    InView,
    /// The machine runs, and waits until it can enter the view.
    Waiting,
    /// The reporting node cannot reach the machine.
    Away,
    /// The machine may not renew its lease, because it could not reach the others, or because an
    /// operator removed it. It stays in the view until it leaves, or until its lease is over.
    Evicted,
}
