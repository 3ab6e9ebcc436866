//! Real clients, blocking and async, against the real service in a process of its own: all
//! requests, and what happens when a client, a connection or the node is paused or killed.

#[path = "../common/mod.rs"]
mod common;

mod asynchronous;
mod blocking;
mod crashes;
mod fences;
mod groups;
mod pauses;
mod starts;

/// Not used by these tests.
fn live_bytes() -> u64 {
    0
}
