//! The Doorway service: a node with sessions for its clients.
//!
//! One [`Service`](service::Service) serves the framed protocol of `doorway-client`, HTTP and the
//! locks of the protocols of Redis and etcd, each on a Unix socket or on TCP with TLS. The code of
//! a protocol identifies the client and its rights, and translates requests and replies; the
//! service does the rest.

pub mod ca;
pub mod certificate;
mod described_value;
mod directory;
pub mod doctor;
pub mod etcd;
pub mod http;
pub mod listen;
pub mod log;
mod log_limit;
pub mod members;
mod metrics;
mod native;
// The examples of the repository's README. They are tested here because this crate's tests know
// the client and the node.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}
pub mod redis;
pub mod reload;
pub mod serve;
pub mod service;
pub mod settings;
mod socket;
mod task;
pub mod tls;
