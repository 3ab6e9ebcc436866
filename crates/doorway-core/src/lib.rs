//! The classical algorithms of distributed mutual exclusion as pure state machines, one file each.
//!
//! Each node of a group runs an [`Algorithm`] inside a [`Member`]. A driver (the simulator, the
//! model checker, a script, the lock service) tells the member what has happened: a client asks, a
//! message arrives, a client leaves. The member writes what is to be done about it into
//! [`Effects`], and the driver does it: it sends the messages and lets the client in.
//!
//! This crate knows nothing of time, randomness, addresses or sockets. It is `no_std`, so the
//! compiler enforces that.
//!
//! ```
//! use doorway_core::{Effects, Group, Input, Member, Mode, NodeId, Start};
//! use doorway_core::algorithms::ricart_agrawala::{Message, RicartAgrawala};
//!
//! let group = Group::new(2)?;
//! let mut out = Effects::default();
//! let mut first =
//!     Member::<RicartAgrawala>::begin(NodeId(0), &group, &Start::default(), &mut out)?;
//! assert!(out.sends().is_empty(), "this algorithm does nothing until a client asks");
//!
//! first.step(&group, Input::Acquire(Mode::Exclusive), &mut out)?;
//! assert_eq!(out.sends(), [(NodeId(1), Message::Request(1))]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![no_std]

extern crate alloc;

pub mod algorithms;
mod contract;
mod graph;
mod group;
mod info;
mod member;
mod node_set;
pub mod quorums;
mod settle;
pub mod tree;

pub use contract::{Algorithm, Effects, Holder, Mode, Start, Wire};
pub use graph::Graph;
pub use group::{Group, GroupError, MAX_NODES, Shape, Wiring};
pub use info::{Channel, Claim, Fault, Formula, Info, Kind, Needs, Per};
pub use member::{Breach, Input, Member, Phase};
pub use node_set::{BEYOND_LIMIT, CLOCK_LIMIT, NodeId, NodeSet, Timestamp};
pub use settle::{Mail, NumberVisitor, Snapshot};
