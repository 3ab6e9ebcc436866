//! The client's state machine, message by message. How it gets on with the sessions of a node is
//! tested with the daemon.

mod another_node;
mod kept;
mod messages;
mod silence;
mod trace;
