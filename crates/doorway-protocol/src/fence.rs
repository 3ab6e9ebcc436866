//! Fences: numbers that come with grants, and that a protected resource compares.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The fencing token of a grant: a positive number that fits into an `i64`.
///
/// The fences of one lock grow. Of two exclusive grants, the later one has the higher fence. A
/// writer's fence is higher than those of all earlier readers, and a reader's is higher than that
/// of the last writer; readers that hold the lock together may have the same fence. The fences of a
/// lock with several permits are unique, but their order means nothing.
///
/// A resource that remembers the highest fence it has seen, and refuses lower ones, is safe from a
/// holder that was paused and writes after it has lost the lock.
///
/// ```
/// use doorway_protocol::Fence;
///
/// let (first, second) = (Fence::new(1, 33), Fence::new(1, 34));
/// assert!(first < second);
/// assert_eq!(first.to_string().parse(), Ok(first));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(u64);

impl Fence {
    /// The number of bits of the clock. The view is stored in the bits above them.
    const CLOCK_BITS: u32 = 40;

    /// A lock whose clock reaches this value asks for the next view, long before the clock
    /// overflows.
    pub const CLOCK_LIMIT: u64 = 1 << (Self::CLOCK_BITS - 1);

    /// The lowest number of a view that does not fit into a fence.
    pub const VIEW_LIMIT: u64 = 1 << (63 - Self::CLOCK_BITS);

    /// The fence of a grant that was made in this view, at this value of the lock's clock.
    ///
    /// Fences are ordered by their view, and within a view by their clock.
    ///
    /// # Panics
    ///
    /// If the view or the clock does not fit into a fence. Nodes take care that neither gets so
    /// high.
    pub fn new(view: u64, clock: u64) -> Self {
        assert!(
            view < Self::VIEW_LIMIT && clock < 1 << Self::CLOCK_BITS,
            "view {view} and clock {clock} do not fit into a fence"
        );
        Self(view << Self::CLOCK_BITS | clock)
    }

    /// The fence with this number; none unless the number is positive and fits into an `i64`.
    pub fn from_number(number: u64) -> Option<Self> {
        (1..=i64::MAX as u64).contains(&number).then_some(Self(number))
    }

    /// The fence as a number.
    pub fn get(self) -> u64 {
        self.0
    }

    /// The view in which the grant was made.
    pub fn view(self) -> u64 {
        self.0 >> Self::CLOCK_BITS
    }

    /// The fence with the next value of the clock in the same view; none if the clock ends here.
    pub fn next(self) -> Option<Self> {
        let clock = self.clock() + 1;
        (clock < 1 << Self::CLOCK_BITS).then(|| Self::new(self.view(), clock))
    }

    /// The value of the lock's clock within that view.
    pub fn clock(self) -> u64 {
        self.0 & ((1 << Self::CLOCK_BITS) - 1)
    }
}

/// The error for a text that is not a fence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a fence; a fence is a number from 1 to 9223372036854775807")]
pub struct FenceError(String);

impl FromStr for Fence {
    type Err = FenceError;

    fn from_str(text: &str) -> Result<Self, FenceError> {
        let number = text.parse().ok().and_then(Self::from_number);
        number.ok_or_else(|| FenceError(text.chars().take(40).collect()))
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

impl Serialize for Fence {
    /// In a text format such as JSON a fence is a string, because many programs keep only 53 bits
    /// of a number, and a rounded fence would be the fence of another grant.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_u64(self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Fence {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            deserializer.deserialize_str(FenceVisitor)
        } else {
            let number = u64::deserialize(deserializer)?;
            let wrong =
                || de::Error::invalid_value(de::Unexpected::Unsigned(number), &FenceVisitor);
            Self::from_number(number).ok_or_else(wrong)
        }
    }
}

/// Reads a fence from a string.
struct FenceVisitor;

impl Visitor<'_> for FenceVisitor {
    type Value = Fence;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a fence, which is a number from 1 to 9223372036854775807 in quotes")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Fence, E> {
        // Other ways to write the same number, such as with zeros in front, are refused.
        let fence = text.parse().ok().filter(|fence: &Fence| fence.to_string() == text);
        fence.ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}
