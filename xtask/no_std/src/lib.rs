//! Doorway's core and its locks, linked into a library with its own panic handler. If one of their
//! dependencies linked the standard library, there would be two panic handlers and the build would
//! fail.

#![no_std]

extern crate alloc;

use alloc::alloc::{GlobalAlloc, Layout};

use doorway_core::algorithms::ALL;
use doorway_threads::algorithms::{ALL as LOCKS, LockTask, with_lock};
use doorway_threads::{Exclusive, Room};

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// An allocator that never allocates, because this library is linked and never run.
struct Nothing;

unsafe impl GlobalAlloc for Nothing {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: Nothing = Nothing;

/// Uses every algorithm, so that all of them are linked.
#[unsafe(no_mangle)]
pub extern "C" fn algorithms() -> usize {
    ALL.len()
}

/// Uses every lock, so that all of them are linked, and counts those that can be entered.
#[unsafe(no_mangle)]
pub extern "C" fn locks() -> usize {
    LOCKS.iter().filter(|entry| with_lock(entry.info.name, Enter) == Some(true)).count()
}

/// A task that enters a lock and leaves it.
struct Enter;

impl LockTask for Enter {
    type Output = bool;

    fn run<A: Exclusive>(self) -> bool {
        let Ok(mut room) = Room::<A, bool>::new(2, false) else { return false };
        room.seats().for_each(|mut seat| *seat.lock() = true);
        room.into_inner()
    }
}
