//! Members by agreement: the record of a group, replicated among its nodes by Raft or kept in etcd.
//!
//! The nodes of a group agree on one small [`Record`]: which machines belong to the group, and
//! which processes are in its newest view. They do not agree on locks, so neither consensus nor a
//! disk is on the path of a lock. [`RaftStore`] is the [`ViewStore`] that needs nothing besides the
//! nodes themselves. A majority of its voters has to be alive and connected. [`EtcdStore`] is for
//! groups whose operator has an etcd already.
//!
//! This is the only crate that knows openraft and etcd. Files and messages have types of their own.
//!
//! - `store.rs`: the store and its threads; `core.rs`: what its tasks share; `engine.rs`: how Raft
//!   is started; `found.rs`: how a group begins; `bond.rs`: to which group this node belongs;
//!   `recover.rs`: how one machine goes on without a majority, for ever.
//! - `log.rs`, `machine.rs`, `network.rs`: what openraft needs; `types.rs`: its type parameters.
//! - `guards.rs`: guards against the gaps of openraft; `reconcile.rs`: voters follow the record.
//! - `disk.rs`: the file; `writer.rs`: the queue in front of it; `memory.rs`: a disk for
//!   simulations; `encoding.rs`: how values are written.
//! - `rpc/`, `peers.rs`: how stores talk to each other; `health.rs`: which of them can be reached.
//! - `etcd/`: the store that keeps the record in etcd.
//! - `group_store.rs`: what a service needs of any store; `published_state.rs`: what a store shows
//!   to its node; `thread.rs`: the threads of a store.
//!
//! [`Record`]: doorway_node::members::Record
//! [`ViewStore`]: doorway_node::members::ViewStore

mod bond;
mod core;
mod disk;
mod encoding;
mod ending;
mod engine;
mod error;
mod etcd;
mod found;
mod group_store;
mod guards;
mod health;
mod log;
mod memory;
mod network;
mod peers;
mod published_state;
mod reconcile;
mod recover;
mod rpc;
mod state_machine;
mod store;
mod thread;
mod timings;
mod types;
mod writer;

#[cfg(test)]
mod tests;

pub use disk::DataPlace;
pub use error::{AskError, FoundError, OpenError};
pub use etcd::{BadEtcdAddress, EtcdAccess, EtcdAddress, EtcdCertificates, EtcdStore};
pub use group_store::GroupStore;
pub use memory::MemoryDisk;
pub use recover::{RecoverError, Survivor, VIEW_STEP, group_of};
pub use rpc::frame::{Agreement, FormerGroup, Hello};
pub use store::{Options, RaftStore, Threads};
