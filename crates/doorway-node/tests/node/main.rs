//! Whole nodes: alone, in groups over the network of this machine, in processes of their own, and
//! in a simulated network.

mod agreed;
mod alone;
mod arranged;
mod buffer;
mod cluster;
#[path = "../common/mod.rs"]
mod common;
mod cut_links;
mod given_up;
mod kept;
mod limits;
mod messages;
mod net;
mod next_view;
mod one_away;
mod reclaim;
mod starts;
mod told;
mod tracing;
mod turmoil;
mod why;
