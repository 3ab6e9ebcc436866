//! Real clients, blocking and async, against the real service in a process of its own: all
//! requests, and what happens when a client, a connection or the node is paused or killed.

mod asynchronous;
mod blocking;
mod crashes;
mod fences;
mod groups;
mod kept;
mod operations;
mod pauses;
mod starts;
