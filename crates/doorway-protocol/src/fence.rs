//! Fences: the numbers that come with every grant and that a resource compares.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number that comes with a grant, always positive in an `i64`.
///
/// Between exclusive grants of one lock fences grow strictly. A writer's exceeds that of every
/// earlier reader, and a reader's that of the last writer; readers together may share one. Those of
/// permits are unique, and their order means nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

    /// The fence with this number, if it can be one: positive in an `i64`.
    pub fn from_number(number: u64) -> Option<Self> {
        (1..=i64::MAX as u64).contains(&number).then_some(Self(number))
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

/// Why a text is no fence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no fence: a number from 1 to 9223372036854775807 is")]
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
    /// In a text such as JSON it is a text too: many readers keep 53 bits of a number, and a fence
    /// that is a little off is another one.
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

/// Reads a fence out of a text.
struct FenceVisitor;

impl Visitor<'_> for FenceVisitor {
    type Value = Fence;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a fence, which is a number from 1 to 9223372036854775807 in quotes")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Fence, E> {
        // FenceVisitor in one way only.
        let fence = text.parse().ok().filter(|fence: &Fence| fence.to_string() == text);
        fence.ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}
