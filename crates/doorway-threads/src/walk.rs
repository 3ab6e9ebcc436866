//! The way in and the way out, on the registers of a lock.

use crate::atomics::{Atomics, Registers};
use crate::{Algorithm, Loop, Place, Process, Relax, Section};

/// Take steps until the process is inside, from wherever it is.
#[inline]
pub(crate) fn enter<A: Algorithm, R: Relax>(
    registers: &Registers,
    me: Process,
    at: A::At,
) -> A::At {
    walk::<A, R>(registers, me, at, Section::Outside, Section::Inside)
}

/// Take steps until the process is outside, from wherever it is.
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
/// The first few are laid out one after another, so that the compiler, which knows where each of
/// them may lead, can make straight code of an entry that meets nobody. They do not relax yet.
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

/// Where a process is would be forgotten if a step or relaxing could panic, and a process that
/// begins again before it has ended may let two in. A panic while another unwinds ends the program.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        panic!("nobody can stop halfway into a lock or out of it");
    }
}
