//! Locks, semaphores and rings between real threads.

mod api;
mod problems_threads;
mod raw_lock;
mod semaphore;
mod stress;
mod token_ring;
mod watched;
