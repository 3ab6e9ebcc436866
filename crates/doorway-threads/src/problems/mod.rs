//! Two further problems of control, on the crate's own semaphores: a bounded buffer between those
//! who produce and those who consume, and a value that many may read or one may write.
//!
//! As with the locks, what threads run is what the explorer goes through: each protocol is one step
//! function over [`Memory`](crate::Memory).

mod buffer;
mod readers_writers;

#[cfg(feature = "check")]
pub use buffer::Delivery;
pub use buffer::{Buffer, BufferError};
pub use readers_writers::{ReadGuard, ReadersWriters, Turnstile, WriteGuard};
