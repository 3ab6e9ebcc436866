//! Two classic problems of synchronisation besides mutual exclusion, solved with the crate's own
//! semaphores: a bounded buffer between producers and consumers ([`Buffer`]), and a value that many
//! threads may read or one may write ([`ReadersWriters`]).
//!
//! As with the locks, threads run what the explorer checks: each protocol is one step function over
//! [`Memory`](crate::Memory).

mod buffer;
mod readers_writers;

#[cfg(feature = "check")]
pub use buffer::Delivery;
pub use buffer::{Buffer, BufferError};
pub use readers_writers::{ReadGuard, ReadersWriters, Turnstile, WriteGuard};
