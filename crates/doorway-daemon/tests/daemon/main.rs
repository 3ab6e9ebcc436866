//! The service: its settings, its clients over Unix sockets, TCP and HTTP, and what happens when
//! clients, links and nodes fail.

mod clients;
#[path = "../common/mod.rs"]
mod common;
mod etcd;
mod fuzz;
mod http;
mod redis;
mod server;
mod service;
mod settings;
mod workload;

/// Not used by these tests.
fn live_bytes() -> u64 {
    0
}
