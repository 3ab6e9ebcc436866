//! The Doorway service: a node with sessions for its clients.
//!
//! One [`Service`](service::Service) stands behind every door: the framed protocol of
//! `doorway-client` and HTTP, on a Unix socket or on TCP with TLS. A door finds out who its client
//! is and what it may do, and then only translates.

pub mod ca;
pub mod certificate;
pub mod clock;
mod directory;
pub mod doctor;
pub mod http;
pub mod ledger;
pub mod listen;
pub mod log;
mod metrics;
mod native;
pub mod principal;
mod secret;
mod seldom;
pub mod serve;
pub mod service;
pub mod settings;
mod socket;
pub mod tls;
