//! Other lock servers, on the same machine, in the same run and in the same placement.
//!
//! Each server runs from the binaries of the system, in a directory of its own, with its default
//! settings. The clients speak its protocol directly.

mod client;
mod etcd;
mod postgres;
mod redis;
mod server;

#[allow(unused_imports, reason = "each benchmark uses some of it")]
pub(crate) use client::{Rival, alone, many, patiently, scattered, together};
pub(crate) use etcd::Etcd;
pub(crate) use postgres::Postgres;
pub(crate) use redis::Redis;
#[allow(unused_imports, reason = "each benchmark uses some of it")]
pub(crate) use server::{Server, installed};
