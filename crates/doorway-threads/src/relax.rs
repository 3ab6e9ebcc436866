//! What a thread does while it waits.

/// A way to wait for a moment, made anew for each time that someone waits. Neither making nor
/// dropping it may panic.
pub trait Relax: Default {
    /// Wait for a moment. This must not panic: nobody can stop halfway into a lock, so the program
    /// would end.
    fn relax(&mut self);
}

/// Tell the processor that this is a loop, and go on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spin;

impl Relax for Spin {
    #[inline]
    fn relax(&mut self) {
        core::hint::spin_loop();
    }
}

/// Go on at once: for processors on which even the hint is too much.
#[derive(Clone, Copy, Debug, Default)]
pub struct Loop;

impl Relax for Loop {
    #[inline]
    fn relax(&mut self) {}
}

/// Let other threads run.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Yield;

#[cfg(feature = "std")]
impl Relax for Yield {
    #[inline]
    fn relax(&mut self) {
        std::thread::yield_now();
    }
}

/// Spin for a little while, then let other threads run: with more threads than processors, the one
/// that all wait for may have to be run first.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug, Default)]
pub struct SpinThenYield {
    spins: u32,
}

#[cfg(feature = "std")]
impl SpinThenYield {
    /// About as long as a short critical section.
    const PATIENCE: u32 = 100;
}

#[cfg(feature = "std")]
impl Relax for SpinThenYield {
    #[inline]
    fn relax(&mut self) {
        if self.spins < Self::PATIENCE {
            self.spins += 1;
            core::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}

/// How threads wait unless told otherwise.
#[cfg(feature = "std")]
pub type Patient = SpinThenYield;
/// How threads wait unless told otherwise.
#[cfg(not(feature = "std"))]
pub type Patient = Spin;
