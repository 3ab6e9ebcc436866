//! The store of a group that agrees by an etcd which its operator has.
//!
//! The state of the group is in a few keys of etcd. A node reads it, applies a command with the
//! same pure code as the store by Raft does, and writes it back in a transaction that compares the
//! revision of the record. If another node was faster, it tries again. No node leads.
//!
//! etcd is reached by its JSON gateway over HTTP, because gRPC would need a compiler of protocol
//! buffers, and half a megabyte of program.
//!
//! - `store.rs`: the store; `core.rs`: what its tasks share; `found.rs`: how a group begins.
//! - `layout.rs`: which keys there are, as pure functions; `pulse.rs`: who proposes removals.
//! - `proposer.rs`: agrees on commands; `watcher.rs`: learns what others have written.
//! - `address.rs`, `tls.rs`, `line.rs`, `wire.rs`: how etcd is reached, and what it says.

mod address;
mod core;
mod found;
mod layout;
mod line;
mod proposer;
mod pulse;
mod store;
#[cfg(test)]
pub(crate) mod testing;
mod tls;
mod watcher;
mod wire;

pub use address::{BadEtcdAddress, EtcdAddress};
pub use store::{EtcdAccess, EtcdStore};
pub use tls::EtcdCertificates;
