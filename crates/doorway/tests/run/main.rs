//! `doorway run` and what scripts need beside it, with real processes and a real node.
#![cfg(target_os = "linux")]

mod bound;
mod container;
mod crash;
mod doctor;
mod documents;
mod elect;
mod environment;
mod exits;
mod files;
mod full_disk;
mod inherit;
mod lost;
mod members;
mod network;
mod once;
mod place;
mod pty;
mod reach;
mod scripts;
mod signals;
#[path = "../../../doorway-daemon/tests/common/skip.rs"]
mod skip;
mod start;
mod substitution;
mod terminal;
mod user;
