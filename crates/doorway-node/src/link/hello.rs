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
    /// How many messages of that incarnation.
    pub count: u64,
}

/// The range of protocol versions that a node supports, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// The lowest version.
    pub min: u16,
    /// The highest version.
    pub max: u16,
}

impl Versions {
    /// The versions that this program supports.
    pub const SPOKEN: Self = Self { min: 1, max: 2 };

    /// The version since which members answer questions about their service, and record single
    /// locks.
    pub const SERVICE: u16 = 2;

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
    #[error("wrong configuration: {}", difference(node, *ours, *theirs))]
    Config {
        /// The name of the other node.
        node: String,
        /// How many members this node has configured.
        ours: usize,
        /// How many members the other node has configured.
        theirs: usize,
    },
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
            Self::Version { node, .. }
            | Self::Group { node, .. }
            | Self::Config { node, .. }
            | Self::Unwanted { node, .. }
            | Self::Stranger(node)
            | Self::Name(node) => node,
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
            let (ours, theirs) = (self.epochs.len(), theirs.epochs.len());
            return Err(Refusal::Config { node: node(), ours, theirs });
        }
        Ok(version)
    }
}

/// What differs between two configurations, as far as the hellos tell: they have a hash of the
/// configuration, and one epoch for each member.
fn difference(node: &str, ours: usize, theirs: usize) -> String {
    if ours != theirs {
        return format!("{node:?} has {theirs} members configured, and this node has {ours}");
    }
    format!(
        "{node:?} and this node have the same number of members, but differ in the names or the \
         order of the members, in the rules for locks (pattern, algorithm, permits) or in the \
         default algorithm; these must be the same at all members"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_differs_as_far_as_the_hellos_tell() {
        let hello = |config, members| {
            let node = "b".to_owned();
            Hello { node, config, epochs: vec![0; members], ..Hello::default() }
        };
        let refusal = |theirs| hello(1, 3).meet(&theirs).unwrap_err().to_string();
        let members = "wrong configuration: \"b\" has 2 members configured, and this node has 3";
        assert_eq!(refusal(hello(2, 2)), members);
        let other = refusal(hello(2, 3));
        for part in ["\"b\"", "the order of the members", "rules for locks", "default algorithm"] {
            assert!(other.contains(part), "{part:?} is not in {other:?}");
        }
        assert_eq!(hello(1, 3).meet(&hello(1, 3)), Ok(2));
    }
}
