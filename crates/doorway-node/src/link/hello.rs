//! The hello of a connection, and whether two nodes may connect.

use serde::{Deserialize, Serialize};

use super::Incarnation;

/// The first frame of a node on a connection. Every version of the protocol begins its hello with
/// these fields and may add others at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The versions of the protocol that it supports.
    pub versions: Versions,
    /// The name of its group.
    pub group: String,
    /// The name of the node.
    pub node: String,
    /// A hash of everything that must be configured in the same way at all members.
    pub config: u64,
    /// Which start of the node this is.
    pub incarnation: Incarnation,
    /// The epochs of all members, as far as the node knows them.
    pub epochs: Vec<u64>,
    /// How much it has received from the other side.
    pub received: ReceivedCount,
}

/// How many messages a node has received from another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ReceivedCount {
    /// From which incarnation of the other node.
    pub of: Incarnation,
    /// How many messages.
    pub count: u64,
}

/// The range of protocol versions that a node supports, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// The lowest.
    pub min: u16,
    /// The highest.
    pub max: u16,
}

impl Versions {
    /// The versions that this program supports.
    pub const SPOKEN: Self = Self { min: 1, max: 1 };

    /// The highest version that both support.
    pub fn common(self, other: Self) -> Option<u16> {
        let highest = self.max.min(other.max);
        (highest >= self.min.max(other.min)).then_some(highest)
    }
}

impl Default for Versions {
    fn default() -> Self {
        Self::SPOKEN
    }
}

/// Why a connection is refused. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The two nodes have no protocol version in common.
    #[error(
        "no common protocol version: this node supports {} to {}, {node:?} supports {} to {}",
        ours.min, ours.max, theirs.min, theirs.max
    )]
    Version {
        /// The name of the other node.
        node: String,
        /// What this node supports.
        ours: Versions,
        /// The versions of the protocol that it supports.
        theirs: Versions,
    },
    /// The other node is a member of another group.
    #[error("wrong group: this node belongs to `{ours}`, and {node:?} to {theirs:?}")]
    Group {
        /// The name of the other node.
        node: String,
        /// The group of this node.
        ours: String,
        /// The group of the other node.
        theirs: String,
    },
    /// The other node is not a member, or is a member that must not dial this one.
    #[error("unknown caller: no member called {0:?} may dial this node")]
    Stranger(String),
    /// The certificate is not issued for the name that the node gives.
    #[error("wrong name: the certificate is not issued for {0:?}")]
    Name(String),
    /// The two nodes have different configurations.
    #[error("wrong configuration: {0:?} is configured with other members or rules than we are")]
    Config(String),
    /// The node refuses the peer for another reason.
    #[error("{node:?} is refused: {why}")]
    Unwanted {
        /// The name of the other node.
        node: String,
        /// The reason, for people.
        why: String,
    },
}

impl Refusal {
    /// The name of the refused node, as it gives it itself.
    pub fn node(&self) -> &str {
        match self {
            Self::Version { node, .. } | Self::Group { node, .. } | Self::Unwanted { node, .. } => {
                node
            }
            Self::Stranger(node) | Self::Name(node) | Self::Config(node) => node,
        }
    }
}

impl Hello {
    /// May this node connect to the one that sent `theirs`? Returns the protocol version to use.
    pub fn meet(&self, theirs: &Self) -> Result<u16, Refusal> {
        let node = || theirs.node.clone();
        let Some(version) = self.versions.common(theirs.versions) else {
            let (ours, theirs) = (self.versions, theirs.versions);
            return Err(Refusal::Version { node: node(), ours, theirs });
        };
        if self.group != theirs.group {
            let (ours, theirs) = (self.group.clone(), theirs.group.clone());
            return Err(Refusal::Group { node: node(), ours, theirs });
        }
        if self.config != theirs.config {
            return Err(Refusal::Config(node()));
        }
        Ok(version)
    }
}
