//! What a node tells about locks and about itself, over every door alike.

use serde::{Deserialize, Serialize};

use crate::Fence;

/// All about one lock, as far as its node could find out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LockReport {
    /// The lock.
    pub lock: String,
    /// The algorithm that serves it.
    pub algorithm: String,
    /// How many may be inside.
    pub permits: u32,
    /// The view that runs, or none while the members agree on the next one.
    pub view: Option<u64>,
    /// Who is inside, at any node that answered.
    pub holders: Vec<Holder>,
    /// Who waits: first those of this node, the next one first.
    pub waiters: Vec<Waiter>,
    /// Which members cannot be reached.
    pub away: Vec<Absent>,
    /// Which members did not say in time what they know.
    pub silent: Vec<String>,
}

/// Someone inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Holder {
    /// Its node.
    pub node: String,
    /// Its session at that node.
    pub session: Option<u64>,
    /// What it says of itself: what it does, its process, its host.
    pub client: String,
    /// Together with others?
    pub shared: bool,
    /// The fence of its grant, as a text of digits.
    #[cfg_attr(feature = "openapi", schema(value_type = String, pattern = "^[0-9]{1,19}$"))]
    pub fence: Fence,
    /// For how long it has been inside, in milliseconds.
    pub held_ms: u64,
}

/// Someone waiting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Waiter {
    /// Its node.
    pub node: String,
    /// Its session at that node.
    pub session: Option<u64>,
    /// What it says of itself.
    pub client: String,
    /// Together with others?
    pub shared: bool,
    /// Its place in the queue of its node, from 0, if that is known.
    pub place: Option<u32>,
    /// For how long it has waited, in milliseconds.
    pub waited_ms: u64,
    /// Which members were asked for it and have not answered yet.
    pub missing: Vec<String>,
    /// If it waits in a circle: every session in it as `node/session`, its own first.
    pub circle: Option<Vec<String>>,
}

/// A member that cannot be reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Absent {
    /// Its name.
    pub node: String,
    /// For how long, in milliseconds.
    pub for_ms: u64,
}

/// A page of a list of locks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Locks {
    /// In the order of their names.
    pub locks: Vec<LockLine>,
    /// Are there more? Then ask for those after the last one.
    pub more: bool,
}

/// A lock that clients of this node hold or wait for, in one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LockLine {
    /// The lock.
    pub lock: String,
    /// How many clients of this node are inside.
    pub inside: u32,
    /// How many clients of this node wait.
    pub waiting: u32,
    /// One of those inside.
    pub holder: Option<Holder>,
    /// For how long the first of those who wait has waited, in milliseconds.
    pub longest_wait_ms: u64,
}

/// Whom the locks of a node are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// The processes of one user of this machine.
    User,
    /// All who may use the node of this machine.
    Machine,
    /// All clients of a group of nodes.
    Cluster,
}

/// A node, as it is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NodeStatus {
    /// Its name.
    pub node: String,
    /// Its group.
    pub group: String,
    /// The version of the program.
    pub version: String,
    /// Whom its locks are for.
    pub scope: Scope,
    /// Its process.
    pub pid: u32,
    /// For how long it has run, in milliseconds.
    pub up_ms: u64,
    /// The view that runs, or none while the members agree on the next one.
    pub view: Option<u64>,
    /// All members, in order.
    pub members: Vec<String>,
    /// Which of them cannot be reached.
    pub away: Vec<Absent>,
    /// For how many milliseconds at most former holders may still claim what they held before the
    /// node stopped; it grants nothing meanwhile.
    pub reclaiming_ms: Option<u64>,
    /// Open sessions.
    pub sessions: u64,
    /// Grants that are held.
    pub held: u64,
    /// Requests that wait.
    pub waiting: u64,
    /// Grants since the start.
    pub grants: u64,
}
