//! What a service needs of a store, besides what its node needs.

use std::sync::Arc;

use doorway_node::members::{AuditLog, BoxedFuture, GroupState, ViewStore};

use crate::error::{AskError, FoundError};
use crate::rpc::frame::Hello;

/// A store whose group can be founded and changed by operators.
pub trait GroupStore: ViewStore {
    /// Ask the store at an address who it is.
    fn ask<'a>(&'a self, address: &'a str) -> BoxedFuture<'a, Result<Hello, AskError>>;

    /// Found a group that begins with this state. Its record has to name this node as a voter.
    fn found_with(&self, state: GroupState) -> BoxedFuture<'_, Result<(), FoundError>>;

    /// The group to which this node belongs; none until it was founded or the node was added.
    fn cluster(&self) -> Option<u128>;

    /// What operators did to the group, as far as this node knows.
    fn audit(&self) -> Arc<AuditLog>;

    /// Whether this node knows of the group by itself, but does not belong to it.
    fn is_founded_elsewhere(&self) -> bool;

    /// Wait until the store has ended: it was closed, or has failed. Returns the reason. A node
    /// cannot go on without its store.
    fn ended(&self) -> BoxedFuture<'_, String>;

    /// End the store, and close its file.
    fn close(&self) -> BoxedFuture<'_, ()>;
}
