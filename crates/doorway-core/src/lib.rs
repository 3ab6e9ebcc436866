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
//! use doorway_core::algorithms::ricart_agrawala::{Message, RicartAgrawala};
//! use doorway_core::{Effects, Group, Input, Member, Mode, NodeId, Start};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let group = Group::new(2)?;
//! let (one, two) = (NodeId(0), NodeId(1));
//! let mut out = Effects::default();
//! let mut first = Member::<RicartAgrawala>::begin(one, &group, &Start::default(), &mut out)?;
//! let mut second = Member::<RicartAgrawala>::begin(two, &group, &Start::default(), &mut out)?;
//!
//! // A client of node 1 asks. The node sends a request to node 2.
//! first.step(&group, Input::Acquire(Mode::Exclusive), &mut out)?;
//! assert_eq!(out.sends(), [(two, Message::Request(1))]);
//!
//! // The request arrives at node 2, which replies at once.
//! second.step(&group, Input::Receive { from: one, message: Message::Request(1) }, &mut out)?;
//! assert_eq!(out.sends(), [(one, Message::Reply)]);
//!
//! // The reply arrives. The client of node 1 is inside.
//! first.step(&group, Input::Receive { from: two, message: Message::Reply }, &mut out)?;
//! assert!(out.entered());
//! #     Ok(())
//! # }
//! ```

#![no_std]

extern crate alloc;

pub mod algorithms;
pub mod buffer;
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

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
