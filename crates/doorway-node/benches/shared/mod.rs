//! Code that the benchmarks of the node and of the daemon share.

#![allow(dead_code, reason = "each benchmark uses some of it")]

pub(crate) mod baton;
pub(crate) mod pin;
pub(crate) mod rivals;
pub(crate) mod samples;
pub(crate) mod table;
