//! The Redis protocol of a real service, over a Unix socket and over TCP with TLS.

pub(crate) mod client;
mod group;
mod locks;
mod programs;
mod redlock;
mod remote;
mod trouble;
