//! Fences: the numbers that come with every grant and that a resource compares.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A number that comes with a grant, always positive in an `i64`.
///
/// Between exclusive grants of one lock fences grow strictly. A writer's exceeds that of every
/// earlier reader, and a reader's that of the last writer; readers together may share one. Those of
/// permits are unique, and their order means nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Fence(u64);

impl Fence {
    /// How many bits the clock has; the view stands above them.
    const CLOCK_BITS: u32 = 40;

    /// A lock whose clock gets here asks for the next view, long before the clock is full.
    pub const CLOCK_LIMIT: u64 = 1 << (Self::CLOCK_BITS - 1);

    /// The first number that is too high for a view.
    pub const VIEW_LIMIT: u64 = 1 << (63 - Self::CLOCK_BITS);

    /// The fence of a grant: views come first, then the clock within the view.
    ///
    /// # Panics
    ///
    /// If the view or the clock is beyond what fits, which both are kept from long before.
    pub fn new(view: u64, clock: u64) -> Self {
        assert!(view < Self::VIEW_LIMIT && clock < 1 << Self::CLOCK_BITS, "a fence that is full");
        Self(view << Self::CLOCK_BITS | clock)
    }

    /// The number.
    pub fn get(self) -> u64 {
        self.0
    }

    /// The view in which the grant was made.
    pub fn view(self) -> u64 {
        self.0 >> Self::CLOCK_BITS
    }

    /// The clock within that view.
    pub fn clock(self) -> u64 {
        self.0 & ((1 << Self::CLOCK_BITS) - 1)
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.view(), self.clock())
    }
}
