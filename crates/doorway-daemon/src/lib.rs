//! The Doorway service: a node with sessions for its clients.
//!
//! One [`Service`](service) stands behind every door: the framed protocol of `doorway-client` and
//! HTTP, on a Unix socket or on TCP with TLS. A door finds out who its client is and what it may
//! do, and then only translates.

pub mod principal;
pub mod settings;
