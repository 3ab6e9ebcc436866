//! The one source of random numbers in a run.

/// A generator of random numbers (`SplitMix64`). Equal seeds give equal numbers in every build,
/// whatever libraries this program is built with.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Self(seed ^ 0x9e37_79b9_7f4a_7c15);
        random.next();
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which must not be 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True in `percent` of all cases.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A number from `low` to `high` whose magnitude is drawn first, so that small ones are as
    /// likely as large ones.
    pub(crate) fn magnitude(&mut self, low: u64, high: u64) -> u64 {
        let (low, high) = (low.max(1), high.max(1));
        let doublings = (high / low).max(1).ilog2();
        let base = low << self.between(0, u64::from(doublings));
        self.between(base, (2 * base).min(high).max(base))
    }

    /// A time around this mean, exponentially distributed up to ten times the mean.
    pub(crate) fn exponential(&mut self, mean: u64) -> u64 {
        // -ln(u) by bits: the number of leading zeros is geometric, the rest makes it smooth.
        let bits = self.next() | 1;
        let zeros = u64::from(bits.leading_zeros());
        let rest = self.below(mean.max(1));
        (zeros * mean / 10 * 7 + rest * 7 / 10).min(10 * mean)
    }

    /// One of several.
    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }
}
