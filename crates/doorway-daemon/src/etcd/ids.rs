//! The numbers that clients are told: leases and revisions. Both name the node at which they are at
//! home.
//!
//! A client may send its calls to all members, one to this and the next to that. So a member must
//! see at once to which other one a call belongs. The number of a lease, and the revision of a
//! request that waits, consist of
//!
//! - bit 62, which is set, so that a lease has 16 digits in hexadecimal and 19 in decimal, and a
//!   key that ends with a lease can be recognised;
//! - 15 bits that follow from the name of the node;
//! - 47 bits that are unique at this node.
//!
//! Fences are never that high: they would need four million views.

use std::sync::atomic::{AtomicU64, Ordering};

use doorway_sessions::standing::LEASE_BITS;

const MARK: u64 = 1 << 62;
const HOME_BITS: u32 = 62 - LEASE_BITS;

/// How many requests a node can make in a millisecond without using a number of the next one, in
/// bits.
const BURST_BITS: u32 = 6;

/// The bits of a number that follow from the name of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Home(u64);

impl Home {
    pub(super) fn of(node: &str) -> Self {
        let hash = hash(node);
        // The low bits of this hash are the better ones, and all of them count.
        let folded = hash ^ hash >> 15 ^ hash >> 30 ^ hash >> 45;
        Self(folded & ((1 << HOME_BITS) - 1))
    }

    /// The number of a client for what is called `number` at this node.
    pub(super) fn id(self, number: u64) -> i64 {
        let number = number & ((1 << LEASE_BITS) - 1);
        (MARK | self.0 << LEASE_BITS | number).cast_signed()
    }
}

/// The FNV-1a of a text, which is the same at every node.
pub(super) fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The node and the number at this node behind the number of a client; none if no node has made it.
pub(super) fn parts(id: i64) -> Option<(Home, u64)> {
    let id = u64::try_from(id).ok().filter(|id| id & MARK != 0)?;
    let home = Home((id & (MARK - 1)) >> LEASE_BITS);
    Some((home, id & ((1 << LEASE_BITS) - 1)))
}

/// Makes revisions for requests that wait.
pub(super) struct Revisions {
    home: Home,
    last: AtomicU64,
}

impl Revisions {
    /// `random` tells the numbers of this process from those of earlier ones if the clock is so
    /// wrong that it shows a time before 2026.
    pub(super) fn new(home: Home, random: u32) -> Self {
        Self { home, last: AtomicU64::new(random.into()) }
    }

    /// A revision that no other request has, of this process, or of an earlier one unless the clock
    /// was set back. It is odd: the one before it belongs to the key that a waiting client is shown
    /// as its predecessor. `ms` are the milliseconds since the beginning of 2026.
    pub(super) fn next(&self, ms: u64) -> i64 {
        let now = ms << BURST_BITS;
        let next = |last: u64| Some(now.max(last + 1));
        let before = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        let last = before.unwrap_or_else(|last| last);
        self.home.id(now.max(last + 1) << 1 | 1)
    }
}

#[cfg(test)]
mod tests {
    use doorway_protocol::Fence;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_number_names_its_node(node in "[a-z0-9-]{1,20}", number in 0_u64..1 << LEASE_BITS) {
            let home = Home::of(&node);
            let id = home.id(number);
            prop_assert!(id > 0);
            prop_assert_eq!(parts(id), Some((home, number)));
            prop_assert_eq!((format!("{id:x}").len(), id.to_string().len()), (16, 19));
        }
    }

    #[test]
    fn revisions_are_odd_and_grow() {
        let revisions = Revisions::new(Home::of("a"), 0);
        let many: Vec<i64> = (0..1000).map(|at| revisions.next(at / 200)).collect();
        assert!(many.is_sorted_by(|one, other| one < other));
        assert!(many.iter().all(|revision| revision % 2 == 1));
        let later = Revisions::new(Home::of("a"), 0);
        assert!(later.next(1000) > many[999], "a later process goes on");
    }

    #[test]
    fn other_numbers_belong_to_no_node() {
        let fence = Fence::new(1_000_000, Fence::CLOCK_LIMIT).get().cast_signed();
        for id in [0, 1, -1, i64::MIN, fence] {
            assert_eq!(parts(id), None);
        }
        assert_ne!(Home::of("a"), Home::of("b"));
        assert_ne!(Home::of("n1"), Home::of("n2"));
    }
}
