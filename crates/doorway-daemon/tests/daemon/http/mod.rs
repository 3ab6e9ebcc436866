//! HTTP of a real service, over a Unix socket and over TCP with TLS.

pub(crate) mod client;
mod documents;
mod group;
mod locks;
mod news;
pub(crate) mod remote;
mod requests;
mod terraform;
mod trouble;
