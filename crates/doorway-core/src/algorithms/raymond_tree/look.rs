//! What the proofs of the paper speak of.

use super::RaymondTree;
use crate::NodeId;

impl RaymondTree {
    /// The neighbour towards the token, or the node itself while it is there (HOLDER).
    pub fn holder(&self) -> NodeId {
        self.holder
    }

    /// Who wants the token, in the order of being served (`REQUEST_Q`).
    pub fn queue(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.queue.iter().copied()
    }
}
