//! The greeting of two nodes, and whether they may talk.

use serde::{Deserialize, Serialize};

use super::Incarnation;

/// The first that a node says on a connection. Every version of the protocol begins its hello so,
/// and may say more at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// What it speaks.
    pub versions: Versions,
    /// The name of its group.
    pub group: String,
    /// Its own name.
    pub node: String,
    /// A digest of all that must be configured alike in a group.
    pub config: u64,
    /// Which of its lives this is.
    pub incarnation: Incarnation,
    /// The epochs of all members, as far as it knows them.
    pub epochs: Vec<u64>,
    /// What it has received of the other side.
    pub received: ReceivedCount,
}

/// What a node has received of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ReceivedCount {
    /// In which of the other's lives.
    pub of: Incarnation,
    /// How many messages.
    pub count: u64,
}

/// The versions of the protocol that a node speaks, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// The lowest.
    pub min: u16,
    /// The highest.
    pub max: u16,
}

impl Versions {
    /// What this code speaks.
    pub const SPOKEN: Self = Self { min: 1, max: 1 };

    /// The highest version that both speak.
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

/// Why a node is not talked to. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No version in common.
    #[error(
        "no common version: we speak {} to {}, {node:?} speaks {} to {}",
        ours.min, ours.max, theirs.min, theirs.max
    )]
    Version {
        /// Who.
        node: String,
        /// What we speak.
        ours: Versions,
        /// What it speaks.
        theirs: Versions,
    },
    /// A member of another group.
    #[error("wrong group: this is `{ours}`, and {node:?} is of {theirs:?}")]
    Group {
        /// Who.
        node: String,
        /// Our group.
        ours: String,
        /// Its group.
        theirs: String,
    },
    /// No member, or one that has no business here.
    #[error("stranger: nobody called {0:?} is expected here")]
    Stranger(String),
    /// The certificate belongs to someone else.
    #[error("wrong name: the certificate is not that of {0:?}")]
    Name(String),
    /// Not configured alike.
    #[error("wrong configuration: {0:?} is configured with other members or rules than we are")]
    Config(String),
    /// The node above does not want it.
    #[error("{node:?} is refused: {why}")]
    Unwanted {
        /// Who.
        node: String,
        /// Why.
        why: String,
    },
}

impl Refusal {
    /// Who is refused, by its own account.
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
    /// May we talk to who says `theirs`? The version that is spoken then comes back.
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
