//! What a thread does while it waits.

/// What a waiting thread does between two looks. A new value is made for each wait. Neither making
/// nor dropping it may panic.
pub trait Relax: Default {
    /// Wait for a moment. This must not panic: a thread cannot stop halfway into a lock, so the
    /// program would be aborted.
    fn relax(&mut self);
}

/// Give the processor the hint that this is a spin loop, and go on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spin;

impl Relax for Spin {
    #[inline]
    fn relax(&mut self) {
        core::hint::spin_loop();
    }
}

/// Go on at once, without even the hint of a spin loop.
#[derive(Clone, Copy, Debug, Default)]
pub struct Loop;

impl Relax for Loop {
    #[inline]
    fn relax(&mut self) {}
}

/// Yield to other threads.
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

/// Spin for a short while, then yield to other threads. With more threads than processors, the
/// thread that all others wait for may need the processor first.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug, Default)]
pub struct SpinThenYield {
    spins: u32,
}

#[cfg(feature = "std")]
impl SpinThenYield {
    /// The number of spins before it yields: about as long as a short critical section.
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

/// How threads wait by default.
#[cfg(feature = "std")]
pub type DefaultRelax = SpinThenYield;
/// How threads wait by default.
#[cfg(not(feature = "std"))]
pub type DefaultRelax = Spin;
