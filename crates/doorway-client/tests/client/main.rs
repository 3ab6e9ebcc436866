//! The client's state machine against a model of a node, and the blocking and the async client
//! against the same model over real sockets.

mod clients;
mod machine;
mod server;
