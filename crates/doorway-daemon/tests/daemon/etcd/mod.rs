//! The gRPC of etcd and its JSON gateway at a real service.

pub(crate) mod client;
mod gateway;
mod group;
mod programs;
mod remote;
mod streams;
mod trouble;
