//! Doorway's core and its locks, linked into a library that brings its own panic handler. If
//! anything below them linked the standard library, there would be two of them, and the compiler
//! would refuse.

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

/// Nothing runs, so nothing is ever allocated.
struct Nothing;

unsafe impl GlobalAlloc for Nothing {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: Nothing = Nothing;

/// Reaches every algorithm, so that none is left out of the proof.
#[unsafe(no_mangle)]
pub extern "C" fn algorithms() -> usize {
    ALL.len()
}

/// Reaches every lock: how many let somebody in?
#[unsafe(no_mangle)]
pub extern "C" fn locks() -> usize {
    LOCKS.iter().filter(|entry| with_lock(entry.info.name, Enter) == Some(true)).count()
}

/// Enter and leave.
struct Enter;

impl LockTask for Enter {
    type Output = bool;

    fn run<A: Exclusive>(self) -> bool {
        let Ok(mut room) = Room::<A, bool>::new(2, false) else { return false };
        room.seats().for_each(|mut seat| *seat.lock() = true);
        room.into_inner()
    }
}
