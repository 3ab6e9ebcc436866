//! Tests of whole groups in virtual time, and of the store against openraft's own test suite.

mod chaos;
mod disks;
mod group;
mod guards;
mod suite;
mod world;
