//! What shells of the sessions share, and what does not belong to the machine: files, random
//! numbers, and the queue of a connection, which a mutex guards.

pub mod identity;
pub mod ledger;
pub mod outbox;
pub mod secret;
