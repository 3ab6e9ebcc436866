//! Tests of whole groups in virtual time, and of the store against openraft's own test suite.

mod any_store;
mod chaos;
pub(crate) mod disks;
mod etcd_faults;
mod etcd_server;
mod group;
mod guards;
mod real_etcd;
mod suite;
mod world;
