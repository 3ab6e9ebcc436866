//! How stores talk to each other.
//!
//! - `frame.rs`: the messages, and how they are cut out of a stream of bytes.
//! - `client.rs`: asking another store.
//! - `serve.rs`: answering other stores.
//!
//! Each question is numbered, and the answers may come in any order. Nothing is sent twice: Raft
//! itself repeats what matters. If an answer does not come in time, the connection is closed and
//! all questions on it have failed. A connection on which answers are missing may be dead without
//! anybody knowing.

pub(crate) mod client;
pub(crate) mod frame;
pub(crate) mod serve;
