//! Mutual exclusion between threads: the classical algorithms as locks that people can use.
//!
//! ```
//! use doorway_threads::{Room, algorithms::peterson::Peterson};
//!
//! let mut room: Room<Peterson, u32> = Room::new(2, 0)?;
//! let [mut left, mut right] = room.split()?;
//! std::thread::scope(|scope| {
//!     scope.spawn(move || (0..1000).for_each(|_| *left.lock() += 1));
//!     scope.spawn(move || (0..1000).for_each(|_| *right.lock() += 1));
//! });
//! assert_eq!(room.into_inner(), 2000);
//! # Ok::<(), doorway_threads::RoomError>(())
//! ```
//!
//! A [`Room`] holds the value, and each participant a [`Seat`]: `lock` borrows the seat mutably, so
//! that nobody can use one twice at a time, which none of these algorithms would survive.
//! `try_lock` is there where a process may give up ([`Withdraws`]). The third parameter of a room
//! says what a thread does while it waits: [`Spin`], [`Loop`], and with the standard library
//! [`Yield`] and [`SpinThenYield`], which is the default there.
//!
//! # Features
//!
//! - `std` (default): semaphores that sleep, and the [problems](problems) that are solved with
//!   them. Without it the crate needs an allocator and, for most algorithms, loads and stores only.
//! - `lock_api`: [`RawLock`], any of the locks where a `lock_api::Mutex` goes.
//! - `check`: the explorer, [`check::Check`].
//! - `bench`: what the locks cost, measured beside those of others.
//!
//! # On real memory
//!
//! The steps of a lock load with acquire and store with release; what else an algorithm needs are
//! its fences. The crate's tests run the same steps on loom's memory with two processes, where each
//! lock excludes with all its fences and fails without any one of them; on shuttle's schedules with
//! up to six; and on threads. The explorer knows memory that keeps order, and memory with store
//! buffers.
//!
//! # What is known of the algorithms
//!
#![doc = include_str!("../TABLE.md")]
#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod algorithm;
pub mod algorithms;
mod atomics;
#[cfg(feature = "bench")]
pub mod bench;
#[cfg(feature = "check")]
pub mod check;
mod memory;
#[doc(hidden)]
pub mod place;
#[cfg(feature = "std")]
pub mod problems;
#[cfg(feature = "lock_api")]
mod raw_lock;
#[cfg(doctest)]
mod refused;
mod relax;
pub mod ring;
mod room;
#[cfg(feature = "std")]
mod semaphore;
mod walk;

pub use algorithm::{
    Algorithm, Bypass, Claims, Exclusive, Info, MOST, Primitive, Process, Since, Withdraws,
};
#[doc(hidden)]
pub use atomics::orderings;
pub use memory::{Array, Length, Memory, Register, Shared, Word};
pub use place::{Place, Section};
#[cfg(feature = "lock_api")]
pub use raw_lock::{RawLock, TakenSeat};
pub use relax::{Loop, Patient, Relax, Spin};
#[cfg(feature = "std")]
pub use relax::{SpinThenYield, Yield};
#[cfg(target_has_atomic = "ptr")]
pub use room::OwnedSeat;
pub use room::{Guard, Room, RoomError, Seat};
#[cfg(feature = "std")]
pub use semaphore::Semaphore;
