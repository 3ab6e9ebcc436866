//! Entering and leaving: the steps of a process on the registers of a lock.

use crate::atomics::{Atomics, Registers};
use crate::{Algorithm, Loop, Place, Process, Relax, Section};

/// Take steps until the process is inside, from any place.
#[inline]
pub(crate) fn enter<A: Algorithm, R: Relax>(
    registers: &Registers,
    me: Process,
    at: A::At,
) -> A::At {
    walk::<A, R>(registers, me, at, Section::Outside, Section::Inside)
}

/// Take steps until the process is outside, from any place.
#[inline]
pub(crate) fn leave<A: Algorithm, R: Relax>(
    registers: &Registers,
    me: Process,
    at: A::At,
) -> A::At {
    walk::<A, R>(registers, me, at, Section::Inside, Section::Outside)
}

/// Take steps until a section is reached.
///
/// The first four steps are written one after another, so that the compiler can make straight-line
/// code of an entry without contention. They do not relax yet.
#[allow(clippy::inline_always, reason = "in both callers `from` and `to` are known")]
#[inline(always)]
fn walk<A: Algorithm, R: Relax>(
    registers: &Registers,
    me: Process,
    mut at: A::At,
    from: Section,
    to: Section,
) -> A::At {
    let abort_on_panic = AbortOnPanic;
    let mut memory = Atomics::<Loop>::new(registers);
    macro_rules! step {
        () => {
            at = A::step(at, me, &mut memory);
            if at.section() == to {
                core::mem::forget(abort_on_panic);
                return at;
            }
        };
    }
    if at.section() == from {
        step!();
        step!();
        step!();
        step!();
    }
    let at = walk_on::<A, R>(registers, me, at, to);
    core::mem::forget(abort_on_panic);
    at
}

#[inline(never)]
fn walk_on<A: Algorithm, R: Relax>(
    registers: &Registers,
    me: Process,
    mut at: A::At,
    to: Section,
) -> A::At {
    let mut memory = Atomics::<R>::new(registers);
    while at.section() != to {
        at = A::step(at, me, &mut memory);
    }
    at
}

/// Aborts the program if a step or `Relax::relax` panics. The place of the process would be lost,
/// and a process that begins again before it has left may let two in. This panics while the first
/// panic unwinds, which aborts.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        panic!("a thread panicked halfway into a lock or out of it");
    }
}
