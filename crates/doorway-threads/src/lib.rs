//! Mutual exclusion between threads: the classical algorithms as locks that programs can use.
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
//! A [`Room`] holds the value, and each participant has a [`Seat`]. `lock` borrows the seat
//! mutably, so that no seat can be used twice at a time, which would break every one of these
//! algorithms. `try_lock` exists for algorithms in which a waiting process may give up
//! ([`Withdraws`]). The third parameter of a room says what a thread does while it waits: [`Spin`],
//! [`Loop`], and with the standard library [`Yield`] and [`SpinThenYield`], which is the default
//! there.
//!
//! Each algorithm is one step function over [`Memory`]. The locks run it on atomics, and the
//! explorer ([`check::Check`]) runs the same function through every schedule of a few processes.
//!
//! # Features
//!
//! - `std` (default): semaphores on which threads sleep, and the [problems] that are solved with
//!   them. Without it the crate needs an allocator and, for most algorithms, only loads and stores.
//! - `lock_api`: [`RawLock`], with which any of the locks can be used as a `lock_api::Mutex`.
//! - `check`: the explorer, [`check::Check`].
//! - `bench`: measurements of the locks, beside the locks of other crates.
//!
//! # Beyond locks
//!
//! Two modules are not locks. They are here because they run on the same registers and semaphores,
//! and because every state of theirs is explored as it is done for the locks:
//!
//! - [`problems`]: a bounded buffer, and readers and writers, on the crate's semaphores.
//! - [`ring`]: Dijkstra's self-stabilising token rings, whose privilege goes around in the end
//!   whatever the registers held in the beginning. A program that only wants a lock needs neither.
//!
//! # On real memory
//!
//! The steps of a lock load with acquire ordering and store with release ordering. Where an
//! algorithm needs more than that, it has a fence. The crate's tests run the same steps
//!
//! - on loom's model of the language's memory with two processes, where each lock excludes with all
//!   its fences and fails without any one of them;
//! - on the explorer's memory, which is sequentially consistent or has store buffers as x86 does.
//!   The table tells which fences store buffers do not need;
//! - on shuttle's schedules with up to six processes;
//! - and on threads.
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
pub use memory::{Array, Length, Memory, Register, RegisterArray, Word};
pub use place::{Place, Section};
#[cfg(feature = "lock_api")]
pub use raw_lock::{RawLock, TakenSeat};
pub use relax::{DefaultRelax, Loop, Relax, Spin};
#[cfg(feature = "std")]
pub use relax::{SpinThenYield, Yield};
#[cfg(target_has_atomic = "ptr")]
pub use room::OwnedSeat;
pub use room::{Guard, Room, RoomError, Seat};
#[cfg(feature = "std")]
pub use semaphore::Semaphore;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
