//! The members of a view, as one of them sees them.

use doorway_core::NodeId;

use crate::locks::RuleBook;

/// Who takes part in a view: its members, which of them this node is, and the rules of the locks,
/// arranged for this many members.
///
/// A shard takes a seating when it starts a view. In a group with a fixed list of members, every
/// view has the same seating. The links are not part of it: the shell of a node finds the link to a
/// member by the member's number in the seating.
#[derive(Debug)]
pub struct Seating {
    /// The names of the members. The number of a member in this view is its index.
    pub members: Vec<String>,
    /// The number of this node.
    pub me: NodeId,
    /// The rules by which locks are served.
    pub rules: RuleBook,
}

impl Seating {
    /// The name of a member.
    pub fn name(&self, node: NodeId) -> &str {
        &self.members[node.index()]
    }
}
