//! Other lock servers, on the same machine, in the same run and in the same placement.
//!
//! Each server runs from the binaries of the system, in a directory of its own, with its default
//! settings. The clients speak its protocol directly.

mod client;
mod etcd;
mod postgres;
mod redis;
mod server;
mod wire;

#[allow(unused_imports, reason = "each benchmark uses some of it")]
pub(crate) use self::{
    client::{Rival, alone, many, pairs, pass_around, patiently, scattered, together},
    etcd::Etcd,
    postgres::{Postgres, give, server as postgres_server},
    redis::Redis,
    server::{Server, free_address, installed},
};
